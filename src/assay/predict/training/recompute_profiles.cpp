#include "assay/predict/training/recompute_profiles.h"

#include <algorithm>

namespace assay::training {

void RecomputableLayer::add_recomputed(const TrainingSetup& setup, lower::Recompute recompute,
                                       LayerProfile& layer) const {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<char> needed(tensors.size()), made(tensors.size(), 0);
  std::vector<char> recomputed(steps.size(), 0);
  for (std::size_t t = 0; t < tensors.size(); ++t) needed[t] = tensors[t].is_needed;
  // Runs backwards, so that all readers of a result are known.
  for (std::size_t i = steps.size(); i-- > 0;) {
    const Step& step = steps[i];
    for (std::size_t o = 0; o < step.out.size(); ++o) {
      const int id = step.out[o];
      if (id < 0 || !needed[at(id)]) continue;
      made[at(id)] = step.is_gathered || recompute.meets(o == 0 ? step.first : step.others);
      recomputed[i] |= made[at(id)];
    }
    recomputed[i] |= recompute.covers(lower::ForwardPart::unread);
    if (!recomputed[i] && step.reads_own) needed[at(step.out[0])] = 1;
    if (!recomputed[i]) continue;
    for (const int id : step.in)
      if (id >= 0) needed[at(id)] = 1;
  }
  const auto is_kept = [&](int id) { return tensors[at(id)].is_held && needed[at(id)] && !made[at(id)]; };

  PassProfile& pass = layer.backward;
  kernel::JoinedProducts together;
  double recompute_launches = 0.0;
  const auto add_estimate = [&](const kernel::StepPrice<Plain>& price) {
    pass.recomputed += price.duration;
    recompute_launches += price.launches;
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!recomputed[i]) continue;
    const Step& step = steps[i];
    layer.recomputed += step.made;
    if (step.traffic >= 0) {
      Traffic moved = traffic[at(step.traffic)];
      moved.overlaps_weight_gradients = moved.overlaps_weight_gradients && is_kept(step.in[0]);
      pass.add(moved);
    }
    if (!step.is_kernel) continue;
    if (step.joined < 0 || !together.take(joined[at(step.joined)])) {
      add_estimate(step.price);
      pass.slowed += step.price.slowed;
      if (step.price.full_power) pass.busy += step.price.duration;
      if (step.is_product) pass.products += step.price.duration;
      if (step.is_attention) pass.attention += step.price.duration;
    }
    if (step.is_product) pass.product_flops += step.flops;
    pass.compute += step.price.compute;
    pass.memory += step.price.memory;
    pass.flops += step.flops;
    pass.recomputed_flops += step.flops;
  }
  for (const kernel::JoinedProducts::Part& fused : together.joints()) {
    const kernel::StepPrice<Plain> price = kernel::price(Plain{}, fused, training_kernels(setup));
    add_estimate(price);
    pass.slowed += price.slowed;
    pass.busy += price.duration;
    pass.products += price.duration;
  }
  pass.launching = (launches + recompute_launches) * launch;
  pass.estimate += pass.recomputed;
  pass.idle = std::max(Seconds(), pass.launching - pass.estimate);
  pass.estimate += pass.idle;
  pass.recomputed = std::max(pass.recomputed, recompute_launches * launch);
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (is_kept(static_cast<int>(t))) layer.kept += tensors[t].bytes;
  (recompute.covers(lower::ForwardPart::residual) ? layer.recomputed : layer.kept) += dropped_residual;
  const bool inside = recompute.covers(lower::ForwardPart::attention) || recompute.covers(lower::ForwardPart::scores);
  (inside ? layer.recomputed : layer.kept) += dropped_attention;
}

TrainingProfile PolicyProfiles::with(lower::Recompute recompute) const {
  TrainingProfile profile = base_;
  recompute = setup_->effects.executed(recompute);
  for (std::size_t k = 0; k < forwards_.size(); ++k) forwards_[k].add_recomputed(*setup_, recompute, profile.kinds[k]);
  return profile;
}

}  // namespace assay::training
