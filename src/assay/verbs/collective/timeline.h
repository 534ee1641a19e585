// A collective as a timeline: which link carries what and when.
#pragma once
#include <string>
#include <vector>

#include "assay/draw/timeline/timeline_scene.h"
#include "assay/network/collectives.h"

namespace assay::verbs::collective {

/// The transfers of the link-level simulator, one lane a link, where there are few enough to look at; otherwise the
/// closed form, one lane an axis or level, hop by hop. `axis_names` are those of the group's torus axes, and
/// `level_names` those of the cluster's levels. A shard is sent whole on a torus, and cut into a few chunks where its
/// hops overlap, so the picture may end a little later than --simulate says.
draw::Timeline collective_timeline(network::CollectiveKind kind, Bytes array, const network::CollectiveGroup& group,
                                   const std::vector<std::string>& axis_names,
                                   const std::vector<std::string>& level_names);

/// The names of the torus axes that `axes` asks for, as --axes has them; all of the slice where it is empty.
std::vector<std::string> torus_axis_names(const hardware::Cluster& cluster, const std::vector<std::string>& axes);

}  // namespace assay::verbs::collective
