// A mesh: devices arranged along named axes.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::program {

inline constexpr int max_mesh_axes = 8;

/// What a strategy uses the devices along an axis for. Stages of a pipeline run programs of their own, so that the mesh
/// of a program has the roles before it.
enum class Role : std::uint8_t { data, fsdp, expert, context, tensor, pipeline };
inline constexpr std::array<std::string_view, 6> role_names{"dp", "fsdp", "ep", "cp", "tp", "pp"};
constexpr std::string_view name(Role role) { return role_names[static_cast<std::size_t>(role)]; }

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  std::optional<Role> role{};  ///< none where a person named the axis
};
/// The axis of a role, which has its name.
MeshAxis axis_of(Role role, std::int64_t size);
/// "tp(2)": a part of an axis, counted from 1, the first one outermost.
std::string part_name(std::string_view axis, std::size_t part);

/// Named axes, the first one outermost. An axis is referred to by its index.
struct Mesh {
  std::vector<MeshAxis> axes;

  std::int64_t devices() const;
  std::int64_t size(int axis) const { return axes[static_cast<std::size_t>(axis)].size; }
  std::optional<int> find(std::string_view name) const;
};

/// "X=4,Y=2"
Result<Mesh> parse_mesh(std::string_view text, std::string_view where);

/// "X=4,Y=2"
std::string mesh_text(const Mesh& mesh);

}  // namespace assay::program
