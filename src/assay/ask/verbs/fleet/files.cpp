// Files beside the answer: a row for each request, and the steps of a replica.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/fleet/fleet.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/base/text.h"

namespace assay::verbs::fleet {
namespace {

using serving::ReplicaSpan, serving::ServedRequest;

const std::vector<std::string>& row_heads() {
  static const std::vector<std::string> heads{"request",        "arrival",        "prompt",      "output",
                                              "cached",         "replica",        "preemptions", "waited_place",
                                              "waited_cache",   "waited_prompts", "preempted",   "time_to_first_token",
                                              "time_per_token", "end_to_end"};
  return heads;
}

std::vector<DatabaseCell> row_cells(const ServedRequest& one) {
  return {one.request.id, one.request.arrival, one.request.prompt, one.request.output, one.cached,
          one.replica,    one.preemptions,     one.for_places,     one.for_cache,      one.for_prompts,
          one.preempted,  one.first_token(),   one.per_token(),    one.whole()};
}

/// Times to the microsecond.
std::string cell_text(const DatabaseCell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  return fmt::format("{:.6f}", std::get<double>(cell));
}

/// A line a row: `line` makes it of the cells.
template <class Line>
RowSink text_sink(std::string first, Line line) {
  const auto text = std::make_shared<std::string>(std::move(first));  // of both functions
  return {[text, line](const std::vector<DatabaseCell>& cells) -> Result<void> {
            *text += line(cells);
            return {};
          },
          [text]() -> Result<std::string> { return *text; }};
}

Result<RowSink> sink_of(const std::string& file) {
  const std::string ending = lower_case(std::string_view(file).substr(std::min(file.rfind('.'), file.size())));
  if (ending == ".db" || ending == ".sqlite" || ending == ".sqlite3") return database_sink(row_heads(), file);
  if (ending == ".jsonl" || ending == ".ndjson")
    return text_sink("", [](const std::vector<DatabaseCell>& cells) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i)
        line += fmt::format("{}\"{}\": {}", i == 0 ? "{" : ", ", row_heads()[i], cell_text(cells[i]));
      return line + "}\n";
    });
  if (ending != ".csv")
    return fail("--rows", fmt::format("the ending of {} names no kind of table", in_quotes(file)),
                "one of .csv, .jsonl, .db and .sqlite", Error::Kind::usage);
  return text_sink(join(row_heads(), ",") + "\n", [](const std::vector<DatabaseCell>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + cell_text(cells[i]);
    return line + "\n";
  });
}

/// The steps of one replica as bars, and what it holds as numbers that change.
class StepRecord {
 public:
  explicit StepRecord(std::int64_t replica) : replica_(replica) {
    timeline_.title = fmt::format("replica {}", replica);
    timeline_.lanes = {{"steps"}};
    timeline_.classes = {"decode", "with prompts"};
    timeline_.counters = {{"running"}, {"waiting"}, {"pages"}};
  }

  void add(const ReplicaSpan& span) {
    if (span.replica != replica_) return;
    constexpr std::size_t most = 200'000;  // a viewer shows no more
    if (timeline_.bars.size() + static_cast<std::size_t>(span.steps) > most) {
      is_cut_ = true;
      return;
    }
    // Steps that were taken together grow evenly, up to the last.
    const auto steps = static_cast<double>(span.steps);
    const double first = 2.0 * (span.to - span.from) / steps - span.last;
    const double more = span.steps > 1 ? (span.last - first) / (steps - 1.0) : 0.0;
    const bool has_prompts = span.for_prompts > 0.0;
    const std::string label = fmt::format("{} sequences{}", span.running, has_prompts ? " and prompts" : "");
    double from = span.from;
    for (std::int64_t i = 0; i < span.steps; ++i) {
      const double time = first + more * static_cast<double>(i);
      timeline_.bars.push_back({0, Seconds(from), Seconds(from + time), label, has_prompts ? 1 : 0});
      from += time;
    }
    const std::int64_t values[] = {span.running, span.waiting, span.pages};
    for (std::size_t i = 0; i < std::size(values); ++i)
      timeline_.counters[i].points.push_back({Seconds(span.from), static_cast<double>(values[i])});
  }

  const draw::Timeline& timeline() const { return timeline_; }
  bool is_cut() const { return is_cut_; }

 private:
  std::int64_t replica_;
  draw::Timeline timeline_;
  bool is_cut_ = false;
};

}  // namespace

struct FleetFiles::Open {
  std::string rows_file, steps_file;
  RowSink rows;
  std::optional<StepRecord> steps;
  Result<void> state;
};

Result<FleetFiles> FleetFiles::of(const Request& request, serving::FleetPlan& plan) {
  FleetFiles out;
  out.open_ = std::make_shared<Open>();
  Open& open = *out.open_;
  if (const auto file = request.value("rows")) {
    open.rows_file = *file;
    ASSAY_SET(open.rows, sink_of(*file));
    plan.each = [held = out.open_](const ServedRequest& one) {
      if (held->state) held->state = held->rows.add(row_cells(one));
    };
  }
  if (const auto file = request.value("steps")) {
    const auto at = file->rfind('@');
    open.steps_file = file->substr(0, at);
    std::int64_t replica = 0;
    if (at != std::string::npos) {
      const auto number = parse_number(file->substr(at + 1));
      if (!number || *number < 0.0 || *number >= static_cast<double>(plan.replicas) || *number != std::floor(*number))
        return fail("--steps", fmt::format("there is no replica {}", in_quotes(file->substr(at + 1))),
                    fmt::format("FILE@0 to FILE@{}", plan.replicas - 1));
      replica = static_cast<std::int64_t>(*number);
    }
    open.steps.emplace(replica);
    plan.each_span = [held = out.open_](const ReplicaSpan& span) { held->steps->add(span); };
  }
  return out;
}

Result<void> FleetFiles::write(report::Response& response) const {
  ASSAY_CHECK(open_->state);
  if (!open_->rows_file.empty()) {
    ASSAY_TRY(content, open_->rows.content());
    response.files.emplace_back(open_->rows_file, std::move(content));
  }
  if (!open_->steps) return {};
  response.files.emplace_back(open_->steps_file, draw::chrome_trace_json(open_->steps->timeline()));
  if (open_->steps->is_cut()) response.notes.push_back(fmt::format("{}: the first 200,000 steps", open_->steps_file));
  return {};
}

}  // namespace assay::verbs::fleet
