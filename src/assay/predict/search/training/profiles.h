// Profiles of a search for training strategies, made on demand: few differ among millions of strategies.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assay/predict/search/training/bound.h"
#include "assay/predict/training/recompute_profiles.h"

namespace assay::search {

class TrainingProfiles {
 public:
  /// What a microbatch computes under a policy, and the least that it takes for each set of inner links.
  struct Priced {
    training::TrainingProfile profile;
    std::vector<std::pair<std::size_t, LeastTimes>> least;  ///< by number of the inner links
  };
  struct Microbatch {
    const training::ProfileKey* key = nullptr;
    Microbatch* whole = nullptr;  ///< one of a multiple of the sequences, else equal; null: none is known
    std::vector<std::unique_ptr<Priced>> policies;  ///< null until made
  };

  /// Refers to the question, and to profiles of a question that differs only in rates, which keep what does not depend
  /// on them.
  TrainingProfiles(const training::TrainingQuestion& question, std::int64_t sequence,
                   TrainingProfiles* of_any_rates = nullptr);

  /// Numbers by which priced() knows policies. At least one is asked for before any profile is made.
  std::vector<std::size_t> numbers_of(const std::vector<lower::Recompute>& policies);

  /// What a microbatch computes: it does not depend on how weights are sharded. References stay valid.
  Microbatch& microbatch_of(const training::Strategy& strategy);
  static bool is_priced(const Microbatch& made, std::size_t policy) {
    return policy < made.policies.size() && made.policies[policy];
  }
  Priced& priced(Microbatch& made, std::size_t policy) { return priced(made, policy, prices_); }
  /// May be called by several threads at once, if each has prices and microbatches of its own.
  Priced& priced(Microbatch& made, std::size_t policy, training::FusedPrices& prices) const;
  /// Before a search: forgets what was found on other links than its own.
  void trim(const void* links);
  /// Frees the profiles of policies that recompute; they are rebuilt on demand.
  void forget_recomputation();
  /// How weights and gradients travel: it does not depend on what a microbatch computes.
  const training::TrainingProfile& sharing_of(const training::Strategy& strategy);

 private:
  struct KeyHash {
    std::size_t operator()(const training::ProfileKey& key) const;
  };

  const training::TrainingQuestion& question_;
  std::int64_t sequence_;
  TrainingProfiles* of_any_rates_;
  std::vector<lower::Recompute> policies_;  ///< by number
  training::FusedPrices prices_;
  std::unordered_map<training::ProfileKey, Microbatch, KeyHash> microbatches_;
  const void* links_ = nullptr;  ///< links of the last search
  std::unordered_map<training::ProfileKey, training::TrainingProfile, KeyHash> sharings_;
};

}  // namespace assay::search
