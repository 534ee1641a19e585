// The mesh of a run from the groups of ranks that its framework made.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/profile/trace/rank.h"
#include "assay/program/form/mesh.h"

namespace assay::compare {

struct RunMesh {
  std::vector<program::MeshAxis> axes;  ///< the outermost first; without a role where nothing tells it
  bool complete = false;                ///< roles are known, and all ranks lie on the axes

  /// Every rank computes with whole weights.
  bool splits_data_alone() const;
};

/// An axis is named by the description of its group or, where one group has all ranks, by what goes through it:
/// gathered weights and scattered gradients, or gradients alone that are added up in the backward pass.
RunMesh run_mesh(const trace::Trace& trace, const trace::Vocabulary& vocabulary, const trace::RankSummary& rank);

}  // namespace assay::compare
