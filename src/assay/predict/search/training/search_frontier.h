// The work of a search for training strategies in order of lower bounds on its time. Most of it is never lowered and
// priced: a bound from a larger microbatch rules it out.
#pragma once
#include <vector>

#include "assay/predict/search/training/memory_fit.h"
#include "assay/predict/search/training/order_bounds.h"
#include "assay/predict/search/training/work.h"

namespace assay::search {

/// What a search lists its work from.
struct FrontierInput {
  const training::TrainingQuestion& question;
  const TrainingChoices& choices;
  const TrainingSpace& space;
  const std::vector<lower::Recompute>& policies;
  const std::vector<std::size_t>& numbers;  ///< numbers of the policies in the profiles
  TrainingProfiles& profiles;
  LayersOfOrders& layers;
  TrainingPlaces& places;
  TrainingFit& fit;
  const TrainingBound& bound;
  bool prune = true;
};

class SearchFrontier {
 public:
  explicit SearchFrontier(FrontierInput input) : in_(input) {}

  /// Lists all work on these meshes. `floors`: see SearchLimits; null: none are known or wanted. Steps that take as
  /// long as `too_slow` are of no interest.
  void list(const std::vector<lower::Parallelism>& meshes, const std::vector<Seconds>* floors, Seconds too_slow);
  /// The next work in order of its lower bound; null where all that is left takes as long as `too_slow`.
  const TrainingWork* next(Seconds too_slow);
  /// Lower bounds on all work in the order in which it is listed, for further searches.
  std::vector<Seconds> floors() const;

  std::int64_t considered() const { return considered_; }  ///< strategies of the space
  std::size_t size() const { return works_.size(); }
  WorkMesh& mesh_of(const TrainingWork& work) { return meshes_[work.mesh]; }
  training::Strategy strategy_of(const TrainingWork& work) const;
  TrainingProfiles::Priced& priced(const TrainingWork& work) const {
    return in_.profiles.priced(*work.made, in_.numbers[work.policy]);
  }

  /// What bounds are computed with; each thread has its own.
  struct Bounding {
    OrderBounds orders;
    training::FusedPrices prices;
    training::MicrobatchCost passes;
    LeastTimes least;
  };
  Bounding bounding() const { return {OrderBounds(in_.question, in_.bound), {}, {}, {}}; }
  /// The least that work takes on some inner links (TrainingPlaces), without traffic of weights.
  const LeastTimes& least_times(const training::Strategy& strategy, const TrainingWork& of, std::size_t inner,
                                Bounding& with) const;

 private:
  /// Work in order of its lower bound.
  struct Listed {
    Seconds floor;
    std::uint32_t number = 0;  ///< in the order in which work is listed
  };
  static bool sooner(const Listed& a, const Listed& b) {
    return a.floor != b.floor ? a.floor < b.floor : a.number < b.number;
  }
  static bool later(const Listed& a, const Listed& b) { return sooner(b, a); }
  /// Work that computes the same, of some of the list: it is made once.
  using Alike = std::vector<std::vector<TrainingWork*>>;
  template <class Test>
  Alike alike(std::size_t first, std::size_t last, Test wanted);

  void list_mesh(const lower::Parallelism& p);
  void bound_by_larger(Seconds too_slow);
  void make_work(Seconds too_slow);
  void make(const std::vector<TrainingWork*>& works, Seconds too_slow, Bounding& with);
  Seconds floor_of(const LeastTimes& least, const TrainingWork& of, Bounding& with) const;

  FrontierInput in_;
  std::int64_t considered_ = 0;
  std::vector<WorkMesh> meshes_;
  std::vector<TrainingWork> works_;
  std::vector<Listed> listed_;  ///< all work, the soonest first by what was known of it
  std::size_t made_ = 0;        ///< work listed before this one has a lower bound of its own
  std::vector<Listed> open_;    ///< the part of it that next() has not returned: a heap, the soonest first
};

}  // namespace assay::search
