// How a tensor is divided among devices, as GSPMD writes it:
//   {replicated}   {maximal device=3}   {manual}   {devices=[2,1,4]<=[8] last_tile_dim_replicate}
//   {devices=[2,2]0,2,1,3} {mesh['X'=8,'Y'=1], [{}, {'X'}]}
// or as shardy does, over a mesh with named axes: #sdy.sharding<@mesh, [{"fsdp"}, {}, {"tensor", "expert"}]>
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/profile/hlo/groups.h"

namespace assay::hlo {

struct Sharding {
  enum class Kind : std::uint8_t { replicated, maximal, manual, tiled, unknown };
  Kind kind = Kind::replicated;
  std::vector<std::int64_t> tiles;             ///< parts of each dimension
  std::int64_t copies = 1;                     ///< devices that hold the same part
  Iota order;                                  ///< of the devices; without dims where they are listed one by one
  std::vector<std::int64_t> listed;            ///< the devices one by one
  std::vector<std::vector<std::string>> axes;  ///< of each dimension, where axes have names
  std::vector<std::vector<StridedAxis>>
      steps;                      ///< of each dimension in device numbers, major first, where axes have names
  std::vector<bool> open;         ///< dimensions that a compiler may divide further
  std::vector<Sharding> members;  ///< of a tuple

  std::int64_t devices() const;
};

/// The text of an attribute sharding=, with its braces.
Result<Sharding> parse_sharding(std::string_view text, std::string_view where);

/// "#sdy.mesh<["data"=1, "fsdp"=4]>", or the part between < and >.
Result<std::vector<NamedAxis>> parse_sdy_mesh(std::string_view text, std::string_view where);
/// "#sdy.sharding<@mesh, [{"fsdp"}, {}]>"; sizes of parts are by the mesh.
Result<Sharding> parse_sdy_sharding(std::string_view text, const std::vector<NamedAxis>& mesh, std::string_view where);

/// The devices along a dimension, as steps of device numbers: its axes, the most major first. Empty where it is not
/// divided, or where devices are in no such order.
std::vector<StridedAxis> steps_of(const Sharding& sharding, std::size_t dim);

}  // namespace assay::hlo
