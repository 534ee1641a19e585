#include "assay/ask/verbs/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/report/figures.h"

namespace assay::verbs::profile {
namespace {

using compare::GapItem;
using compare::GapKind;
using report::short_quantity;

/// The same request with another value of one option.
struct Alternative {
  std::string option, value;
  std::map<std::string, Seconds, std::less<>> by_class;
};

std::map<std::string, Seconds, std::less<>> class_times(const compare::Prediction& prediction,
                                                        const compare::Matching& matching) {
  std::map<std::string, Seconds, std::less<>> out;
  for (const compare::PredictedLine& line : prediction.lines)
    out[std::string(compare::class_of(line, matching))] += static_cast<double>(line.runs) * line.time;
  return out;
}

/// Options of train and serve that say how kernels are made, and the class that each is tried for.
struct Choice {
  std::string_view option, value, of;
};
constexpr Choice choices[] = {{"attention-kernel", "cudnn", "attention"},
                              {"attention-kernel", "flash2", "attention"},
                              {"explicit-mask", "no", "attention"},
                              {"cache-kernel", "matrix", "attention"},
                              {"loss", "fused", "loss"},
                              {"fusion", "compiled", ""},
                              {"fusion", "fused", ""}};

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

class Remedies {
 public:
  Remedies(const Comparison& comparison, const Request& against, const Context& context)
      : comparison_(comparison), against_(against), context_(context) {}

  std::string of(const GapItem& item) {
    constexpr double least = 0.002;  // of the step
    const Seconds by = item.difference();
    if (std::abs(by.value()) < least * comparison_.waterfall.measured.value()) return "";
    switch (item.kind) {
      case GapKind::kernels:
        return by > Seconds(0) ? slower(item) : faster(item);
      case GapKind::around:
        return fmt::format("{} beside {}, longest {}: fused into them they save up to {}", counted(item.kernels),
                           item.group, call_text(item), short_quantity(item.measured));
      case GapKind::missing:
        return fmt::format("no kernel was found for {}: part of another one, or the request differs from what ran",
                           step_text(item));
      case GapKind::extra:
        return more_logits(item)
                   ? "logits of all tokens: a prefill needs those of the last token of each sequence alone"
                   : fmt::format("{}, longest {}: not part of the predicted step", counted(item.kernels),
                                 call_text(item));
      case GapKind::communication:
        return by > Seconds(0) ? "more of it is exposed than predicted: start it earlier, or give it more to run beside"
                               : "less of it is exposed than predicted: it overlaps more";
      case GapKind::waiting:
        if (!item.group.empty())
          return by > Seconds(0)
                     ? "other stages send later than predicted: balance their layers, or use more microbatches"
                     : "other stages send earlier than predicted";
        return "other ranks reach the collectives later: balance their work, see the ranks of the profile";
      case GapKind::copies:
        return fmt::format("{}, longest {}: keep the data on the device, or copy while kernels run",
                           counted(item.kernels), call_text(item));
      case GapKind::host:
        return by > Seconds(0)
                   ? dry_text()
                   : "the host stays ahead of the device, so less of the fixed cost is visible than predicted";
      case GapKind::pauses:  // no matter of launches
        return fmt::format(
            "the host paused, longest {} before {}, perhaps to prepare it for a new shape: keep shapes the same",
            short_quantity(trace::seconds(comparison_.measured.longest_gap)),
            kernel_name(comparison_.measured.longest_gap_before));
      case GapKind::gaps:
        return fmt::format("{} a step leave short gaps between them: fewer kernels, or captured graphs, close them",
                           counted(all_kernels()));
    }
    return "";
  }

 private:
  std::string dry_text() const {
    return fmt::format(
        "the device runs dry, longest {} before {}: launch from captured graphs, compile, or raise the batch",
        short_quantity(trace::seconds(comparison_.measured.longest_gap)),
        kernel_name(comparison_.measured.longest_gap_before));
  }

  /// Whether the longest call is the head on more tokens than predicted.
  bool more_logits(const GapItem& item) const {
    const compare::MeasuredCall* call = call_of(item);
    if (!call || call->kind != compare::MeasuredCall::Kind::product || comparison_.prediction.what != "prefill")
      return false;
    return std::any_of(comparison_.prediction.lines.begin(), comparison_.prediction.lines.end(),
                       [&](const compare::PredictedLine& line) {
                         const double times = call->flops / line.flops;
                         return line.block == "head" && line.op == program::Op::product && times > 1.5 &&
                                std::abs(times - std::round(times)) < 1e-3;
                       });
  }

  static std::string counted(double kernels) {
    const double shown = std::round(kernels);
    return fmt::format("{} kernel{}", shown, shown == 1.0 ? "" : "s");
  }
  double all_kernels() const {
    double sum = 0.0;
    for (const compare::MeasuredCall& call : comparison_.measured.calls) sum += static_cast<double>(call.kernels);
    return sum / static_cast<double>(comparison_.matching.steps);
  }
  const compare::MeasuredCall* call_of(const GapItem& item) const {
    return item.call < 0 ? nullptr : &comparison_.measured.calls[static_cast<std::size_t>(item.call)];
  }
  std::string call_text(const GapItem& item) const {
    const compare::MeasuredCall* call = call_of(item);
    if (!call) return "";
    std::string shapes = call->shapes;
    if (const std::size_t second = shapes.find(' '); second != std::string::npos) shapes.resize(second);
    return call->known ? fmt::format("{}{}{}", call->label, shapes.empty() ? "" : " ", shapes)
                       : kernel_name(call->kernel);
  }
  std::string step_text(const GapItem& item) const {
    return item.step < 0 ? item.group
                         : short_step(comparison_.prediction.lines[static_cast<std::size_t>(item.step)].text);
  }

  /// What else is known for the class, if it is faster than what ran.
  std::string known_better(const GapItem& item) {
    std::string out;
    Seconds best = std::min(item.measured, item.predicted) * 0.95;
    for (const Choice& choice : choices) {
      if (!choice.of.empty() && choice.of != item.group) continue;
      const Alternative* other = alternative(choice);
      if (!other) continue;
      const auto time = other->by_class.find(item.group);
      if (time == other->by_class.end() || !(time->second < best)) continue;
      best = time->second;
      out = fmt::format("; --{} {} would take {}", other->option, other->value, short_quantity(best));
    }
    return out;
  }

  const Alternative* alternative(const Choice& choice) {
    const auto [known, is_new] = tried_.try_emplace(std::pair(choice.option, choice.value));
    if (is_new && find_option(against_.verb(), choice.option) &&
        against_.value(choice.option) != std::string(choice.value)) {
      const Result<Predicted> predicted = predict(against_.with(choice.option, std::string(choice.value)), context_);
      if (predicted)
        for (const compare::Prediction& one : predicted->steps)
          if (one.what == comparison_.prediction.what && one.stage == comparison_.prediction.stage)
            known->second = Alternative{std::string(choice.option), std::string(choice.value),
                                        class_times(one, comparison_.matching)};
    }
    return known->second ? &*known->second : nullptr;
  }

  std::string slower(const GapItem& item) {
    const compare::MeasuredCall* call = call_of(item);
    const std::string better = known_better(item);
    const std::string ran = call ? kernel_name(call->kernel) : "";
    if (item.masked) return "has a mask in memory, so the masked half is computed too" + better;
    if (call && call->known && item.group == "attention" && call->kind == compare::MeasuredCall::Kind::other)
      return fmt::format("mostly {} around it: reading keys and values in place saves that{}", call_text(item), better);
    const double runs = runs_of(item);
    if (!is_learned(item) && item.group != "update" && runs > 0.0 && item.kernels >= 1.5 * runs)
      return fmt::format("{} for {:.0f} steps of the program: fused, they move less memory{}", counted(item.kernels),
                         runs, better);
    const std::string what =
        item.group == "update" ? update_text(item) : fmt::format("most of it in {}, as {}", step_text(item), ran);
    return what + (better.empty() && is_learned(item) ? "; `assay measure --profile` learns these times" : better);
  }

  std::string update_text(const GapItem& item) const {
    Bytes bytes;
    for (const compare::PredictedLine& line : comparison_.prediction.lines)
      if (line.op == program::Op::update) bytes += static_cast<double>(line.runs) * line.bytes;
    return fmt::format("{} move {} at {}; fewer, larger kernels would be faster", counted(item.kernels),
                       short_quantity(bytes), short_quantity(bytes / item.measured));
  }

  static std::string faster(const GapItem& item) {
    return is_learned(item) ? "faster than the chip's calibration: `assay measure --profile` learns these times"
                            : "faster than other software of this kind: nothing to do";
  }
  /// What a calibration has rows of.
  static bool is_learned(const GapItem& item) { return item.group == "products" || item.group == "attention"; }

  double runs_of(const GapItem& item) const {
    double sum = 0.0;
    for (const compare::StepGap& step : comparison_.waterfall.steps)
      if (compare::class_of(comparison_.prediction.lines[step.line], comparison_.matching) == item.group)
        sum += step.ran;
    return sum;
  }

  const Comparison& comparison_;
  const Request& against_;
  const Context& context_;
  std::map<std::pair<std::string_view, std::string_view>, std::optional<Alternative>> tried_;
};

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

std::vector<std::string> remedies_of(const Comparison& comparison, const Request& against, const Context& context) {
  Remedies remedies(comparison, against, context);
  std::vector<std::string> out;
  for (const GapItem& item : comparison.waterfall.items) out.push_back(remedies.of(item));
  return out;
}

}  // namespace assay::verbs::profile
