// A mesh: devices arranged along named axes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::program {

inline constexpr int max_mesh_axes = 8;

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
};

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
