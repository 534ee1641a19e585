// Fits attention by family and kernel, forward and backward together because papers time both at once; and the kernels
// that stream memory.
#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/lab/fit/fit.h"

namespace assay::validate {
namespace {

bool is_attention(const KernelRow& row) {
  return row.kernel.kind == KernelKind::attention_forward || row.kernel.kind == KernelKind::attention_backward ||
         row.kernel.kind == KernelKind::attention_both;
}

bool is_pointwise(const KernelRow& row) {
  return row.kernel.kind >= KernelKind::stream && row.kernel.kind <= KernelKind::optimizer;
}

bool belongs(const FitProblem& problem, const KernelRow& row, const std::string& id) {
  return calibration_id(problem, row.chip, row.kernel.kind) == id;
}

bool any_row(const FitProblem& problem, const std::function<bool(const KernelRow&)>& take) {
  return std::any_of(problem.kernels.begin(), problem.kernels.end(),
                     [&](const KernelRow& row) { return row.fitted && take(row); });
}

/// The fixed times of a harness, one number per kind, so that none hides behind another.
void fit_launches(FitProblem& problem, const std::string& source, const std::function<bool(const KernelRow&)>& take) {
  for (std::size_t kind = 0; kind < kernel_kinds; ++kind) {
    const auto mine = [&](const KernelRow& row) {
      return take(row) && row.source == source && static_cast<std::size_t>(row.kernel.kind) == kind;
    };
    if (kind != static_cast<std::size_t>(KernelKind::attention_both) && any_row(problem, mine))
      minimise(
          {fit(problem.harnesses.at(source).launch[kind],
               problem.ranges.launch(source, problem.ranges.of("measuring")["kernel_launch"]))},
          [&] { return kernel_misfit(problem, mine); }, 60);
  }
}

/// Both passes in one measurement have two launches, that of a backward pass without rows as that of the forward pass.
/// Rows do not tell them: sequences of all lengths have as many tokens in papers, so that their bytes take a fixed
/// time, too.
void launch_twice(const FitProblem& problem, const std::string& source, Harness& harness) {
  using enum KernelKind;
  const auto launch = [&](KernelKind kind) -> Seconds& { return harness.launch[static_cast<std::size_t>(kind)]; };
  const bool timed = any_row(
      problem, [&](const KernelRow& row) { return row.source == source && row.kernel.kind == attention_backward; });
  launch(attention_both) = launch(attention_forward) + launch(timed ? attention_backward : attention_forward);
}

/// All numbers of a pass: how rows of tiles follow each other, and those of heads that have rows, too.
std::vector<FitParameter> pass_parameters(const FitProblem& problem, const std::function<bool(const KernelRow&)>& take,
                                          double head_step, const RangeTable& ranges, hardware::AttentionPass& pass,
                                          bool backward) {
  std::vector<FitParameter> parameters{fit(pass.share, ranges["share"])};
  const auto some = [&](const auto& head) {
    return any_row(problem, [&](const KernelRow& row) { return take(row) && head(row.kernel.attention.head_dim); });
  };
  const auto padded = [&](double size) { return kernel::kernel_head(size, head_step); };
  const auto add = [&]<class T>(std::optional<T>& number, const AnyRange& range) {
    if (!number) number = range.start<T>();
    parameters.push_back(fit(*number, range));
  };
  // Heads of one size do not tell the softmax from the products.
  const auto narrow = [&](double size) { return padded(size) <= hardware::whole_row; };
  if (some(narrow) && some([&](double size) { return !narrow(size); }))
    parameters.push_back(fit(pass.softmax, ranges["softmax"]));
  if (some([](double size) { return size > hardware::wide_head; }))
    parameters.push_back(fit(pass.wide, ranges["wide"]));
  const bool own = any_row(problem, [&](const KernelRow& row) { return take(row) && is_own(row.source); });
  const bool both = any_row(
      problem, [&](const KernelRow& row) { return take(row) && row.kernel.kind == KernelKind::attention_both; });
  // Nothing in a forward pass waits for memory but the start of a row; a backward pass adds up gradients in it.
  if (own ? backward : both)
    parameters.push_back(fit(pass.passes, ranges["passes"]));
  else if (!backward)
    pass.passes = 0.0;
  // Full cores and the usual heads, as in tables of papers, do not tell the others from the rest.
  if (!own) return parameters;
  add(pass.start, ranges["start"]);
  add(pass.tail, ranges["tail"]);
  // Kernels with heads of whole rows load them by bulk copies, which fill up what a head lacks at no cost.
  const bool bulk = head_step == hardware::whole_row;
  if (!bulk && some([&](double size) { return padded(size) > size; })) add(pass.uneven, ranges["uneven"]);
  if (some([&](double size) { return std::fmod(padded(size), hardware::whole_row) != 0.0; }))
    add(pass.part_row, ranges["part_row"]);
  return parameters;
}

/// Whether its table times what an engine does around the kernel, too.
bool in_engine(const FitProblem& problem, const std::string& source) {
  return std::any_of(problem.ranges.tables.begin(), problem.ranges.tables.end(),
                     [&](const HarnessStart& table) { return table.engine && table.name == source; });
}

void fit_kernel(FitProblem& problem, const std::string& id, hardware::AttentionKernel choice,
                hardware::AttentionKernelCalibration& kernel) {
  // Where we have measurements of the kernel alone, ignore tables that time more than the kernel.
  const bool alone = any_row(problem, [&](const KernelRow& row) {
    return is_attention(row) && row.kernel.library == choice && belongs(problem, row, id) &&
           !in_engine(problem, row.source);
  });
  const auto mine = [&](const KernelRow& row) {
    return is_attention(row) && row.kernel.library == choice && belongs(problem, row, id) &&
           (!alone || !in_engine(problem, row.source));
  };
  if (family_of_calibration(problem, id).kernels->paged_attention || !any_row(problem, mine)) return;
  const RangeTable ranges = problem.ranges.of("attention");
  const auto has = [&](KernelKind kind) {
    return any_row(problem, [&](const KernelRow& row) { return mine(row) && row.kernel.kind == kind; });
  };
  std::vector<FitParameter> parameters;
  if (!alone) {  // tables that time more than the kernel determine only one number
    if (has(KernelKind::attention_forward)) parameters.push_back(fit(kernel.forward.share, ranges["table_share"]));
    if (has(KernelKind::attention_backward)) parameters.push_back(fit(kernel.backward.share, ranges["table_share"]));
    if (parameters.empty()) return;
    minimise(parameters, [&] { return kernel_misfit(problem, mine); });
    if (!has(KernelKind::attention_backward))
      kernel.backward.share = std::min(ranges.inside("backward")["share"].start(), kernel.forward.share);
    return;
  }
  const bool both = has(KernelKind::attention_both), apart = has(KernelKind::attention_forward);
  const auto fit_pass = [&](KernelKind kind, hardware::AttentionPass& pass, const RangeTable& range) {
    if (!both && !has(kind)) return;
    const auto of_pass = [&](const KernelRow& row) {
      return mine(row) && (row.kernel.kind == kind || row.kernel.kind == KernelKind::attention_both);
    };
    const double head_step = kernel.head_step.value_or(kernel::usual_head_step);
    // Times of both passes together do not tell one from the other: they have the same numbers.
    const auto spread = [&] {
      if (!apart) kernel.backward = kernel.forward;
    };
    minimise(
        pass_parameters(problem, of_pass, head_step, range, pass, kind == KernelKind::attention_backward),
        [&] {
          spread();
          return kernel_misfit(problem, of_pass);
        },
        1000);
    spread();
  };
  fit_pass(KernelKind::attention_forward, kernel.forward, ranges.inside("forward"));
  if (apart || !both) fit_pass(KernelKind::attention_backward, kernel.backward, ranges.inside("backward"));
  // An unmeasured backward pass is no better than the forward pass.
  if (!both && has(KernelKind::attention_forward) && !has(KernelKind::attention_backward))
    kernel.backward.share = std::min(ranges.inside("backward")["share"].start(), kernel.forward.share);
}

void fit_decode(FitProblem& problem, const std::string& id, hardware::AttentionKernel choice,
                hardware::DecodeCalibration& decode) {
  const auto decodes = [&](const KernelRow& row) {
    return row.kernel.kind == KernelKind::decode && row.kernel.library == choice && belongs(problem, row, id);
  };
  // Inference tables also time rotary embedding and cache writes: ignore them where the kernel was measured alone.
  const bool alone = any_row(problem, [&](const KernelRow& row) { return decodes(row) && is_own(row.source); });
  const auto mine = [&](const KernelRow& row) { return decodes(row) && (!alone || is_own(row.source)); };
  if (!any_row(problem, mine)) return;
  const RangeTable ranges = problem.ranges.of("attention").inside("decode");
  std::vector<FitParameter> parameters{fit(decode.share, ranges["share"]), fit(decode.item, ranges["item"])};
  if (alone) parameters.push_back(fit(decode.wide, ranges["wide"]));
  // When a cache is not split is a rule of one library's kernels: others have no such step in their rows.
  if (alone && choice == hardware::AttentionKernel::flash2)
    parameters.push_back(fit(decode.crowded, ranges["crowded"]));
  minimise(parameters, [&] { return kernel_misfit(problem, mine); });
  if (!alone) decode.wide = decode.share;
}

}  // namespace

void fit_attention(FitProblem& problem) {
  for (const OwnStart& own : problem.ranges.own_tables)
    if (!own.rested_as.empty()) problem.harnesses.at(own.name).gap = problem.harnesses.at(own.rested_as).gap;
  const auto all = [](const KernelRow& row) { return is_attention(row) || row.kernel.kind == KernelKind::decode; };
  for (int round = 0; round < 5; ++round) {
    for (auto& [id, calibration] : problem.calibrations) {
      if (!calibration.attention) continue;
      auto& [flash2, cudnn] = *calibration.attention;
      if (flash2) fit_kernel(problem, id, hardware::AttentionKernel::flash2, *flash2);
      if (cudnn) fit_kernel(problem, id, hardware::AttentionKernel::cudnn, *cudnn);
      if (flash2) fit_decode(problem, id, hardware::AttentionKernel::flash2, flash2->decode);
      if (cudnn) fit_decode(problem, id, hardware::AttentionKernel::cudnn, cudnn->decode);
    }
    for (auto& [source, harness] : problem.harnesses) {
      const auto mine = [&, &name = source](const KernelRow& row) { return all(row) && row.source == name; };
      if (!any_row(problem, mine)) continue;
      fit_launches(problem, source, mine);
      launch_twice(problem, source, harness);
      if (in_engine(problem, source))
        minimise(
            {fit(harness.attention_passes, problem.ranges.of("measuring")["attention_passes"])},
            [&] { return kernel_misfit(problem, mine); }, 60);
    }
  }
}

void fit_pointwise(FitProblem& problem) {
  for (int round = 0; round < 20; ++round) {
    for (auto& [id, calibration] : problem.calibrations) {
      const auto mine = [&, &family = id](const KernelRow& row) {
        return is_pointwise(row) && belongs(problem, row, family);
      };
      if (!calibration.pointwise || !any_row(problem, mine)) continue;
      hardware::PointwiseCalibration& p = *calibration.pointwise;
      const RangeTable ranges = problem.ranges.of("pointwise");
      const std::pair<KernelKind, double*> kinds[] = {{KernelKind::stream, &p.stream},
                                                      {KernelKind::norm, &p.norm},
                                                      {KernelKind::softmax, &p.softmax},
                                                      {KernelKind::optimizer, &p.optimizer}};
      for (const auto& [kind, share] : kinds) {
        const auto same = [&, k = kind](const KernelRow& row) { return mine(row) && row.kernel.kind == k; };
        if (!any_row(problem, same)) continue;
        minimise(
            {fit(*share, ranges[kernel_kind_names[static_cast<std::size_t>(kind)]])},
            [&] { return kernel_misfit(problem, same); }, 60);
      }
      minimise(
          {fit(p.ramp, ranges["ramp"])}, [&] { return kernel_misfit(problem, mine); }, 60);
    }
    for (const auto& [source, harness] : problem.harnesses) fit_launches(problem, source, is_pointwise);
  }
}

}  // namespace assay::validate
