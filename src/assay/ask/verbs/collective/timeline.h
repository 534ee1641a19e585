// A collective as a timeline: which link carries what and when.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/predict/collective/collectives.h"

namespace assay::verbs::collective_verb {

/// collective::link_schedule with one lane per link where there are few enough transfers to see; otherwise the closed
/// form hop by hop, one lane per axis or level. `axis_names` names the group's torus axes, `level_names` the cluster's
/// levels.
draw::Timeline collective_timeline(program::Collective kind, Bytes array, const collective::CollectiveGroup& group,
                                   const std::vector<std::string>& axis_names,
                                   const std::vector<std::string>& level_names);

/// The names of the torus axes in `axes`, as --axes writes them; all axes of the slice if it is empty.
std::vector<std::string> torus_axis_names(const hardware::Cluster& cluster, const std::vector<std::string>& axes);

}  // namespace assay::verbs::collective_verb
