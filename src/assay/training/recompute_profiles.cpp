#include "assay/training/recompute_profiles.h"

#include <algorithm>

namespace assay::training {

void RepeatableLayer::repeat(const TrainingSetup& setup, lower::Recompute recompute, LayerProfile& layer) const {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<char> needed(tensors.size()), made(tensors.size(), 0);
  std::vector<char> again(steps.size(), 0);
  for (std::size_t t = 0; t < tensors.size(); ++t) needed[t] = tensors[t].is_needed;
  // From the end: whoever reads a result is known by then.
  for (std::size_t i = steps.size(); i-- > 0;) {
    const Step& step = steps[i];
    for (std::size_t o = 0; o < step.out.size(); ++o) {
      const int id = step.out[o];
      if (id < 0 || !needed[at(id)]) continue;
      made[at(id)] = step.is_gathered || recompute.meets(o == 0 ? step.first : step.others);
      again[i] |= made[at(id)];
    }
    again[i] |= recompute.covers(lower::ForwardPart::unread);
    if (!again[i] && step.reads_own) needed[at(step.out[0])] = 1;
    if (!again[i]) continue;
    for (const int id : step.in)
      if (id >= 0) needed[at(id)] = 1;
  }
  const auto is_kept = [&](int id) { return tensors[at(id)].is_held && needed[at(id)] && !made[at(id)]; };

  PassProfile& pass = layer.backward;
  estimate::JoinedProducts together(setup.rates);
  double launches_again = 0.0;
  const auto add_estimate = [&](Seconds estimate) { pass.repeated += estimate, launches_again += 1.0; };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!again[i]) continue;
    const Step& step = steps[i];
    layer.again += step.made;
    if (step.traffic >= 0) {
      Traffic moved = traffic[at(step.traffic)];
      moved.beside = moved.beside && is_kept(step.in[0]);
      pass.add(moved);
    }
    if (!step.is_kernel) continue;
    if (step.joined < 0 || !together.take(joined[at(step.joined)])) {
      add_estimate(step.estimate);
      pass.slowed += step.slowed;
      if (step.full_power) pass.busy += step.estimate;
    }
    pass.compute += step.compute, pass.memory += step.memory;
    pass.flops += step.flops, pass.recomputed_flops += step.flops;
  }
  for (const estimate::JoinedProducts::Product& product : together.products()) {
    const Seconds stretched = setup.effects.product * product.estimate;
    add_estimate(stretched);
    pass.slowed += setup.effects.product * product.slowed, pass.busy += stretched;
  }
  pass.started = (launches + launches_again) * launch;
  pass.estimate = std::max(pass.estimate + pass.repeated, (launches + launches_again) * launch);
  pass.repeated = std::max(pass.repeated, launches_again * launch);
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (is_kept(static_cast<int>(t))) layer.kept += tensors[t].bytes;
  (recompute.covers(lower::ForwardPart::residual) ? layer.again : layer.kept) += dropped_residual;
  const bool inside = recompute.covers(lower::ForwardPart::attention) || recompute.covers(lower::ForwardPart::scores);
  (inside ? layer.again : layer.kept) += dropped_attention;
}

TrainingProfile PolicyProfiles::with(lower::Recompute recompute) const {
  TrainingProfile profile = base_;
  recompute = setup_->effects.executed(recompute);
  for (std::size_t k = 0; k < forwards_.size(); ++k) forwards_[k].repeat(*setup_, recompute, profile.kinds[k]);
  return profile;
}

}  // namespace assay::training
