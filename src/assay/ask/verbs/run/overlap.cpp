#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/train/timeline_members.h"

namespace assay::verbs::run {
namespace {

using engine::Activity;
using engine::RankActivities;

/// Means over ranks, but for the time of all and the arithmetic of the busiest.
struct Figures {
  Seconds time, computing;
  Seconds moving, hidden;  ///< of collectives, and of that beside other steps
};

Figures figures_of(const program::Program& program, const RankActivities& ranks, double turns) {
  Figures out;
  out.time = engine::span(ranks);
  const auto waits = engine::waiting(program, ranks, turns);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Seconds computing, travelling, moving, behind;
    for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
      const Activity& one = ranks[rank][i];
      if (one.kind == Activity::Kind::computes) computing += one.duration();
      if (one.is_movement()) moving += one.duration() - waits[rank][i];
      if (one.kind == Activity::Kind::travels) travelling += one.duration() - waits[rank][i];
      if (one.kind == Activity::Kind::waits && one.step >= 0) behind += one.duration();
    }
    const auto count = static_cast<double>(ranks.size());
    out.computing = std::max(out.computing, computing);
    out.moving += moving / count;
    out.hidden += std::max(Seconds(), travelling - behind) / count;
  }
  return out;
}

enum Colour { arithmetic, network, waits_for_ranks };
constexpr std::size_t most_ranks = 8;  // that a picture shows

class MeasuredTimeline {
 public:
  MeasuredTimeline(const program::Program& program, const std::function<std::string(int)>& name, double turns)
      : program_(program), name_(name), turns_(turns) {
    out_.classes = {{"arithmetic", draw::arithmetic_colour}, {"network", draw::network_colour}, {"waiting"}};
  }

  /// Lanes of each rank: its steps and, where `travels`, what is beside them.
  void add(const RankActivities& ranks, std::string_view title, bool travels) {
    const auto waits = engine::waiting(program_, ranks, turns_);
    Seconds first = ranks.front().empty() ? Seconds() : ranks.front().front().start;
    for (const auto& rank : ranks)
      for (const Activity& one : rank) first = std::min(first, one.start);
    for (std::size_t rank = 0; rank < std::min(ranks.size(), most_ranks); ++rank) {
      const std::size_t lane = out_.lanes.size();
      out_.lanes.push_back({fmt::format("rank {}, {}", rank, title)});
      if (travels) out_.lanes.push_back({fmt::format("rank {}, beside", rank)});
      for (std::size_t i = 0; i < ranks[rank].size(); ++i)
        add(ranks[rank][i], waits[rank][i], lane + (ranks[rank][i].kind == Activity::Kind::travels ? 1 : 0), first);
    }
    if (ranks.size() > most_ranks)
      out_.notes.push_back(fmt::format("the first {} of {} ranks", most_ranks, ranks.size()));
  }

  draw::Timeline take() { return std::move(out_); }

 private:
  void add(const Activity& one, Seconds waited, std::size_t lane, Seconds first) {
    const std::string label = one.step < 0 ? "another stage" : name_(one.step);
    const Seconds start = one.start - first, end = one.end - first;
    const Colour of_rest = one.kind == Activity::Kind::computes ? arithmetic
                           : one.kind == Activity::Kind::waits  ? waits_for_ranks
                                                                : network;
    if (waited > Seconds()) out_.bars.push_back({lane, start, start + waited, label, waits_for_ranks});
    out_.bars.push_back({lane, start + waited, end, label, of_rest});
  }

  const program::Program& program_;
  const std::function<std::string(int)>& name_;
  double turns_;
  draw::Timeline out_;
};

report::Members members_of(const clock::OverlapTimes& predicted) {
  return {{"blocking", predicted.blocking},
          {"overlapped", predicted.overlapped},
          {"moving", predicted.moving},
          {"hidden", predicted.hidden}};
}

double share_of(Seconds part, Seconds whole) { return whole > Seconds() ? part / whole : 0.0; }

}  // namespace

Result<void> check_overlap(const Request& request) {
  if (!request.has("overlap") || request.value("engine") == "mpi") return {};
  return fail("--overlap", "only ranks compute while data travel", "start it with mpirun -n N and --engine mpi",
              Error::Kind::usage);
}

std::string add_overlap(const Request& request, const program::Program& program,
                        const std::function<std::string(int step)>& name, const MeasuredOverlap& measured,
                        const std::optional<clock::OverlapTimes>& predicted, report::Response& response) {
  const Figures blocking = figures_of(program, measured.blocking, measured.turns),
                beside = figures_of(program, measured.overlapped, measured.turns);
  MeasuredTimeline timeline(program, name, measured.turns);
  timeline.add(measured.blocking, "blocking", false);
  timeline.add(measured.overlapped, "overlapped", true);
  draw::Timeline drawn = timeline.take();
  const auto text = [](Seconds time) { return report::short_quantity(time); };
  drawn.title = fmt::format("Blocking and overlapped collectives, measured on {} ranks", measured.blocking.size());
  drawn.subtitle = fmt::format(
      "{} one after the other, {} overlapped, {} of arithmetic alone; {:.0f} % of {} that collectives move is hidden",
      text(blocking.time), text(beside.time), text(blocking.computing), 100.0 * share_of(beside.hidden, beside.moving),
      text(beside.moving));
  if (predicted)
    drawn.notes.push_back(fmt::format("predicted: {} one after the other, {} overlapped, {:.0f} % hidden",
                                      text(predicted->blocking), text(predicted->overlapped),
                                      100.0 * share_of(predicted->hidden, predicted->moving)));
  report::Members out{{"blocking", blocking.time},
                      {"overlapped", beside.time},
                      {"arithmetic", blocking.computing},
                      {"moving", beside.moving},
                      {"hidden", beside.hidden},
                      {"hidden_share", share_of(beside.hidden, beside.moving)},
                      {"speedup", blocking.time / beside.time}};
  if (predicted) out.emplace_back("predicted", members_of(*predicted));
  out.emplace_back("timeline", train::timeline_members(drawn));
  response.results.emplace_back("overlap", std::move(out));
  if (request.picture()) response.picture = draw::draw_timeline(drawn);
  return drawn.subtitle + (predicted ? "; " + drawn.notes.back() : "");
}

}  // namespace assay::verbs::run
