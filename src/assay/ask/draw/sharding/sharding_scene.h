// Pictures of sharded arrays: which device holds which shard, and what each step of a plan changes.
#pragma once

#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/program/form/sharding.h"
#include "assay/program/plan/planner.h"

namespace assay::draw {

/// The shard that a device holds, one index for each dimension; coordinates are by mesh axis.
std::vector<std::int64_t> shard_index(const program::Mesh& mesh, const program::Tensor& tensor,
                                      const std::vector<std::int64_t>& coordinates);

/// The devices, each coloured and labelled by its shard, next to the array cut into these shards. Devices of one colour
/// hold the same shard; a hatched one holds a partial sum. Long axes are drawn without their middle.
Scene draw_sharding(const program::Mesh& mesh, const program::Tensor& tensor);

/// One panel per step, from the top: what each device holds before it, the step in the notation with its cost, and what
/// each device holds after it. `costs` are captions by step: "12 MiB received, 41.2 us".
Scene draw_plan(const program::Mesh& mesh, const std::string& title, const std::string& subtitle,
                const plan::Plan& plan, const std::vector<std::string>& costs);

}  // namespace assay::draw
