#include "assay/profile/compare/waterfall.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace assay::compare {
namespace {

/// Sums over a step that are made of many calls.
class Ledger {
 public:
  /// Without a queue, the profile does not tell what the host did.
  Ledger(const MeasuredStep& measured, const Prediction& prediction, const Matching& matching,
         const trace::Vocabulary& vocabulary, const HostQueue* queue)
      : measured_(measured),
        prediction_(prediction),
        matching_(matching),
        vocabulary_(vocabulary),
        queue_(queue),
        each_(static_cast<double>(matching.steps)) {
    out_.steps.resize(prediction.lines.size());
    for (std::size_t i = 0; i < out_.steps.size(); ++i) out_.steps[i].line = static_cast<std::uint32_t>(i);
    longest_.resize(prediction.lines.size(), -1.0);
    for (const std::vector<std::uint32_t>& group : matching.groups) groups_.push_back(shares(group));
  }

  Waterfall finish() {
    out_.predicted = prediction_.time;
    out_.measured = per_step(measured_.total);
    add_calls();
    add_lines();
    add_idle();
    item(GapKind::communication, "").predicted += prediction_.communication;
    if (prediction_.stage) {
      item(GapKind::communication, handovers).predicted += prediction_.handover;
      item(GapKind::waiting, other_stages).predicted += prediction_.bubble;
    }
    for (auto& [key, one] : items_)
      if (one.predicted != Seconds(0) || one.measured != Seconds(0)) out_.items.push_back(std::move(one));
    Seconds sum = out_.predicted;
    for (const GapItem& one : out_.items) sum += one.difference();
    out_.residual = out_.measured - sum;
    std::stable_sort(out_.items.begin(), out_.items.end(), [](const GapItem& a, const GapItem& b) {
      return std::abs(a.difference().value()) > std::abs(b.difference().value());
    });
    return std::move(out_);
  }

 private:
  static constexpr std::string_view handovers = "sends and receives", other_stages = "other stages";
  using Shares = std::vector<std::pair<std::uint32_t, double>>;  ///< of lines

  Seconds per_step(trace::Ticks ticks) const { return trace::seconds(ticks) / each_; }
  void add(GapItem one) {
    GapItem& known = item(one.kind, one.group);
    known.predicted += one.predicted;
    known.measured += one.measured;
  }
  GapItem& item(GapKind kind, std::string_view group) {
    GapItem& one = items_[{kind, std::string(group)}];
    one.kind = kind;
    one.group = group;
    return one;
  }

  /// A call of several steps belongs to each by its predicted time.
  Shares shares(const std::vector<std::uint32_t>& places) const {
    std::map<std::uint32_t, double> by_line;
    double sum = 0.0;
    for (const std::uint32_t place : places) {
      const std::uint32_t line = matching_.order[place];
      const double weight = std::max(prediction_.lines[line].time.value(), 1e-15);
      by_line[line] += weight;
      sum += weight;
    }
    Shares out;
    for (const auto& [line, weight] : by_line) out.emplace_back(line, weight / sum);
    return out;
  }

  void add_calls() {
    std::vector<char> ran(matching_.order.size(), 0);
    std::vector<char> group_ran(matching_.groups.size(), 0);
    double all = 0.0, matched = 0.0;
    for (std::size_t i = 0; i < measured_.calls.size(); ++i) {
      const MeasuredCall& call = measured_.calls[i];
      const CallMatch& match = matching_.calls[i];
      const auto length = static_cast<double>(call.duration);
      all += length;
      if (call.work == trace::WorkClass::communication) {
        matched += length;
        add_communication(i);
        continue;
      }
      if (matching_.places(match).empty()) {
        const bool copies = call.work == trace::WorkClass::copy;
        add_call(copies ? item(GapKind::copies, "") : item(GapKind::extra, vocabulary_.categories[call.category].name),
                 i, call.alone);
        continue;
      }
      matched += length;
      add_matched(i, match.group >= 0 ? groups_[static_cast<std::size_t>(match.group)] : shares(match.places));
      if (match.group >= 0)
        group_ran[static_cast<std::size_t>(match.group)] = 1;
      else if (!match.around)
        for (const std::uint32_t place : match.places) ran[place] = 1;
    }
    for (std::size_t g = 0; g < group_ran.size(); ++g)
      if (group_ran[g])
        for (const std::uint32_t place : matching_.groups[g]) ran[place] = 1;
    share_twins(ran);
    for (std::size_t place = 0; place < ran.size(); ++place)
      if (ran[place]) out_.steps[matching_.order[place]].ran += 1.0 / each_;
    out_.matched_share = all > 0.0 ? matched / all : 0.0;
  }

  /// In a pipeline, a send or receive that lasts longer than the shortest one waits for the other stage.
  void add_communication(std::size_t i) {
    const MeasuredCall& call = measured_.calls[i];
    const bool between = prediction_.stage.has_value() && call.handover;
    const trace::Ticks waited =
        between ? std::clamp<trace::Ticks>(call.duration - shortest_handover(call.kernel), 0, call.alone) : call.waited;
    add_call(item(GapKind::communication, between ? handovers : ""), i, call.alone - waited);
    if (waited > 0) add_call(item(GapKind::waiting, between ? other_stages : ""), i, waited);
  }
  trace::Ticks shortest_handover(const std::string& kernel) {
    const auto [known, is_new] = shortest_.try_emplace(kernel, 0);
    if (!is_new) return known->second;
    for (const MeasuredCall& call : measured_.calls)
      if (call.handover && call.kernel == kernel && (known->second == 0 || call.duration < known->second))
        known->second = call.duration;
    return known->second;
  }

  /// Kernels do not tell steps nearby of equal sizes apart, such as rotations of queries and of as many keys: where one
  /// of them ran, all did.
  void share_twins(std::vector<char>& ran) const {
    constexpr std::size_t near = 16;
    const std::vector<char> found = ran;
    for (std::size_t place = 0; place < ran.size(); ++place) {
      const PredictedLine& line = prediction_.lines[matching_.order[place]];
      const trace::StepSigns* signs = vocabulary_.step_signs(program::name(line.op));
      if (found[place] || !signs || signs->signs.empty() || signs->exact) continue;
      const std::size_t from = place > near ? place - near : 0, to = std::min(ran.size(), place + near + 1);
      for (std::size_t other = from; other < to && !ran[place]; ++other) {
        const PredictedLine& twin = prediction_.lines[matching_.order[other]];
        ran[place] = found[other] && twin.op == line.op && twin.phase == line.phase && twin.bytes == line.bytes;
      }
    }
  }

  void add_call(GapItem& one, std::size_t call, trace::Ticks alone) {
    one.measured += per_step(alone);
    one.kernels += static_cast<double>(measured_.calls[call].kernels) / each_;
    if (one.call < 0 || measured_.calls[call].alone > measured_.calls[static_cast<std::size_t>(one.call)].alone)
      one.call = static_cast<std::int64_t>(call);
  }

  void add_matched(std::size_t i, const Shares& lines) {
    const MeasuredCall& call = measured_.calls[i];
    const bool around = matching_.calls[i].around;
    Seconds left = per_step(call.alone);
    for (std::size_t k = 0; k < lines.size(); ++k) {
      const auto& [line, share] = lines[k];
      const Seconds part = k + 1 == lines.size() ? left : share * per_step(call.alone);
      left -= part;
      StepGap& step = out_.steps[line];
      (around ? step.around : step.measured) += part;
      step.kernels += share * static_cast<double>(call.kernels) / each_;
      if (!around && part.value() > longest_[line])
        longest_[line] = part.value(), step.call = static_cast<std::uint32_t>(i);
      GapItem& one = item(around ? GapKind::around : GapKind::kernels, class_of(prediction_.lines[line], matching_));
      one.measured += part;
      one.masked |= call.masked;
      one.kernels += share * static_cast<double>(call.kernels) / each_;
      if (one.call < 0 || call.alone > measured_.calls[static_cast<std::size_t>(one.call)].alone)
        one.call = static_cast<std::int64_t>(i);
    }
  }

  /// Idle time that the host leaves while kernels take as long as predicted. Without launches in the profile, what a
  /// step costs beyond its kernels.
  void add_idle() {
    trace::Ticks paused = 0;
    IdleTime idle{prediction_.overhead, {}};
    if (queue_) {
      out_.host = queue_->pace();
      out_.host->launches /= each_;
      idle = queue_->idle(predicted_shares());
      idle = {idle.dry / each_, idle.between / each_};
      paused = queue_->paused();
    }
    out_.predicted += idle.dry + idle.between - prediction_.overhead;
    add({GapKind::host, "", idle.dry, per_step(measured_.host_gaps - paused)});
    add({GapKind::pauses, "", Seconds(0), per_step(paused)});
    add({GapKind::gaps, "", idle.between, per_step(measured_.other_gaps)});
  }

  /// Of each call: predicted over measured time of its step. Kernels between products are not always told apart: all of
  /// them share one ratio.
  std::vector<double> predicted_shares() const {
    const auto is_known = [&](std::size_t line) {
      const program::Op op = prediction_.lines[line].op;
      return op == program::Op::product || op == program::Op::update || program::is_attention(op);
    };
    Seconds predicted, measured;
    for (const StepGap& step : out_.steps)
      if (!is_known(step.line)) predicted += step.predicted, measured += step.measured;
    const double others = measured > Seconds(0) ? predicted / measured : 1.0;
    std::vector<double> share(measured_.calls.size(), 1.0);
    for (std::size_t i = 0; i < share.size(); ++i) {
      const CallMatch& match = matching_.calls[i];
      if (match.around || matching_.places(match).empty()) continue;
      const StepGap& step = out_.steps[matching_.order[matching_.places(match).front()]];
      if (!is_known(step.line))
        share[i] = others;
      else if (step.measured > Seconds(0))
        share[i] = step.predicted / step.measured;
    }
    return share;
  }

  /// What was predicted of steps that ran and that did not.
  void add_lines() {
    for (std::size_t i = 0; i < prediction_.lines.size(); ++i) {
      const PredictedLine& line = prediction_.lines[i];
      StepGap& step = out_.steps[i];
      const std::string_view group = class_of(line, matching_);
      step.predicted = step.ran * line.time;
      const double absent = static_cast<double>(line.runs) - step.ran;
      if (step.ran > 0.0) {
        GapItem& one = item(GapKind::kernels, group);
        one.predicted += step.predicted;
        if (one.step < 0 || std::abs(step.difference().value()) >
                                std::abs(out_.steps[static_cast<std::size_t>(one.step)].difference().value()))
          one.step = static_cast<std::int64_t>(i);
      }
      if (absent > 0.0) {
        GapItem& one = item(GapKind::missing, group);
        const Seconds time = absent * line.time;
        if (one.step < 0 || time > prediction_.lines[static_cast<std::size_t>(one.step)].time)
          one.step = static_cast<std::int64_t>(i);
        one.predicted += time;
        one.kernels += absent;
      }
    }
  }

  const MeasuredStep& measured_;
  const Prediction& prediction_;
  const Matching& matching_;
  const trace::Vocabulary& vocabulary_;
  const HostQueue* queue_;
  double each_;
  std::vector<Shares> groups_;
  std::vector<double> longest_;
  std::map<std::string, trace::Ticks> shortest_;  ///< of sends and receives, by kernel
  std::map<std::pair<GapKind, std::string>, GapItem> items_;
  Waterfall out_;
};

}  // namespace

std::string_view name(GapKind kind) {
  constexpr std::string_view names[] = {"kernels", "around", "missing", "extra",  "communication",
                                        "waiting", "copies", "host",    "pauses", "gaps"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view class_of(const PredictedLine& line, const Matching& matching) {
  if (!matching.by_class) return class_of(line.op);
  if (line.op == program::Op::product || program::is_attention(line.op)) return class_of(line.op);
  const bool apart = line.op == program::Op::update && matching.groups.size() > 2 && !matching.groups[2].empty();
  return apart ? class_of(line.op) : "element-wise and the rest";
}

Waterfall waterfall(const MeasuredStep& measured, const Prediction& prediction, const Matching& matching,
                    const trace::Vocabulary& vocabulary) {
  const HostQueue queue(measured, vocabulary.host);
  if (!queue.pace() || matching.by_class || prediction.stage)
    return Ledger(measured, prediction, matching, vocabulary, nullptr).finish();
  const Prediction kernels = without_gaps(prediction, vocabulary.host.between);
  return Ledger(measured, kernels, matching, vocabulary, &queue).finish();
}

}  // namespace assay::compare
