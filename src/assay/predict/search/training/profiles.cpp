#include "assay/predict/search/training/profiles.h"

#include <algorithm>

namespace assay::search {

std::size_t TrainingProfiles::KeyHash::operator()(const training::ProfileKey& key) const {
  std::uint64_t h = 1469598103934665603ull;
  const auto mix = [&](std::uint64_t v) { h = (h ^ v) * 1099511628211ull; };
  mix(static_cast<std::uint64_t>(key.tensor));
  mix(static_cast<std::uint64_t>(key.context));
  mix(static_cast<std::uint64_t>(key.expert));
  mix(static_cast<std::uint64_t>(key.micro_batch));
  mix((key.fsdp ? 1u : 0u) | (key.replicas ? 2u : 0u) | static_cast<unsigned>(key.zero) << 2 |
      static_cast<unsigned>(key.residual) << 4 | static_cast<unsigned>(key.context_scheme) << 6 |
      (key.expert_over.tensor ? 128u : 0u) | (key.expert_over.context ? 256u : 0u));
  return static_cast<std::size_t>(h);
}

TrainingProfiles::TrainingProfiles(const training::TrainingQuestion& question, std::int64_t sequence,
                                   TrainingProfiles* of_any_rates)
    : question_(question), sequence_(sequence), of_any_rates_(of_any_rates) {}

std::vector<std::size_t> TrainingProfiles::numbers_of(const std::vector<lower::Recompute>& policies) {
  std::vector<std::size_t> numbers;
  for (const lower::Recompute policy : policies) {
    const auto known = std::find(policies_.begin(), policies_.end(), policy);
    numbers.push_back(static_cast<std::size_t>(known - policies_.begin()));
    if (known == policies_.end()) policies_.push_back(policy);
  }
  return numbers;
}

TrainingProfiles::Microbatch& TrainingProfiles::microbatch_of(const training::Strategy& strategy) {
  training::ProfileKey key = training::work_key(strategy, sequence_);
  key.recompute = lower::Recompute::none();
  const auto [known, is_new] = microbatches_.try_emplace(key);
  if (is_new) known->second.key = &known->first;
  return known->second;
}

TrainingProfiles::Priced& TrainingProfiles::priced(Microbatch& made, std::size_t policy,
                                                   training::FusedPrices& prices) const {
  if (is_priced(made, policy)) return *made.policies[policy];
  // Every search looks at the first policy, and at the others of very few. Who asks for one policy that recomputes asks
  // for most of them; the program that all follow from is too large to keep.
  const bool is_first = made.policies.empty();
  made.policies.resize(policies_.size());
  const training::PolicyProfiles profiles(question_.setup, prices, *made.key, training::ProfilePart::work);
  for (std::size_t i = 0; i < policies_.size(); ++i)
    if (!made.policies[i] && (!is_first || i == policy))
      made.policies[i] = std::make_unique<Priced>(Priced{profiles.with(policies_[i]), {}});
  return *made.policies[policy];
}

void TrainingProfiles::trim(const void* links) {
  if (links && links == links_) return;
  links_ = links;
  for (auto& [key, made] : microbatches_) {
    for (const std::unique_ptr<Priced>& under : made.policies)
      if (under) under->least = {};
  }
}

void TrainingProfiles::forget_recomputation() {
  for (auto& [key, made] : microbatches_)
    if (made.policies.size() > 1) made.policies.resize(1);
}

const training::TrainingProfile& TrainingProfiles::sharing_of(const training::Strategy& strategy) {
  if (of_any_rates_) return of_any_rates_->sharing_of(strategy);
  const training::ProfileKey key = training::traffic_key(strategy, sequence_);
  const auto known = sharings_.find(key);
  if (known != sharings_.end()) return known->second;
  return sharings_.emplace(key, training::make_profile(question_.setup, key, training::ProfilePart::weights_traffic))
      .first->second;
}

}  // namespace assay::search
