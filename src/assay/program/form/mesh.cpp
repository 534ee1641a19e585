#include "assay/program/form/mesh.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::program {

MeshAxis axis_of(Role role, std::int64_t size) { return {std::string(name(role)), size, role}; }

std::string part_name(std::string_view axis, std::size_t part) { return fmt::format("{}({})", axis, part); }

std::int64_t Mesh::devices() const {
  std::int64_t n = 1;
  for (const MeshAxis& axis : axes) n *= axis.size;
  return n;
}

std::optional<int> Mesh::find(std::string_view name) const {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name) return static_cast<int>(i);
  return std::nullopt;
}

Result<Mesh> parse_mesh(std::string_view text, std::string_view where) {
  constexpr std::int64_t max_devices = 10'000'000;
  Mesh mesh;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name(trim(std::string_view(part).substr(0, equals)));
    const bool letters =
        !name.empty() && name.size() <= 16 &&
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == std::string::npos;
    if (equals == std::string::npos || !letters)
      return fail(std::string(where), fmt::format("{} is not AXIS=SIZE", in_quotes(part)),
                  "write X=4,Y=2; an axis name has letters only", Error::Kind::usage);
    ASSAY_TRY(size, parse_count(std::string_view(part).substr(equals + 1), where));
    if (mesh.find(name))
      return fail(std::string(where), fmt::format("axis {} is given twice", name), "each axis has one size",
                  Error::Kind::usage);
    if (mesh.axes.size() == max_mesh_axes)
      return fail(std::string(where), fmt::format("a mesh has at most {} axes", max_mesh_axes), "", Error::Kind::usage);
    if (size > max_devices || mesh.devices() * size > max_devices)
      return fail(std::string(where), "the mesh has more than 10 million devices", "");
    mesh.axes.push_back({name, size});
  }
  return mesh;
}

std::string mesh_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes) text += (text.empty() ? "" : ",") + fmt::format("{}={}", axis.name, axis.size);
  return text;
}

}  // namespace assay::program
