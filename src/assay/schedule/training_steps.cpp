#include "assay/schedule/training_steps.h"

#include <map>

namespace assay {
namespace {

/// What nobody waits for moves in one piece for each layer: bytes of all collectives of a block that go with this one.
double bucket_bytes(const Program& program, const Block& block, const Traffic& one) {
  PassProfile together;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    if (is_collective(step.op)) together.add(step_traffic(program, step, block.phase));
  }
  for (const Traffic& bucket : together.traffic)
    if (bucket.goes_with(one)) return bucket.bytes;
  return one.bytes;
}

}  // namespace

Result<StepTimes> training_step_times(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
                                      const Strategy& strategy, const Program& program) {
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, sequence));
  SteadyCost steady;
  fill_passes(question, strategy, profile, nullptr, links, steady);
  const auto pass_of = [&](const Block& block) -> const PassTime* {
    if (block.phase == Phase::update) return nullptr;
    const auto& passes = block.kind >= 0             ? steady.layers[static_cast<std::size_t>(block.kind)]
                         : block.name == "embedding" ? steady.embedding
                                                     : steady.head;
    return &passes[block.phase == Phase::forward ? 0 : 1];
  };
  StepTimes times;
  times.estimate.resize(program.steps.size());
  std::map<const PassTime*, double> sums;
  for (const Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const Step& step = program.steps[static_cast<std::size_t>(i)];
      Seconds& time = times.estimate[static_cast<std::size_t>(i)];
      if (is_collective(step.op)) {
        const Traffic traffic = step_traffic(program, step, block.phase);
        const double all = traffic.urgency == Urgency::critical ? traffic.bytes : bucket_bytes(program, block, traffic);
        const double share = all > 0.0 ? traffic.bytes / all : 0.0, bytes = all / links.ways(traffic.divided);
        time = Seconds(share * links.forms[traffic.over][StageLinks::line_of(traffic.kind)].seconds(bytes, 1.0));
      } else if (step.op == Op::update) {  // of all weights at once
        time = step.bytes / optimizer_rate(question.setup.rates);
      } else if (step.op != Op::slice) {
        time = kernel_estimate(question.setup, program, step);
        if (const PassTime* pass = pass_of(block)) sums[pass] += time.value();
      }
    }
  for (const Block& block : program.blocks) {
    const PassTime* pass = pass_of(block);
    if (!pass || !(sums[pass] > 0.0)) continue;
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (!is_collective(program.steps[static_cast<std::size_t>(i)].op))
        times.estimate[static_cast<std::size_t>(i)] *= pass->compute / sums[pass];
  }
  return times;
}

}  // namespace assay
