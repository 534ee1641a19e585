// What searches for training strategies of one question have in common: profiles and links are made once.
#pragma once
#include "assay/predict/search/training/places.h"
#include "assay/predict/search/training/profiles.h"

namespace assay::search {

/// Refers to the question and the cluster, which must not change meanwhile.
struct TrainingCaches {
  /// `shared`: profiles of a question with the same kernels, if there are any.
  TrainingCaches(const training::TrainingQuestion& of_question, std::int64_t of_sequence,
                 const hardware::Cluster& of_cluster, TrainingProfiles* shared = nullptr);
  TrainingCaches(const TrainingCaches&) = delete;
  TrainingCaches& operator=(const TrainingCaches&) = delete;

  const training::TrainingQuestion& question;
  std::int64_t sequence;
  const hardware::Cluster& cluster;
  TrainingProfiles own;  ///< used where there are none to share
  TrainingProfiles& profiles;
  training::StageLinker linker;
  InnerLinks inner;
};

}  // namespace assay::search
