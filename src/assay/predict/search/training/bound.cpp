#include "assay/predict/search/training/bound.h"

#include <algorithm>
#include <cmath>

#include "assay/predict/clock/closed_forms.h"
#include "assay/predict/training/waiting.h"

namespace assay::search {

void LeastTimes::Share::add(const Share& other, double times) {
  both += times * other.both;
  passes.forward += times * other.passes.forward;
  passes.backward += times * other.passes.backward;
  passes.hidden_forward += times * other.passes.hidden_forward;
  passes.hidden_backward += times * other.passes.hidden_backward;
  passes.weight_gradients += times * other.passes.weight_gradients;
  passes.deferral_cost += times * other.passes.deferral_cost;
  passes.deferral_weight_gradients += times * other.passes.deferral_weight_gradients;
  reduce += times * other.reduce;
  behind += times * other.behind;
  behind_deferred += times * other.behind_deferred;
}

void WeightsTimes::lower_to(const WeightsTimes& other) {
  if (!is_known()) shares_ = other.shares_;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    const Share& than = other.shares_[i];
    share.forward = std::min(share.forward, than.forward);
    share.backward = std::min(share.backward, than.backward);
    share.forward_copies = std::min(share.forward_copies, than.forward_copies);
    share.backward_copies = std::min(share.backward_copies, than.backward_copies);
    share.reduce = std::min(share.reduce, than.reduce);
  }
}

TrainingBound::TrainingBound(const training::TrainingQuestion& question)
    : question_(question),
      stragglers_(training::straggler_share(question)),
      whole_(clock::split_stages(*question.setup.model, 1)) {}

void TrainingBound::fill(const training::MicrobatchCost& passes, LeastTimes& least) const {
  // Schedules may hide as much of the exchange between experts as software lets them.
  const auto hidden = [&](Seconds exchange) {
    return training::hidden_exchange(exchange, Seconds(HUGE_VAL), question_.setup.effects.overlap);
  };
  const auto share = [&](const std::array<training::PassTime, 2>& both) {
    const auto& [f, b] = both;
    return LeastTimes::Share{{f.chain() + f.exposed, b.chain() + b.exposed, hidden(f.expert), hidden(b.expert),
                              b.weight_gradients, b.deferral_cost, b.deferral_weight_gradients},
                             Seconds(),
                             f.gradients + b.gradients,
                             b.chain(),
                             b.chain() + b.deferral_chain};
  };
  least.kinds.clear();
  for (const auto& both : passes.layers) least.kinds.push_back(share(both));
  least.embedding = share(passes.embedding);
  least.head = share(passes.head);
  add_up(least);
}

void TrainingBound::fill_share(const training::StepInputs& whole, double share, training::MicrobatchCost& passes,
                               LeastTimes& least) const {
  training::TrainingProfile part = whole.profile;
  const auto each = [&](auto&& visit) {
    for (std::size_t k = 0; k < part.kinds.size(); ++k) visit(part.kinds[k], passes.layers[k]);
    visit(part.embedding, passes.embedding);
    visit(part.head, passes.head);
  };
  passes.layers.resize(part.kinds.size());
  each([&](training::LayerProfile& layer, const std::array<training::PassTime, 2>&) {
    for (training::PassProfile* pass : {&layer.forward, &layer.backward}) {
      for (training::Traffic& traffic : pass->traffic) traffic.bytes *= share;
      pass->slowed = pass->launching = pass->idle = Seconds();
    }
  });
  training::fill_passes({whole.question, whole.strategy, part, nullptr, whole.links}, passes);
  // At the clock that power allows, parts of a pass count as if all of its kernels became faster.
  const auto& matmul = question_.setup.rates.matmul;
  const double slowdown = 1.0 + (matmul ? matmul->droop : 0.0);
  each([&](const training::LayerProfile& layer, std::array<training::PassTime, 2>& both) {
    for (std::size_t i = 0; i < both.size(); ++i) {
      const training::PassProfile& pass = i == 0 ? layer.forward : layer.backward;
      both[i].compute = share * (pass.compute + pass.streams / slowdown);
      both[i].weight_gradients = share * pass.gradient_compute;
      both[i].deferral_cost = both[i].deferral_chain = both[i].deferral_weight_gradients = Seconds();
    }
  });
  fill(passes, least);
}

WeightsTimes TrainingBound::weights_times(const training::TrainingProfile& traffic,
                                          const training::StageLinks& links) const {
  const auto share = [&](const training::LayerProfile& layer) {
    const auto pass = [&](const training::PassProfile& of) {  // what is never hidden is waited for in full
      return training::pass_time({}, {of.traffic.begin(), of.traffic.size()}, links, false, question_.setup);
    };
    const training::PassTime f = pass(layer.forward), b = pass(layer.backward);
    return WeightsTimes::Share{f.exposed, b.exposed, f.copies, b.copies, f.gradients + b.gradients};
  };
  WeightsTimes weights;
  weights.shares_.reserve(2 + traffic.kinds.size());
  for (const training::LayerProfile* end : {&traffic.embedding, &traffic.head}) weights.shares_.push_back(share(*end));
  for (const training::LayerProfile& layer : traffic.kinds) weights.shares_.push_back(share(layer));
  return weights;
}

void TrainingBound::add_weights(const WeightsTimes& weights, LeastTimes& least) const {
  const auto add = [&](const WeightsTimes::Share& more, LeastTimes::Share& share) {
    const auto exposed = [&](Seconds background, Seconds chain) {
      return question_.overlap ? training::waited(background, chain, question_.setup.effects.overlap.chip_share)
                               : background;
    };
    share.passes.forward += more.forward_copies;
    share.passes.forward += exposed(more.forward, share.passes.forward);
    share.passes.backward += more.backward_copies;
    share.behind += more.backward_copies;
    share.behind_deferred += more.backward_copies;
    const Seconds backward = exposed(more.backward, share.behind);
    share.passes.backward += backward;
    share.passes.deferral_cost += exposed(more.backward, share.behind_deferred) - backward;
    share.reduce += more.reduce;
  };
  for (std::size_t k = 0; k < least.kinds.size(); ++k) add(weights.kind(k), least.kinds[k]);
  add(weights.embedding(), least.embedding);
  add(weights.head(), least.head);
  add_up(least);
}

void TrainingBound::add_up(LeastTimes& least) const {
  const auto set = [](LeastTimes::Share& share) {
    const training::StagePasses& passes = share.passes;
    share.both = passes.forward + passes.backward - passes.hidden_forward - passes.hidden_backward;
  };
  for (LeastTimes::Share& kind : least.kinds) set(kind);
  set(least.embedding);
  set(least.head);
  least.all = least.embedding;
  least.all.add(least.head, 1.0);
  for (std::size_t k = 0; k < least.kinds.size(); ++k) least.all.add(least.kinds[k], whole_.parts.front().layers[k]);
}

Seconds TrainingBound::waited_at_end(Seconds reduce, Seconds behind) const {
  return question_.overlap ? training::waited_once(Plain{}, reduce, behind, question_.setup.effects.overlap) : reduce;
}

namespace {

/// Sums of a microbatch's times under a schedule.
class TimesUnder {
 public:
  TimesUnder(const LeastTimes& least, const clock::PipelineShape& shape)
      : least_(least), effects_(training::schedule_effects(shape.schedule, shape.stages)) {}

  clock::StageTimes all() const { return training::stage_times(least_.all.passes, effects_); }
  clock::StageTimes layers(const std::array<std::int16_t, model::max_layer_kinds>& counts, bool first,
                           bool last = false) const {
    clock::StageTimes sum;
    for (std::size_t k = 0; k < least_.kinds.size(); ++k)
      if (counts[k] != 0) add(least_.kinds[k], counts[k], sum);
    if (first) add(least_.embedding, 1.0, sum);
    if (last) add(least_.head, 1.0, sum);
    return sum;
  }

 private:
  void add(const LeastTimes::Share& share, double times, clock::StageTimes& sum) const {
    const clock::StageTimes more = training::stage_times(share.passes, effects_);
    sum.forward += times * more.forward;
    sum.backward_input += times * more.backward_input;
    sum.backward_weight += times * more.backward_weight;
  }
  const LeastTimes& least_;
  training::ScheduleEffects effects_;
};

/// Lower bound on the results of a microbatch that such a stage sends.
double sends_at_least(const clock::StageSplit::Part& part) {
  return part.first != part.last || (part.first && part.passed < 1.0) ? 1.0 : 2.0;
}

clock::StageTimes operator-(const clock::StageTimes& a, const clock::StageTimes& b) {
  return {a.forward - b.forward, a.backward_input - b.backward_input, a.backward_weight - b.backward_weight};
}

}  // namespace

void TrainingBound::add_stages(const LeastTimes& least, double m, const clock::StageSplit& split, Seconds hop,
                               StageSums& sums) const {
  sums.parts.resize(split.parts.size());
  sums.step = Seconds();
  for (std::size_t i = 0; i < split.parts.size(); ++i) {
    const clock::StageSplit::Part& part = split.parts[i];
    Seconds a_microbatch, reduce, behind;
    const auto add = [&](const LeastTimes::Share& share, double times) {
      a_microbatch += times * share.both;
      reduce += times * share.reduce;
      behind += times * share.behind_deferred;
    };
    for (std::size_t k = 0; k < least.kinds.size(); ++k)
      if (part.layers[k] != 0) add(least.kinds[k], part.layers[k]);
    if (part.first) add(least.embedding, 1.0);
    if (part.last) add(least.head, 1.0);
    a_microbatch *= part.passed;
    const Seconds at_end = waited_at_end(reduce, behind),
                  whole = m * (a_microbatch + sends_at_least(part) * hop) + at_end;
    sums.parts[i] = {a_microbatch, at_end};
    if (whole > sums.step) {
      sums.step = whole;
      sums.slowest = i;
    }
  }
}

Seconds TrainingBound::path_through(const Stages& stages, std::size_t through) const {
  const auto& [least, sums, shape, split, layers, hop] = stages;
  const clock::StageSplit::Part &part = split.parts[through], &first = split.parts.front();
  const Seconds at_end = sums.parts[through].at_end, first_at_end = sums.parts.front().at_end;
  // Every run but the last one of the model sends its result, every one but the first its gradient.
  const auto runs = static_cast<double>(shape.chunks), before = static_cast<double>(part.to),
             behind = static_cast<double>(shape.stages - 1 - part.to);
  const Seconds sent = (part.last ? runs - 1.0 : runs) * hop, sent_back = (part.first ? runs - 1.0 : runs) * hop;
  const Seconds sent_before = std::max(0.0, 2.0 * before - 1.0) * hop;
  if (shape.chunks > 1) {
    Seconds on_the_way = part.to > 0 ? least.embedding.both + sent_before : Seconds();
    for (std::size_t k = 0; k < least.kinds.size(); ++k) on_the_way += layers.before[through][k] * least.kinds[k].both;
    return clock::least_interval_of_chunks(static_cast<double>(shape.microbatches),
                                           sums.parts[through].a_microbatch + sent + sent_back, on_the_way, at_end,
                                           first_at_end);
  }
  clock::StageAmong among;
  among.stage = part.to;
  among.at_end = at_end;
  among.first_at_end = first_at_end;
  const TimesUnder times(least, shape);
  among.own = times.layers(part.layers, part.first, part.last);
  if (part.to > 0) among.before = times.layers(layers.before[through], true);
  among.rest = times.all() - among.own - among.before;
  if (split.is_folded) {
    among.first_run = times.layers(part.leading, part.first);
    among.first_weight = times.layers(first.leading, true).backward_weight;
    // Most microbatches send at least as much as they do on the ends.
    return clock::least_interval(shape, among) +
           static_cast<double>(std::max<std::int64_t>(0, shape.microbatches - 2 * shape.stages)) * 2.0 * hop;
  }
  if (clock::splits_backward(shape.schedule)) among.first_weight = times.layers(first.layers, true).backward_weight;
  among.own.forward += sent;
  among.own.backward_input += sent_back;
  among.before.forward += sent_before;
  among.rest.forward += std::max(0.0, 2.0 * behind - 1.0) * hop;
  return clock::least_interval(shape, among);
}

Seconds TrainingBound::shortest_parts(const LeastTimes& least, const StageSums& sums, const clock::PipelineShape& shape,
                                      const OrderLayers& layers) const {
  const TimesUnder times(least, shape);
  clock::StageTimes shortest = times.all();
  for (const clock::StageSplit::Part& run : layers.runs.parts) {
    const clock::StageTimes part = times.layers(run.layers, run.first, run.last);
    shortest = {std::min(shortest.forward, part.forward), std::min(shortest.backward_input, part.backward_input),
                std::min(shortest.backward_weight, part.backward_weight)};
  }
  Seconds at_end = sums.parts.front().at_end;
  for (const StageSums::Part& part : sums.parts) at_end = std::min(at_end, part.at_end);
  return clock::interval_of_equal_stages(shape, shortest) + at_end;
}

Seconds TrainingBound::least_step(const Stages& stages, Seconds enough) const {
  const StageSums& sums = stages.sums;
  const clock::PipelineShape& shape = stages.shape;
  Seconds least = step(sums.step);
  if (shape.stages == 1 || least >= enough) return least;
  if (training::layout_of(shape.schedule) == clock::StageLayout::mirrored)
    return std::max(least, step(shortest_parts(stages.least, sums, shape, stages.layers)));
  const auto wait_on = [&](std::size_t part) { least = std::max(least, step(path_through(stages, part))); };
  const auto last = static_cast<std::size_t>(stages.split.part_of.back());
  wait_on(last);
  if (sums.slowest != last && least < enough) wait_on(sums.slowest);
  return least;
}

Seconds TrainingBound::slowest_stage(const training::MicrobatchCost& steady) const {
  Seconds most;
  for (const training::MicrobatchCost::Part& part : steady.parts) {
    const double sends = steady.stages == 1.0 ? 0.0 : part.first || part.last ? 1.0 : 2.0;
    const Seconds whole = steady.microbatches * (part.least() + sends * steady.hop.overlapped) + part.gradients -
                          part.gradients_hidden_if_deferred + part.update;
    most = std::max(most, whole + part.host.update);
  }
  return most;
}

Seconds TrainingBound::step(Seconds work) const {
  constexpr double rounding = 1e-12;
  return (1.0 - rounding) * ((1.0 + stragglers_) * work + question_.setup.effects.fixed);
}

Bytes least_memory(const training::MicrobatchCost& steady) {
  Bytes most;
  for (const training::MicrobatchCost::Part& part : steady.parts)
    most = std::max(most, training::memory_holding(steady, part, 1.0).total());
  return most;
}

}  // namespace assay::search
