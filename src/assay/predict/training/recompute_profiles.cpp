#include "assay/predict/training/recompute_profiles.h"

#include <bit>

namespace assay::training {

std::size_t FusedPrices::Hash::operator()(const Key& key) const {
  std::uint64_t h = 0;
  for (const double number : key) {
    h = (h ^ std::bit_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
  }
  return static_cast<std::size_t>(h);
}

const kernel::StepPrice<Plain>& FusedPrices::of(const kernel::JoinedProducts::Part& fused,
                                                const kernel::TrainingKernels& kernels) {
  const kernel::MatmulShape& s = fused.shape;
  const unsigned kind = static_cast<unsigned>(fused.dtype) << 3 | (s.grouped ? 4u : 0u) | (s.summed_rows ? 2u : 0u) |
                        (s.even_rows ? 1u : 0u);
  const Key key{s.batch,
                s.m,
                s.n,
                s.k,
                s.bytes.value(),
                s.added.value(),
                s.operand_rows,
                s.result_rows,
                static_cast<double>(kind)};
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) known->second = kernel::price(Plain{}, fused, kernels);
  return known->second;
}

void FusedKernels::add(bool is_recomputed, KernelSums<Plain>& sums, PassRecord* record) const {
  using Part = kernel::JoinedProducts::Part;
  for (std::size_t i = 0; i < joined_.joints().size(); ++i) {
    const Part& fused = joined_.joints()[i];
    const KernelTraits kind{true, false, !is_recomputed && fused.kind == Part::Kind::of_weight, is_recomputed};
    const kernel::StepPrice<Plain>& price = prices_.of(fused, kernels_);
    sums.add(price, kind);
    if (record) record->kernels.push_back({steps_[i], fused, kind, price});
  }
}

void RecomputableLayer::add_recomputed(const TrainingSetup& setup, FusedPrices& prices, lower::Recompute recompute,
                                       LayerProfile& layer, PassRecord* record) const {
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
  const kernel::TrainingKernels kernels = training_kernels(setup);
  FusedKernels fused(kernels, prices);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!recomputed[i]) continue;
    const Step& step = steps[i];
    layer.recomputed += step.made;
    if (step.traffic >= 0) {
      Traffic moved = traffic[at(step.traffic)];
      moved.overlaps_weight_gradients = moved.overlaps_weight_gradients && is_kept(step.in[0]);
      const std::size_t entry = pass.add_traffic(moved);
      if (record) record->collectives.push_back({step.number, true, entry});
    }
    if (!step.is_kernel) continue;
    if (step.joined < 0 || !fused.take(joined[at(step.joined)], step.number, record)) {
      const KernelTraits kind{step.is_product, step.is_attention, false, true};
      pass.add(step.price, kind);
      if (record) record->kernels.push_back({{step.number}, std::nullopt, kind, step.price});
    }
    pass.add_ideal(step.price);
    if (step.is_product) pass.product_flops += step.flops;
    pass.flops += step.flops;
    pass.recomputed_flops += step.flops;
  }
  fused.add(true, pass, record);
  pass.add_launching(Plain{}, launch);
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (is_kept(static_cast<int>(t))) layer.kept += tensors[t].bytes;
  (recompute.covers(lower::ForwardPart::residual) ? layer.recomputed : layer.kept) += dropped_residual;
  const bool inside = recompute.covers(lower::ForwardPart::attention) || recompute.covers(lower::ForwardPart::scores);
  (inside ? layer.recomputed : layer.kept) += dropped_attention;
}

TrainingProfile PolicyProfiles::with(lower::Recompute recompute, ProfileRecord* record) const {
  TrainingProfile profile = base_;
  recompute = setup_->effects.executed(recompute);
  for (std::size_t k = 0; k < forwards_.size(); ++k)
    forwards_[k].add_recomputed(*setup_, *prices_, recompute, profile.kinds[k],
                                record ? &record->kinds[k].backward : nullptr);
  return profile;
}

}  // namespace assay::training
