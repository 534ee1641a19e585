// The profiles of the strategies of one question: those that differ in stages and replicas alone are lowered and priced
// once.
#pragma once
#include <map>
#include <tuple>

#include "assay/predict/serving/point.h"

namespace assay::serving {

/// Refers to the question's setup; searches of clusters that share it may share this, one after the other.
class KnownProfiles {
 public:
  explicit KnownProfiles(const ServingQuestion& question) : question_(question) {}

  ServingProfile decode(const ServingStrategy& strategy);
  /// The strategy has the scheme of its prompts.
  PrefillOption prefill(const ServingStrategy& strategy);
  /// What joins the decode steps of a strategy whose prompts are those of `option`.
  ServingProfile joined(const ServingStrategy& strategy, const PrefillOption& option);

 private:
  enum class Pass : std::uint8_t { decode, prefill, joined };
  using Key = std::tuple<Pass, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool,
                         lower::CacheScheme, lower::WeightScheme>;
  template <class F>
  ServingProfile known(Pass pass, const ServingStrategy& strategy, F make);

  const ServingQuestion& question_;
  kernel::TileTables tables_;
  std::map<Key, ServingProfile> profiles_;  ///< each of one group of replicas
};

}  // namespace assay::serving
