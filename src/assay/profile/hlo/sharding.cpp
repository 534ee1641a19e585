#include "assay/profile/hlo/sharding.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/assign.h"
#include "assay/base/text.h"

namespace assay::hlo {
namespace {

constexpr const char* sharding_forms = "a sharding is written as {devices=[2,1,4]<=[8] last_tile_dim_replicate}";
constexpr int deepest_sharding = 20;

/// The dimensions at the end of the tile assignment that divide no dimension of the tensor.
struct TrailingDims {
  std::size_t count = 0;
  bool copies = false;  ///< they hold copies
};

Result<TrailingDims> read_trailing(Cursor& in) {
  TrailingDims out;
  if (in.take("last_tile_dims=")) {
    ASSAY_TRY(kinds, in.bracketed());
    for (const std::string& kind : split(kinds, ',')) {
      ++out.count;
      if (trim(kind) == "replicated") out.copies = true;
    }
  } else if (in.take("last_tile_dim_replicate")) {
    out = {1, true};
  }
  return out;
}

Result<Sharding> read_tiles(Cursor& in) {
  Sharding out;
  out.kind = Sharding::Kind::tiled;
  std::int64_t total = 1;
  ASSAY_CHECK(in.expect("[", "of the tiles of a sharding"));
  while (!in.take("]")) {
    const auto size = in.integer();
    if (!size || *size < 1 || *size > most_devices || total > most_devices)
      return in.fault("a tile assignment has sizes of 1 and more", sharding_forms);
    out.tiles.push_back(*size);
    total *= *size;
    in.take(",");
  }
  if (in.take("<=")) {
    ASSAY_TRY(iota, read_iota(in));
    if (iota.size() != total)
      return in.fault(fmt::format("{} tiles for {} devices", total, iota.size()), sharding_forms);
    out.order = iota;
  } else {
    while (const auto device = in.integer()) {
      out.listed.push_back(*device);
      if (!in.take(",")) break;
    }
    if (static_cast<std::int64_t>(out.listed.size()) != total)
      return in.fault(fmt::format("{} tiles, {} devices are listed", total, out.listed.size()), sharding_forms);
  }
  ASSAY_TRY(trailing, read_trailing(in));
  for (std::size_t i = 0; i < trailing.count && !out.tiles.empty(); ++i) {
    if (trailing.copies) out.copies *= out.tiles.back();
    out.tiles.pop_back();
  }
  if (std::all_of(out.tiles.begin(), out.tiles.end(), [](std::int64_t n) { return n == 1; }))
    out.kind = Sharding::Kind::replicated;
  return out;
}

/// Devices apart of neighbours along an axis of a mesh, and along a part of it behind `before` others.
StridedAxis step_of(const std::vector<NamedAxis>& mesh, std::size_t axis, std::int64_t before, std::int64_t size) {
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < mesh.size(); ++i) stride *= mesh[i].second;
  return {size, stride * (mesh[axis].second / (before * size))};
}

/// A part of an axis behind its name: :(2)2 is of 2 devices, behind 2 parts; else the whole axis.
Result<StridedAxis> read_part(Cursor& in, const std::vector<NamedAxis>& mesh, std::size_t axis) {
  const std::int64_t whole = mesh[axis].second;
  if (!in.take(":")) return step_of(mesh, axis, 1, whole);
  ASSAY_CHECK(in.expect("(", "of a part of an axis"));
  const auto before = in.integer();
  ASSAY_CHECK(in.expect(")", "of a part of an axis"));
  const auto size = in.integer();
  if (!before || !size || *before < 1 || *size < 1 || *before > whole || *size > whole ||
      whole % (*before * *size) != 0)
    return in.fault("a part of an axis divides it", "as in \"x\":(1)2 of an axis of 4");
  return step_of(mesh, axis, *before, *size);
}

/// 'X' among the axes of a mesh.
Result<std::size_t> read_mesh_axis(Cursor& in, const std::vector<NamedAxis>& mesh) {
  ASSAY_CHECK(in.expect("'", "of the name of an axis"));
  const std::string_view name = in.name();
  ASSAY_CHECK(in.expect("'", "behind the name of an axis"));
  for (std::size_t i = 0; i < mesh.size(); ++i)
    if (mesh[i].first == name) return i;
  return in.fault(fmt::format("the mesh has no axis {}", in_quotes(name)),
                  "axes are written as mesh['X'=2], [{'X'}, {}]");
}

/// ['X'=8,'Y'=1], [{}, {'X'}]
Result<Sharding> read_named_tiles(Cursor& in) {
  Sharding out;
  std::vector<NamedAxis> mesh;
  ASSAY_CHECK(in.expect("[", "of a mesh"));
  while (!in.take("]")) {
    ASSAY_CHECK(in.expect("'", "of the name of an axis"));
    const std::string_view name = in.name();
    ASSAY_CHECK(in.expect("'", "behind the name of an axis"));
    ASSAY_CHECK(in.expect("=", "behind the name of an axis"));
    const auto size = in.integer();
    if (!size || *size < 1 || *size > most_devices || out.order.size() > most_devices / *size)
      return in.fault("an axis has a size of 1 and more", sharding_forms);
    mesh.emplace_back(std::string(name), *size);
    out.order.dims.push_back(*size);
    in.take(",");
  }
  in.take(",");
  if (!in.take("[")) return out;
  std::int64_t divided = 1;
  bool whole = true;  // no part of an axis is used by itself
  while (!in.take("]")) {
    ASSAY_CHECK(in.expect("{", "of the axes of a dimension"));
    out.axes.emplace_back();
    out.steps.emplace_back();
    std::int64_t parts = 1;
    while (!in.take("}")) {
      if (in.take("?")) continue;
      ASSAY_TRY(axis, read_mesh_axis(in, mesh));
      ASSAY_TRY(step, read_part(in, mesh, axis));
      for (const auto& steps : out.steps)
        if (std::find(steps.begin(), steps.end(), step) != steps.end() && step.size > 1)
          return in.fault("an axis divides one dimension", sharding_forms);
      whole = whole && step.size == mesh[axis].second;
      out.order.permutation.push_back(static_cast<std::int64_t>(axis));
      out.axes.back().push_back(mesh[axis].first);
      out.steps.back().push_back(step);
      parts *= step.size;
      in.take(",");
    }
    out.tiles.push_back(parts);
    divided *= parts;
    if (parts > 1) out.kind = Sharding::Kind::tiled;
    in.take(",");
  }
  std::int64_t devices = 1;
  for (const NamedAxis& axis : mesh) devices *= axis.second;
  out.copies = divided > 0 && divided <= devices ? devices / divided : 1;
  if (!whole) out.order = {};  // no order of whole axes
  for (std::size_t i = 0; whole && i < mesh.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    if (std::find(out.order.permutation.begin(), out.order.permutation.end(), number) == out.order.permutation.end())
      out.order.permutation.push_back(number);
  }
  return out;
}

Result<Sharding> read_sharding(Cursor& in, int depth) {
  Sharding out;
  if (depth == deepest_sharding) return in.fault("shardings nest too deep", sharding_forms);
  ASSAY_CHECK(in.expect("{", "of a sharding"));
  in.skip_blanks();
  if (in.sees("{")) {  // of a tuple
    while (!in.take("}")) {
      ASSAY_TRY(member, read_sharding(in, depth + 1));
      out.members.push_back(std::move(member));
      in.take(",");
    }
    return out;
  }
  if (in.take("devices=")) {
    ASSAY_SET(out, read_tiles(in));
  } else if (in.take("mesh")) {
    ASSAY_SET(out, read_named_tiles(in));
  } else if (in.take("maximal")) {
    out.kind = Sharding::Kind::maximal;
  } else if (in.take("manual")) {
    out.kind = Sharding::Kind::manual;
  } else if (in.sees("unknown") || in.sees("unreduced")) {
    out.kind = Sharding::Kind::unknown;
  } else if (!in.sees("replicated") && !in.sees("}")) {
    return in.fault("unknown sharding", sharding_forms);
  }
  while (!in.done() && in.peek() != '}') {  // metadata, the device of a maximal one, shard_like
    if (in.peek() == '{') {
      ASSAY_CHECK(in.bracketed());
    } else {
      in.move_to(in.at() + 1);
    }
  }
  ASSAY_CHECK(in.expect("}", "at the end of a sharding"));
  return out;
}

/// "fsdp", perhaps with escaped quotes: \"fsdp\".
std::string read_axis_name(Cursor& in) {
  in.take("\\");
  if (!in.take("\"")) return {};
  const std::string_view name = in.name();
  in.take("\\");
  in.take("\"");
  return std::string(name);
}

}  // namespace

std::int64_t Sharding::devices() const {
  std::int64_t out = copies;
  for (const std::int64_t part : tiles) out *= part;
  return out;
}

Result<Sharding> parse_sharding(std::string_view text, std::string_view where) {
  Cursor in(text, where);
  return read_sharding(in, 0);
}

Result<std::vector<NamedAxis>> parse_sdy_mesh(std::string_view text, std::string_view where) {
  Cursor in(text, where);
  std::vector<NamedAxis> out;
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos)
    return in.fault("expected [ of a mesh", "a mesh is written as <[\"x\"=2, \"y\"=4]>");
  in.move_to(open + 1);
  std::int64_t devices = 1;
  while (!in.take("]")) {
    std::string name = read_axis_name(in);
    ASSAY_CHECK(in.expect("=", "behind the name of an axis"));
    const auto size = in.integer();
    if (name.empty() || !size || *size < 1 || *size > most_devices || devices > most_devices)
      return in.fault("an axis has a name and a size", "a mesh is written as <[\"x\"=2, \"y\"=4]>");
    devices *= *size;
    out.emplace_back(std::move(name), *size);
    in.take(",");
  }
  return out;
}

Result<Sharding> parse_sdy_sharding(std::string_view text, const std::vector<NamedAxis>& mesh, std::string_view where) {
  Cursor in(text, where);
  Sharding out;
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) return out;
  in.move_to(open + 1);
  if (in.take("<@") && text.find('[', in.at()) != std::string_view::npos) in.move_to(text.find('[', in.at()) + 1);
  while (!in.take("]")) {
    ASSAY_CHECK(in.expect("{", "of the axes of a dimension"));
    std::vector<std::string> axes;
    std::vector<StridedAxis> steps;
    std::int64_t parts = 1;
    bool open_end = false;
    while (!in.take("}")) {
      if (in.take("?")) {  // the compiler may divide it further
        open_end = true;
        continue;
      }
      std::string name = read_axis_name(in);
      const auto known =
          std::find_if(mesh.begin(), mesh.end(), [&](const NamedAxis& axis) { return axis.first == name; });
      if (name.empty() || known == mesh.end())
        return in.fault(
            name.empty() ? "expected the name of an axis" : fmt::format("the mesh has no axis {}", in_quotes(name)),
            "axes are written as {\"x\", \"y\"}");
      ASSAY_TRY(step, read_part(in, mesh, static_cast<std::size_t>(known - mesh.begin())));
      if (step.size > 1 && parts <= most_devices) {
        parts *= step.size;
        axes.push_back(std::move(name));
        steps.push_back(step);
      }
      in.take(",");
    }
    if (in.take("p")) in.integer();  // priority
    out.axes.push_back(std::move(axes));
    out.steps.push_back(std::move(steps));
    out.open.push_back(open_end);
    out.tiles.push_back(parts);
    if (parts > 1) out.kind = Sharding::Kind::tiled;
    in.take(",");
  }
  return out;
}

std::vector<StridedAxis> steps_of(const Sharding& sharding, std::size_t dim) {
  if (dim >= sharding.tiles.size() || sharding.tiles[dim] <= 1) return {};
  if (!sharding.steps.empty()) return sharding.steps[dim];
  const std::vector<std::int64_t> order = sharding.order.dims.empty() ? sharding.listed : sharding.order.values();
  if (order.empty()) return {};
  std::int64_t step = sharding.copies;
  for (std::size_t i = dim + 1; i < sharding.tiles.size(); ++i) step *= sharding.tiles[i];
  ReplicaGroups along;
  along.lists.emplace_back();
  for (std::int64_t i = 0; i < sharding.tiles[dim]; ++i)
    if (const auto at = static_cast<std::size_t>(i * step); at < order.size()) along.lists.front().push_back(order[at]);
  std::vector<StridedAxis> out = strided_axes(along, static_cast<std::int64_t>(order.size()));
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace assay::hlo
