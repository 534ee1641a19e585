#include "assay/lab/measure/network.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <thread>

#include "assay/engine/movement.h"
#include "assay/lab/measure/machine.h"

namespace assay::measure {
namespace {

/// A collective over the axis of a group, as rows name it, and the shardings of a tensor before and after.
struct Movement {
  const char* op;
  program::Collective kind;
  bool sums, rows_before, rows_after, columns_after;
};
constexpr Movement movements[] = {{"all_gather", program::Collective::all_gather, false, true, false, false},
                                  {"reduce_scatter", program::Collective::reduce_scatter, true, false, true, false},
                                  {"all_reduce", program::Collective::all_reduce, true, false, false, false},
                                  {"all_to_all", program::Collective::all_to_all, false, true, false, true}};

/// What the other steps of a program do before a collective: they leave nothing in the caches that it reads or writes.
class OtherWork {
 public:
  /// On one of `ranks` at once, which share the caches of several cores. The largest caches serve other machines, too,
  /// and to fill them would take longer than what is measured.
  void run(std::size_t ranks) {
    constexpr Bytes most = 64_MiB;
    std::size_t bytes = 0;
    for (const Cache& cache : caches_)
      bytes += static_cast<std::size_t>(std::min(cache.size, most).value()) /
               std::min(ranks, static_cast<std::size_t>(cache.cores));
    const std::size_t elements = bytes / (2 * sizeof(double));
    if (from_.size() < elements) {
      from_.resize(elements, 1.0);
      to_.resize(elements);
    }
    std::copy_n(from_.begin(), elements, to_.begin());
    if (elements > 0) from_.front() = to_.back();
  }

 private:
  std::vector<Cache> caches_ = read_machine().caches;
  std::vector<double> from_, to_;
};

/// One group of ranks in a row, of which this process is one.
class RankGroup {
 public:
  RankGroup(engine::Transport& ranks, std::size_t first, std::size_t count, OtherWork& other)
      : devices_(program::Mesh{{{"X", static_cast<std::int64_t>(count)}}}, {&ranks, first}), other_(other) {}

  /// One collective over an array of `bytes`, as a step of a program: over all ranks for an exchange, on each rank for
  /// a reduction.
  void call(const Movement& movement, std::int64_t bytes) {
    const auto elements = bytes / static_cast<std::int64_t>(sizeof(double));
    const auto split = [](bool is_split) { return is_split ? program::AxisList{}.pushed(0) : program::AxisList{}; };
    program::Tensor before{"A", {{"I", elements / columns}, {"J", columns}}, Dtype::fp64, {}}, after = before;
    before.sharding.dims[0] = split(movement.rows_before);
    before.sharding.unreduced = movement.sums ? program::axis_bit(0) : 0;
    after.sharding.dims[0] = split(movement.rows_after);
    after.sharding.dims[1] = split(movement.columns_after);
    program::Step step;
    step.op = program::Op::collective;
    step.collective = movement.kind;
    step.axes = program::axis_bit(0);
    engine::Shards& array = arrays_[{movement.op, bytes}];
    if (array.empty()) {
      array.resize(devices_.count());
      array[devices_.here().front()] = engine::zeros(program::local_shape(devices_.mesh(), before));
    }
    engine::run_movement(devices_, step, before, after, array);
  }

  void work() { other_.run(devices_.count()); }
  /// Its ranks start together once the others sleep.
  void meet() { call(movements[0], columns * static_cast<std::int64_t>(sizeof(double) * devices_.count())); }

 private:
  static constexpr std::int64_t columns = 512;
  engine::VirtualDevices devices_;
  OtherWork& other_;
  std::map<std::pair<std::string, std::int64_t>, engine::Shards> arrays_;
};

/// Seconds of the slowest of all ranks. Those without a group only keep step, and leave the cores to the others for
/// longer than it is `expected` to take.
Seconds timed(engine::Transport& ranks, RankGroup* group, const Movement& movement, std::int64_t bytes,
              Seconds expected) {
  if (group) group->work();
  engine::gather_values(ranks, {});
  if (!group) std::this_thread::sleep_for(std::chrono::duration<double>(2.0 * (expected + 100_us).value()));
  if (group) group->meet();
  const auto start = std::chrono::steady_clock::now();
  if (group) group->call(movement, bytes);
  double slowest = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!group) slowest = 0;
  for (const std::vector<double>& other : engine::gather_values(ranks, {slowest}))
    slowest = std::max(slowest, other.front());
  return Seconds(slowest);
}

/// One row to measure: a collective of a group, which this process may be part of.
struct Row {
  const Movement* movement;
  std::size_t ranks;
  std::int64_t bytes;
  RankGroup* group;
  Seconds median{}, least{};
};

/// The fastest of some rounds over all rows: ignores ranks that lost their core for a while.
void measure(engine::Transport& ranks, std::vector<Row>& rows, Extent extent) {
  const int rounds = extent == Extent::quick ? 5 : 10;
  constexpr int calls = 3;
  for (int round = 0; round < rounds; ++round)
    for (Row& row : rows) {
      std::vector<Seconds> times;
      for (int i = 0; i < calls; ++i)
        times.push_back(timed(ranks, row.group, *row.movement, row.bytes, i == 0 ? row.median : times.back()));
      if (const Seconds median = median_of(times); round == 0 || median < row.median) {
        row.median = median;
        row.least = times.front();
      }
    }
}

/// Sizes of arrays: few short ones, where the cost of messages shows, and more of those that take long.
std::vector<std::int64_t> array_sizes(Extent extent) {
  constexpr std::int64_t least = 4096, medium = std::int64_t{128} << 10;
  std::vector<std::int64_t> out = sizes(least, medium / 2, 4);
  for (const std::int64_t bytes : sizes(medium, std::int64_t{extent == Extent::quick ? 4 : 16} << 20, 2))
    out.push_back(bytes);
  return out;
}

/// Every number of ranks up to 8, then doublings, and all of them.
std::vector<std::size_t> group_sizes(std::size_t ranks) {
  constexpr std::size_t each = 8;
  std::vector<std::size_t> out;
  for (std::size_t count = 2; count < ranks; count += count < each ? 1 : count) out.push_back(count);
  out.push_back(ranks);
  return out;
}

/// The same local work on all ranks at once: who has less of a core than the others takes longer.
std::vector<Seconds> own_times(engine::Transport& ranks, Extent extent) {
  constexpr std::size_t elements = std::size_t{1} << 19;
  const int rounds = extent == Extent::quick ? 5 : 15;
  std::vector<double> from(elements, 1.0), to(elements);
  Seconds least(1e9);
  for (int round = 0; round < rounds; ++round) {
    engine::gather_values(ranks, {});
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) std::copy(from.begin(), from.end(), to.begin());
    least = std::min(least, Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
    from.front() = to.back();
  }
  std::vector<Seconds> out;
  for (const std::vector<double>& one : engine::gather_values(ranks, {least.value()})) out.emplace_back(one.front());
  return out;
}

}  // namespace

NetworkMeasurement measure_network(engine::Transport& ranks, Extent extent) {
  OtherWork other;
  std::deque<RankGroup> groups;
  const auto group_of = [&](bool is_member, std::size_t first, std::size_t count) {
    return is_member ? &groups.emplace_back(ranks, first, count, other) : nullptr;
  };
  std::vector<Row> rows;
  for (const std::size_t count : group_sizes(ranks.count())) {
    RankGroup* group = group_of(ranks.rank() < count, 0, count);
    for (const Movement& movement : movements)
      for (const std::int64_t bytes : array_sizes(extent)) rows.push_back({&movement, count, bytes, group});
  }
  measure(ranks, rows, extent);
  NetworkMeasurement out;
  for (const Row& row : rows)
    out.rows.push_back(
        {row.movement->op, "fp64", row.bytes, static_cast<std::int64_t>(row.ranks), 0, 0, 0, row.median, row.least});
  out.own_times = own_times(ranks, extent);
  const std::size_t half = ranks.count() / 2;
  if (half < 2) return out;
  RankGroup* first = group_of(ranks.rank() < half, 0, half);
  RankGroup* both = group_of(ranks.rank() < 2 * half, ranks.rank() < half ? 0 : half, half);
  for (const Movement& movement : movements) {
    constexpr std::int64_t bytes = std::int64_t{1} << 20;
    std::vector<Row> pair{{&movement, half, bytes, first}, {&movement, half, bytes, both}};
    measure(ranks, pair, extent);
    out.contention.push_back({movement.op, bytes, static_cast<std::int64_t>(half), pair[0].median, pair[1].median});
  }
  return out;
}

}  // namespace assay::measure
