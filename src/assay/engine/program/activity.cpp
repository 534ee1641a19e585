#include "assay/engine/program/activity.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "assay/base/index.h"
#include "assay/engine/layout.h"

namespace assay::engine {
namespace {

constexpr std::size_t fields = 5;  // of an activity in a message

/// The first device of the group that a device moves data with.
std::int64_t first_member(const program::Mesh& mesh, program::AxisSet axes, std::int64_t device) {
  Coordinates place = coordinates(mesh, device);
  for (const int axis : axes_of(axes)) place[at(axis)] = 0;
  return device_at(mesh, place);
}

/// Calls `visit` with each movement and what all members of its group have in common.
template <class Visit>
void each_movement(const program::Program& program, const RankActivities& ranks, Visit visit) {
  const std::int64_t devices = program.mesh.devices();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto number = static_cast<std::int64_t>(rank);
    std::map<int, std::int64_t> runs;  // members run their movements in the same order
    for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
      const Activity& one = ranks[rank][i];
      if (!one.is_movement()) continue;
      const std::int64_t first = first_member(program.mesh, program.steps[at(one.step)].axes, number % devices);
      visit(rank, i, std::tuple(number / devices, first, one.step, runs[one.step]++));
    }
  }
}

}  // namespace

Seconds clock_time() {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

Seconds core_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1_s + static_cast<double>(time.tv_nsec) * 1_ns;
}

RankActivities gathered(Transport& transport, const std::vector<Activity>& mine) {
  std::vector<double> values;
  for (const Activity& one : mine) {
    for (const int number : {one.step, static_cast<int>(one.kind)}) values.push_back(number);
    for (const Seconds time : {one.start, one.end, one.busy}) values.push_back(time.value());
  }
  RankActivities out;
  for (const std::vector<double>& rank : gather_values(transport, values)) {
    std::vector<Activity>& all = out.emplace_back();
    for (std::size_t i = 0; i + fields <= rank.size(); i += fields)
      all.push_back({static_cast<int>(rank[i]), static_cast<Activity::Kind>(static_cast<int>(rank[i + 1])),
                     Seconds(rank[i + 2]), Seconds(rank[i + 3]), Seconds(rank[i + 4])});
  }
  return out;
}

std::vector<std::vector<Seconds>> waiting(const program::Program& program, const RankActivities& ranks, double turns) {
  std::map<std::tuple<std::int64_t, std::int64_t, int, std::int64_t>, Seconds> last;  // entry of each group
  each_movement(program, ranks, [&](std::size_t rank, std::size_t i, const auto& group) {
    Seconds& entry = last.emplace(group, ranks[rank][i].start).first->second;
    entry = std::max(entry, ranks[rank][i].start);
  });
  std::vector<std::vector<Seconds>> out;
  for (const std::vector<Activity>& rank : ranks) out.emplace_back(rank.size());
  each_movement(program, ranks, [&](std::size_t rank, std::size_t i, const auto& group) {
    const Activity& one = ranks[rank][i];
    const Seconds without_core = one.duration() - turns * one.busy;
    out[rank][i] = std::min(std::max(last.at(group) - one.start, without_core), one.duration());
  });
  return out;
}

Seconds span(const RankActivities& ranks) {
  bool any = false;
  Seconds first, last;
  for (const std::vector<Activity>& rank : ranks)
    for (const Activity& one : rank) {
      first = any ? std::min(first, one.start) : one.start;
      last = any ? std::max(last, one.end) : one.end;
      any = true;
    }
  return last - first;
}

}  // namespace assay::engine
