// What can be saved of a profile: changes priced by the engine where the request that ran is known, else by the
// profile.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/base/text.h"

namespace assay::verbs::profile {
namespace {

using compare::GapItem;
using compare::GapKind;
using compare::Saving;
using report::short_quantity;

/// "attention grad to dQ, dK, dV" of "dQ[B, S], dK[B, S], dV[B, S] = attention grad(dO[B, S], ...)"; products as they
/// are.
std::string short_step(const std::string& text) {
  const std::size_t equals = text.find(" = "), open = text.find('(');
  if (equals == std::string::npos || open == std::string::npos || open < equals) return text;
  constexpr std::size_t gap = 3;  // of " = "
  std::string results;
  int depth = 0;
  for (const char c : text.substr(0, equals)) {
    if (c == '[') ++depth;
    if (depth == 0) results += c;
    if (c == ']') --depth;
  }
  return fmt::format("{} to {}", text.substr(equals + gap, open - equals - gap), results);
}

/// Times of what ran that a change makes shorter or longer, and what the engine says of both.
struct Priced {
  Seconds measured, before, after;  ///< after: `before` under the change
  Seconds scaled;                   ///< measured under the change, if it is as much shorter as predicted
  std::map<std::string, Seconds, std::less<>> saved;  ///< by class

  /// Those that save most.
  std::string classes() const {
    std::vector<std::pair<Seconds, std::string>> sorted;
    for (const auto& [group, time] : saved) sorted.emplace_back(time, group);
    std::sort(sorted.rbegin(), sorted.rend());
    constexpr std::size_t named = 2;
    std::string out;
    for (std::size_t i = 0; i < std::min(named, sorted.size()); ++i) out += (i == 0 ? "" : ", ") + sorted[i].second;
    return out + (sorted.size() > named ? ", ..." : "");
  }
};

/// The changes of a request that the engine prices.
class Repricing {
 public:
  Repricing(const Comparison& comparison, const Request& against, const trace::Vocabulary& vocabulary,
            const Context& context)
      : comparison_(comparison), against_(against), vocabulary_(vocabulary), context_(context) {}

  /// What the engine says that a change saves of a step; nothing where it cannot say, or says that nothing is saved.
  std::optional<std::pair<Saving, std::string>> saving_of(const trace::RemedyText& remedy) const {
    const auto changed = changed_request(remedy);
    if (!changed) return std::nullopt;
    const auto other = prediction_of(*changed);
    if (!other) return std::nullopt;
    const Priced priced = compare_prices(*other, remedy.leaves);
    constexpr double error = 0.1;  // of a price of kernels that ran on the chip before
    const Seconds saved = priced.measured - priced.after, scaled = priced.measured - priced.scaled;
    if (!(priced.after < priced.before) || !(saved > Seconds(0) || scaled > Seconds(0))) return std::nullopt;
    Saving out;
    out.id = remedy.id;
    out.saved = std::max(Seconds(0), saved);
    out.least = std::max(Seconds(0), std::min(saved, scaled) - error * priced.after);
    out.most = std::max(saved, scaled) + error * priced.after;
    for (const auto& [group, time] : priced.saved) out.items.emplace_back(GapKind::kernels, group);
    out.reason =
        fmt::format("{}: {} -> {}", priced.classes(), short_quantity(priced.measured), short_quantity(priced.after));
    return std::pair(std::move(out), command_of(*changed));
  }

 private:
  std::optional<Request> changed_request(const trace::RemedyText& remedy) const {
    Request out = against_;
    bool changes = false;
    for (const std::string& text : remedy.set) {
      const std::size_t equals = text.find('=');
      const std::string option = text.substr(0, equals),
                        value = equals == std::string::npos ? "" : text.substr(equals + 1);
      if (!find_option(out.verb(), option)) return std::nullopt;
      const auto known = out.value(option);
      if (known ? *known == value : value == "no") continue;
      changes = true;
      out = out.with(option, value);
    }
    return changes ? std::optional(std::move(out)) : std::nullopt;
  }

  /// The step of another request, priced in the way of the one that was compared.
  std::optional<compare::Prediction> prediction_of(const Request& request) const {
    Result<Predicted> predicted = predict(request, context_);
    // A request for one chip may not fit what is a rank of several; then nothing is kept that was recomputed.
    if (!predicted ||
        (!predicted->fits && (comparison_.fits || request.value("recompute") != against_.value("recompute"))))
      return std::nullopt;
    const compare::Prediction& compared = comparison_.prediction;
    for (compare::Prediction& one : predicted->steps) {
      if (one.what != compared.what || one.stage != compared.stage) continue;
      compare::set_clock(vocabulary_.clock.settled(trace::seconds(comparison_.measured.busy)), one);
      return comparison_.waterfall.host ? compare::without_gaps(std::move(one), vocabulary_.host.between) : one;
    }
    return std::nullopt;
  }

  using Times = std::map<std::string, Seconds, std::less<>>;
  Times class_times(const compare::Prediction& prediction) const {
    Times out;
    for (const compare::PredictedLine& line : prediction.lines)
      out[std::string(compare::class_of(line, comparison_.matching))] += static_cast<double>(line.runs) * line.time;
    return out;
  }

  /// By lines where both programs have the same ones, else by classes of them.
  Priced compare_prices(const compare::Prediction& other, const std::vector<std::string>& leaves) const {
    const compare::Waterfall& gap = comparison_.waterfall;
    const std::vector<compare::PredictedLine>& lines = comparison_.prediction.lines;
    const bool same = !comparison_.matching.by_class && lines.size() == other.lines.size() &&
                      std::equal(lines.begin(), lines.end(), other.lines.begin(),
                                 [](const auto& a, const auto& b) { return a.text == b.text && a.runs == b.runs; });
    Priced out;
    const auto add = [&](Seconds measured, Seconds predicted, double ratio, std::string_view group) {
      constexpr double notable = 0.1;  // smaller changes are within what prices are off
      if (std::abs(ratio - 1.0) < notable || std::find(leaves.begin(), leaves.end(), group) != leaves.end()) return;
      out.measured += measured;
      out.before += predicted;
      out.after += ratio * predicted;
      out.scaled += ratio * measured;
      out.saved[std::string(group)] += measured - ratio * predicted;
    };
    if (same) {
      for (const compare::StepGap& step : gap.steps)
        if (step.ran > 0.0 && lines[step.line].time > Seconds(0))
          add(step.measured + step.around, step.predicted, other.lines[step.line].time / plain_time(step),
              compare::class_of(lines[step.line], comparison_.matching));
      return out;
    }
    const Times before = class_times(plain_prediction()), after = class_times(other);
    for (const GapItem& item : gap.items) {
      const auto was = before.find(item.group), is = after.find(item.group);
      if (item.kind != GapKind::kernels || was == before.end() || !(was->second > Seconds(0))) continue;
      add(item.measured, item.predicted, (is == after.end() ? Seconds(0) : is->second) / was->second, item.group);
    }
    return out;
  }
  /// The compared prediction with gaps as the waterfall takes them.
  compare::Prediction plain_prediction() const {
    return comparison_.waterfall.host ? compare::without_gaps(comparison_.prediction, vocabulary_.host.between)
                                      : comparison_.prediction;
  }
  static Seconds plain_time(const compare::StepGap& step) { return step.predicted / step.ran; }

  const Comparison& comparison_;
  const Request& against_;
  const trace::Vocabulary& vocabulary_;
  const Context& context_;
};

/// A kernel that has the logits of more tokens than the step needs.
std::optional<Saving> needless_logits(const Comparison& comparison) {
  if (comparison.prediction.what != "prefill" || comparison.matching.by_class) return std::nullopt;
  for (const GapItem& item : comparison.waterfall.items) {
    if (item.kind != GapKind::extra || item.call < 0) continue;
    const compare::MeasuredCall& call = comparison.measured.calls[static_cast<std::size_t>(item.call)];
    for (const compare::PredictedLine& line : comparison.prediction.lines) {
      const double times = call.flops / line.flops;
      const bool whole = std::abs(times - std::round(times)) < 1e-3;
      if (call.kind != compare::MeasuredCall::Kind::product || line.block != "head" ||
          line.op != program::Op::product || times < 1.5 || !whole)
        continue;
      const Seconds ran = trace::seconds(call.alone) / static_cast<double>(comparison.matching.steps),
                    saved = std::max(Seconds(0), ran - line.time);
      return Saving{"last-logits",
                    saved,
                    0.9 * saved,
                    ran,
                    fmt::format("logits of all tokens: {} -> {}", short_quantity(ran), short_quantity(line.time)),
                    {{item.kind, item.group}}};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string kernel_name(std::string_view name) {
  constexpr std::size_t longest = 40;
  const std::string out = short_kernel(name);
  return out.size() <= longest ? out : out.substr(0, longest - 2) + "..";
}

std::string item_name(const GapItem& item) {
  switch (item.kind) {
    case GapKind::kernels:
      return item.group;
    case GapKind::around:
      return fmt::format("kernels around {}", item.group);
    case GapKind::missing:
      return fmt::format("{} that did not run", item.group);
    case GapKind::extra:
      return fmt::format("not in the program: {}", item.group);
    case GapKind::communication:
      return item.group.empty() ? "exposed communication" : item.group;
    case GapKind::waiting:
      return fmt::format("waiting for {}", item.group.empty() ? "other ranks" : item.group);
    case GapKind::copies:
      return "copies not in the program";
    case GapKind::host:
      return "host gaps and fixed cost";
    case GapKind::pauses:
      return "pauses of the host";
    case GapKind::gaps:
      return "gaps between kernels";
  }
  return "";
}

std::vector<Remedy> remedies_of(const Query& query, const compare::MeasuredStep& measured, const Comparison* comparison,
                                const Request* against, const Context& context) {
  const trace::Vocabulary& vocabulary = *query.vocabulary;
  const bool compiled = query.traces[query.device().trace].compiled;
  std::map<std::string, Remedy> found;
  const double steps = comparison ? static_cast<double>(comparison->matching.steps) : 1.0;
  for (Saving& saving : compare::savings_of(measured, vocabulary, query.chip ? &*query.chip : nullptr)) {
    for (Seconds* time : {&saving.saved, &saving.least, &saving.most}) *time = *time / steps;
    if (steps > 1.0) saving.reason += fmt::format(", in {:.0f} steps", steps);
    const std::string id = saving.id;
    found[id] = {vocabulary.remedy(id), std::move(saving)};
  }
  if (comparison) {
    if (auto saving = needless_logits(*comparison)) found[saving->id] = {vocabulary.remedy(saving->id), *saving};
    const Repricing repricing(*comparison, *against, vocabulary, context);
    for (const trace::RemedyText& remedy : vocabulary.remedies)
      if (!remedy.set.empty())
        if (auto priced = repricing.saving_of(remedy))
          found[remedy.id] = {&remedy, std::move(priced->first), "", std::move(priced->second)};
  }
  constexpr double least = 0.005;  // of the time in which the host does not pause
  trace::Ticks working = measured.total;
  for (const compare::MeasuredCall& call : measured.calls)
    if (trace::seconds(call.late) > vocabulary.host.pause) working -= call.late;
  const Seconds time = trace::seconds(working) / steps;
  std::vector<Remedy> out;
  for (auto& [id, remedy] : found) {
    if (!remedy.text || (compiled && remedy.text->compiled.empty()) || !(remedy.saving.saved > least * time)) continue;
    remedy.lines = compiled ? remedy.text->compiled : remedy.text->lines;
    out.push_back(std::move(remedy));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Remedy& a, const Remedy& b) { return a.saving.saved > b.saving.saved; });
  // The best of several ways to make one change.
  for (std::size_t i = 0; i < out.size(); ++i)
    out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(i) + 1, out.end(),
                             [&](const Remedy& other) { return other.text->change == out[i].text->change; }),
              out.end());
  return out;
}

std::string remedy_of(const GapItem& item, const Comparison& comparison, const std::vector<Remedy>& remedies) {
  for (const Remedy& remedy : remedies)
    for (const auto& [kind, group] : remedy.saving.items)
      if (kind == item.kind && (group.empty() || group == item.group))
        return fmt::format("{}: saves {}", remedy.text->change, short_quantity(remedy.saving.saved));
  constexpr double least = 0.002;  // of the step
  if (item.kind == GapKind::missing && item.predicted > least * comparison.waterfall.measured) {
    const std::string step =
        item.step < 0 ? item.group : short_step(comparison.prediction.lines[static_cast<std::size_t>(item.step)].text);
    return fmt::format("no kernel was found for {}: part of another one, or the request differs from what ran", step);
  }
  return "";
}

void add_advice(const std::vector<Remedy>& remedies, Seconds time, report::Members& out) {
  report::Items rows;
  for (const Remedy& remedy : remedies) {
    const Saving& saving = remedy.saving;
    report::Members row{{"id", saving.id},
                        {"change", remedy.text->change},
                        {"saves", saving.saved},
                        {"saves_least", saving.least},
                        {"saves_most", saving.most}};
    if (time > Seconds(0)) row.emplace_back("share", saving.saved / time);
    row.emplace_back("reason", saving.reason);
    if (!remedy.lines.empty()) row.emplace_back("lines", remedy.lines);
    row.emplace_back("priced_by", remedy.request.empty() ? "profile" : "engine");
    if (!remedy.request.empty()) row.emplace_back("request", remedy.request);
    rows.emplace_back(std::move(row));
  }
  out.emplace_back("advice", std::move(rows));
}

}  // namespace assay::verbs::profile
