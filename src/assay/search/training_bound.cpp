#include "assay/search/training_bound.h"

#include <algorithm>

namespace assay {

void LeastTimes::Share::add(const Share& other, double times) {
  passes.forward += times * other.passes.forward, passes.backward += times * other.passes.backward;
  passes.hidden_forward += times * other.passes.hidden_forward;
  passes.hidden_backward += times * other.passes.hidden_backward;
  passes.weight_gradients += times * other.passes.weight_gradients, passes.beside += times * other.passes.beside;
  passes.beside_gradients += times * other.passes.beside_gradients;
  reduce += times * other.reduce, behind += times * other.behind, behind_alone += times * other.behind_alone;
}

void WeightsTimes::lower_to(const WeightsTimes& other) {
  if (!is_known()) shares_ = other.shares_;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    const Share& than = other.shares_[i];
    share.forward = std::min(share.forward, than.forward), share.backward = std::min(share.backward, than.backward);
    share.reduce = std::min(share.reduce, than.reduce);
  }
}

TrainingBound::TrainingBound(const TrainingQuestion& question)
    : question_(question), stragglers_(straggler_share(question)), whole_(split_stages(*question.setup.model, 1)) {}

void TrainingBound::fill(const SteadyCost& passes, LeastTimes& least) const {
  // Schedules may hide as much of the exchange between experts as software lets them.
  const double hidden = 1.0 - std::min(1.0, question_.setup.effects.expert_waited);
  const auto share = [&](const std::array<PassTime, 2>& both) {
    const auto& [f, b] = both;
    return LeastTimes::Share{{f.chain() + f.exposed, b.chain() + b.exposed, hidden * f.expert, hidden * b.expert,
                              b.weight_gradients, b.beside, b.beside_gradients},
                             f.gradients + b.gradients,
                             b.chain(),
                             b.chain() + b.beside_chain};
  };
  least.kinds.clear();
  for (const auto& both : passes.layers) least.kinds.push_back(share(both));
  least.embedding = share(passes.embedding), least.head = share(passes.head);
  add_up(least);
}

WeightsTimes TrainingBound::weights_times(const TrainingProfile& traffic, const StageLinks& links) const {
  const auto share = [&](const LayerProfile& layer) {
    const auto pass = [&](const PassProfile& of) {  // what is never hidden is waited for in full
      return pass_time({}, of.traffic, links, false, question_.setup.effects);
    };
    const PassTime f = pass(layer.forward), b = pass(layer.backward);
    return WeightsTimes::Share{f.exposed, b.exposed, f.gradients + b.gradients};
  };
  WeightsTimes weights;
  weights.shares_.reserve(2 + traffic.kinds.size());
  for (const LayerProfile* end : {&traffic.embedding, &traffic.head}) weights.shares_.push_back(share(*end));
  for (const LayerProfile& layer : traffic.kinds) weights.shares_.push_back(share(layer));
  return weights;
}

void TrainingBound::add_weights(const WeightsTimes& weights, LeastTimes& least) const {
  const auto add = [&](const WeightsTimes::Share& more, LeastTimes::Share& share) {
    const auto exposed = [&](double background, double chain) {
      return question_.overlap ? exposed_seconds(background, 0.0, chain, question_.setup.effects) : background;
    };
    share.passes.forward += exposed(more.forward, share.passes.forward);
    const double backward = exposed(more.backward, share.behind);
    share.passes.backward += backward;
    share.passes.beside += exposed(more.backward, share.behind_alone) - backward;
    share.reduce += more.reduce;
  };
  for (std::size_t k = 0; k < least.kinds.size(); ++k) add(weights.kind(k), least.kinds[k]);
  add(weights.embedding(), least.embedding), add(weights.head(), least.head);
  add_up(least);
}

void TrainingBound::add_up(LeastTimes& least) const {
  least.all = least.embedding;
  least.all.add(least.head, 1.0);
  for (std::size_t k = 0; k < least.kinds.size(); ++k) least.all.add(least.kinds[k], whole_.parts.front().layers[k]);
}

double TrainingBound::waited(double reduce, double behind) const {
  return question_.overlap ? std::max(question_.setup.effects.gradients_waited * reduce, reduce - behind) : reduce;
}

double TrainingBound::slowest_stage(const LeastTimes& least, double m, const StageSplit& split) const {
  double most = 0.0;
  for (const StageSplit::Part& part : split.parts) {
    double a_microbatch = 0.0, reduce = 0.0, behind = 0.0;
    const auto add = [&](const LeastTimes::Share& share, double times) {
      const StagePasses& passes = share.passes;
      a_microbatch += times * (passes.forward + passes.backward - passes.hidden_forward - passes.hidden_backward);
      reduce += times * share.reduce, behind += times * share.behind_alone;
    };
    for (std::size_t k = 0; k < least.kinds.size(); ++k)
      if (part.layers[k] != 0) add(least.kinds[k], part.layers[k]);
    if (part.first) add(least.embedding, 1.0);
    if (part.last) add(least.head, 1.0);
    most = std::max(most, part.passed * m * a_microbatch + waited(reduce, behind));
  }
  return most;
}

double TrainingBound::even_stages(const LeastTimes& least, const PipelineShape& shape, double hop) const {
  LeastTimes::Share mean;
  mean.add(least.all, 1.0 / static_cast<double>(shape.stages));
  return even_step(shape, mean.passes, hop) + waited(mean.reduce, mean.behind_alone);
}

double TrainingBound::slowest_stage(const SteadyCost& steady) const {
  double most = 0.0;
  for (const SteadyCost::Part& part : steady.parts)
    most = std::max(most,
                    steady.microbatches * part.least() + part.gradients - part.spared + part.update + part.host.update);
  return most + steady.microbatches * 2.0 * steady.hop;
}

double TrainingBound::step(double seconds) const {
  constexpr double rounding = 1e-12;
  return (1.0 - rounding) * ((1.0 + stragglers_) * seconds + question_.setup.effects.fixed.value());
}

double least_memory(const SteadyCost& steady) {
  double most = 0.0;
  for (const SteadyCost::Part& part : steady.parts) most = std::max(most, memory_holding(steady, part, 1.0).total());
  return most;
}

}  // namespace assay
