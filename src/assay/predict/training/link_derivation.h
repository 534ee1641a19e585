// The links of one strategy as numbers that say where they come from: groups, bandwidths, latencies, calibrations.
#pragma once
#include <map>
#include <utility>

#include "assay/predict/training/stage_links.h"

namespace assay::training {

/// Links as numbers of a policy.
class DerivedLinks;
template <class N>
using LinksOf = std::conditional_t<N::traced, DerivedLinks, StageLinks>;

/// What StageLinks has of a strategy, derived. Refers to the cluster, the calibration and the sources.
class DerivedLinks {
 public:
  using Form = collective::CollectiveForm<Traced>;
  /// What derives the links of any strategy of a question.
  struct Question {
    const hardware::Cluster& cluster;
    const hardware::CollectiveCalibration* calibration;
    collective::Routing routing;
    const SourceTable& sources;  ///< of the calibration
  };

  DerivedLinks(const Traced& num, const Question& question, const lower::Parallelism& parallelism,
               const collective::AxisLayout& layout);

  const Form& form(RoleSet over, program::Collective kind) const;
  /// At the full bandwidth.
  NumberOf<Traced, SecondsPerByte> ideal_per_byte(RoleSet over, program::Collective kind) const;
  double ways(RoleSet over) const;
  std::uint32_t resources_of(RoleSet over) const { return links_.resources[over]; }
  /// From a stage to the next: what a byte and a send take at the full bandwidth.
  const Form& between_stages_form() const;
  /// Sums over a stage and its mirror image at the other end of the pipeline.
  Form copies() const;
  NumberOf<Traced, SecondsPerByte> ideal_copies_per_byte() const;
  /// Time at the full bandwidth over the share of it that good collectives reach.
  NumberOf<Traced, Seconds> reached(NumberOf<Traced, Seconds> ideal) const;

 private:
  /// At the full bandwidth.
  collective::CollectiveLineOf<Traced> line(program::Collective kind, const collective::CollectiveGroup& group) const {
    return collective::collective_line(num_, kind, group, &labels_);
  }

  Traced num_;
  const Question question_;
  lower::Parallelism parallelism_;
  collective::AxisLayout layout_;
  collective::CollectiveLabels labels_;
  StageLinks links_;
  mutable StageLinker linker_;
  mutable std::map<std::pair<RoleSet, program::Collective>, Form> forms_;
  mutable std::optional<Form> between_;
};

}  // namespace assay::training
