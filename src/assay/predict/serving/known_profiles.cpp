#include "assay/predict/serving/known_profiles.h"

#include "assay/predict/serving/step_prices.h"

namespace assay::serving {

template <class F>
ServingProfile KnownProfiles::known(Pass pass, const ServingStrategy& strategy, F make) {
  const ServingStrategy one = one_group(strategy);
  const Key key{pass,
                one.tensor,
                one.second,
                one.cache_ways,
                one.data,
                one.expert,
                one.expert_over.tensor,
                one.expert_over.context,
                one.scheme.cache,
                one.scheme.weights};
  auto found = profiles_.find(key);
  if (found == profiles_.end()) {
    found = profiles_.emplace(key, make(one)).first;
    remember_prices(question_.setup, tables_, found->second);
  }
  return profile_of_groups(question_.setup, found->second, strategy);
}

ServingProfile KnownProfiles::decode(const ServingStrategy& strategy) {
  return known(Pass::decode, strategy, [&](const ServingStrategy& one) {
    return make_serving_profile(question_.setup, one, 1, decode_keys(question_));
  });
}

PrefillOption KnownProfiles::prefill(const ServingStrategy& strategy) {
  return {strategy.scheme, known(Pass::prefill, strategy, [&](const ServingStrategy& one) {
            return make_prompt_profile(question_.setup, one, fresh_prompt(question_), question_.prompt);
          })};
}

ServingProfile KnownProfiles::joined(const ServingStrategy& strategy, const PrefillOption& option) {
  // Whole prompts join with the attention of their own pass, which depends on its scheme alone.
  const bool whole = joins_whole(question_);
  ServingStrategy way = strategy;
  if (whole) way.scheme = option.scheme;
  return known(Pass::joined, way, [&](const ServingStrategy& one) {
    return joined_profile(question_, one, whole ? prefill(one).profile : ServingProfile{});
  });
}

}  // namespace assay::serving
