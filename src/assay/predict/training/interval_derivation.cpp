#include "assay/predict/training/interval_derivation.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "assay/predict/clock/critical_path.h"
#include "assay/predict/clock/gpipe.h"

namespace assay::training {
namespace {

using TracedTime = NumberOf<Traced, Seconds>;
using StageDeriver = std::function<DerivedStage(const clock::StageSplit::Part&)>;

/// "4 layers and the head".
std::string part_text(const clock::StageSplit::Part& part) {
  int layers = 0;
  for (const std::int16_t n : part.layers) layers += n;
  return fmt::format("{} layers{}{}", layers, part.first ? " and the embedding" : "", part.last ? " and the head" : "");
}

class IntervalDeriver {
 public:
  IntervalDeriver(const Traced& num, const IntervalQuestion& question, const StageDeriver& stage)
      : num_(num),
        inputs_(question.inputs),
        stage_(stage),
        split_(question.split),
        runs_(stage_runs(*inputs_.question.setup.model, inputs_.strategy.parallelism.pipeline,
                         inputs_.strategy.schedule, inputs_.strategy.interleave)),
        send_(question.send) {}

  TracedTime interval(const MicrobatchCost& microbatch) {
    StepEvents events;
    clock::PipelineInput input = events.fill(inputs_, split_, runs_, microbatch);
    const clock::PipelineClock::Sample sample = events.sample();
    input.shape = sample.shape;
    if (input.shape.schedule == clock::PipelineSchedule::gpipe)
      return num_.named("interval", clock::gpipe_interval(
                                        num_, input.shape, send_, [&](std::size_t stage) { return pass({stage}); },
                                        [&](std::size_t stage) {
                                          return pass({stage, clock::PipelineWork::backward});
                                        },
                                        [&](std::size_t stage) { return end_of(stage); }));
    const clock::CriticalPath path = clock::critical_path(input, sample.echo);
    TracedTime interval = num_.named("passes to the end of the stage", chain(path.to_end)) + end_of(path.stage) -
                          num_.named("passes until it begins", chain(path.to_begin));
    if (sample.left_out > 0.0)
      interval =
          interval + num_.given("further periods", sample.left_out, "equal ones, of a few microbatches each") *
                         num_.named("period", num_.named("passes to the next period", chain(path.to_next_period)) -
                                                  num_.named("passes to a period", chain(path.to_period)));
    return num_.named("interval", interval);
  }

 private:
  TracedTime end_of(std::size_t stage) {
    const auto [known, is_new] = ends_.try_emplace(split_.part_of[stage]);
    if (!is_new) return known->second;
    const DerivedStage part = stage_(split_.parts[static_cast<std::size_t>(split_.part_of[stage])]);
    return known->second = num_.named("end of the step",
                                      part.gradients - scheduled<Traced>(part, inputs_.strategy).hidden_gradients +
                                          part.update + part.host.update);
  }

  TracedTime chain(const std::vector<clock::OperationWork>& steps) {
    TracedTime sum;
    for (const clock::OperationWork& step : steps) {
      if (step.part != clock::OperationWork::none) sum = sum + work(step);
      if (step.is_sent) sum = sum + send_;
    }
    return sum;
  }

  TracedTime work(const clock::OperationWork& step) {
    if (step.mate == clock::OperationWork::none) return pass(step);
    return pass({step.part}) + pass({step.mate, clock::PipelineWork::backward});
  }

  TracedTime pass(const clock::OperationWork& step) {
    const auto run = static_cast<std::size_t>(runs_.part_of[step.part]);
    const auto [known, is_new] = works_.try_emplace({run, step.work});
    if (!is_new) return known->second;
    const auto times = scheduled<Traced>(stage_(runs_.parts[run]), inputs_.strategy).times;
    using enum clock::PipelineWork;
    const auto [word, time] = step.work == forward          ? std::pair("forward", times.forward)
                              : step.work == backward_input ? std::pair("input gradients", times.backward_input)
                              : step.work == backward_weight
                                  ? std::pair("weight gradients", times.backward_weight)
                                  : std::pair("backward", times.backward_input + times.backward_weight);
    return known->second = num_.named(fmt::format("{} of {}", word, part_text(runs_.parts[run])), time);
  }

  const Traced& num_;
  const StepInputs& inputs_;
  const StageDeriver& stage_;
  const clock::StageSplit& split_;
  clock::StageSplit runs_;
  TracedTime send_;
  std::map<std::pair<std::size_t, clock::PipelineWork>, TracedTime> works_;
  std::map<int, TracedTime> ends_;
};

}  // namespace

TracedTime derive_interval(const Traced& num, const IntervalQuestion& question, const StageDeriver& stage) {
  return IntervalDeriver(num, question, stage).interval(question.microbatch);
}

}  // namespace assay::training
