// The parts of `assay collective` besides the answer itself.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/predict/collective/collectives.h"

namespace assay::verbs::collective_verb {

// Who holds what before and after each hop of a collective.

/// A part of an array on a device.
struct HeldBlock {
  std::int64_t block = 0;  ///< of a gathered or reduced array; the device it is meant for where data is exchanged
  std::vector<std::int64_t> from;  ///< devices whose data is in it: several where it is a sum
  friend bool operator==(const HeldBlock&, const HeldBlock&) = default;
};
/// What each device holds.
using HeldBlocks = std::vector<std::vector<HeldBlock>>;

/// By hop, the first one before any. Each hop is told along one ring or line; of several axes and of switches only
/// before and after. Empty for collectives with a root, and for groups too large to be looked at.
std::vector<HeldBlocks> collective_states(program::Collective kind, const collective::CollectiveGroup& group);

// A collective over sizes, chips, inner shards, or how unevenly its data is spread.

/// What one point of a sweep costs.
struct SweepPoint {
  double value = 0;  ///< of what varies
  Bytes bytes;       ///< of the whole array
  Seconds lower, estimate;
  double bus_over_algorithm = 1;  ///< bandwidths
  /// Of the devices that get a token: on average, and where all its picks are on different ones.
  struct Share {
    double exact = 1, approximate = 1;
  };
  std::optional<Share> share = {};
};

report::Items sweep_rows(const std::string& name, const std::vector<SweepPoint>& points);
/// Bus bandwidth over size, the share of devices that get a token, or time.
draw::Scene sweep_picture(const std::string& title, const std::string& name, const std::vector<SweepPoint>& points);

// A collective as a timeline: which link carries what and when.

/// collective::link_schedule with one lane per link where there are few enough transfers to see; otherwise the closed
/// form hop by hop, one lane per axis or level. `axis_names` names the group's torus axes, `level_names` the cluster's
/// levels.
draw::Timeline collective_timeline(program::Collective kind, Bytes array, const collective::CollectiveGroup& group,
                                   const std::vector<std::string>& axis_names,
                                   const std::vector<std::string>& level_names);

/// The names of the torus axes in `axes`, as --axes writes them; all axes of the slice if it is empty.
std::vector<std::string> torus_axis_names(const hardware::Cluster& cluster, const std::vector<std::string>& axes);

}  // namespace assay::verbs::collective_verb
