// Better strategies next to a given one: what changes of one choice, each at its best, would gain.
#pragma once
#include <string>
#include <vector>

#include "assay/predict/search/training/search.h"

namespace assay::search {

struct NeighbourQuestion {
  const training::TrainingQuestion& question;
  std::int64_t sequence;
  const hardware::Cluster& cluster;
  const TrainingChoices& choices;  ///< what the request allows
};

struct Neighbour {
  std::string change;  ///< as options: "--tp 4 --dp 16"
  Candidate candidate;
};

/// For each choice the best strategy that differs from `given` in it alone (a degree of parallelism together with the
/// data parallelism that fills the chips), where it is faster or `given` does not fit; most gain first.
Result<std::vector<Neighbour>> better_neighbours(const NeighbourQuestion& in, const Candidate& given, bool fits);

}  // namespace assay::search
