#include "assay/profile/hlo/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

/// Shapes are of one device once collectives are inserted; marks of shardings are of before.
bool is_partitioned(const Module& module) {
  bool marks = false, collectives = false;
  for (const Computation& computation : module.computations)
    for (const Instruction& at : computation.instructions) {
      marks = marks || at.calls(CallKind::sharding) || !at.attribute("manual_axes").empty();
      collectives = collectives || at.opcode == "partition-id" || !at.attribute("replica_groups").empty() ||
                    !at.attribute("source_target_pairs").empty();
    }
  return module.devices() == 1 || (collectives && !marks);
}

/// A sharding with the steps of device numbers along each dimension.
struct PlacedSharding {
  Sharding sharding;
  std::vector<std::vector<StridedAxis>> dims;
};

Result<PlacedSharding> placed(const Module& module, const Instruction& parameter) {
  PlacedSharding out;
  const std::string_view sdy = parameter.attribute("frontend_attributes");
  if (const std::size_t at = sdy.find("#sdy.sharding<"); at != std::string_view::npos && !module.mesh.empty()) {
    auto read = parse_sdy_sharding(sdy.substr(at), module.mesh, "");
    if (!read) return fail(module.where(parameter), read.error().what, read.error().hint);
    out.sharding = std::move(*read);
    return out;
  }
  const std::string_view text = parameter.attribute("sharding");
  if (text.empty()) return out;
  auto read = parse_sharding(text, "");
  if (!read) return fail(module.where(parameter), read.error().what, read.error().hint);
  out.sharding = std::move(*read);
  for (std::size_t i = 0; i < out.sharding.tiles.size(); ++i) out.dims.push_back(strided_axes(out.sharding, i));
  return out;
}

/// Places where axes begin and end, as steps of device numbers.
void add_cuts(const std::vector<StridedAxis>& axes, std::set<std::int64_t>& cuts) {
  for (const StridedAxis& axis : axes) {
    cuts.insert(axis.stride);
    cuts.insert(axis.stride * axis.size);
  }
}

std::vector<ProgramAxis> axes_between(const std::set<std::int64_t>& cuts, std::int64_t devices) {
  std::vector<ProgramAxis> out;
  std::int64_t stride = 1;
  for (const std::int64_t cut : cuts) {
    if (cut <= stride || cut > devices || cut % stride != 0) continue;
    out.push_back({"", cut / stride, stride, false});
    stride = cut;
  }
  if (devices > stride && devices % stride == 0) out.push_back({"", devices / stride, stride, false});
  std::reverse(out.begin(), out.end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].name = fmt::format("A{}", i);
  return out;
}

/// The axes of the mesh that one step of device numbers covers.
void add_covered(const std::vector<ProgramAxis>& mesh, const StridedAxis& step, std::vector<std::size_t>& out) {
  for (std::size_t i = 0; i < mesh.size(); ++i)
    if (mesh[i].stride >= step.stride && mesh[i].stride * mesh[i].size <= step.stride * step.size) out.push_back(i);
}

/// How a parameter without a sharding is gathered: dims of all-gathers by the shape that goes in, without sizes of 1.
struct Gathers {
  struct Gather {
    std::size_t dim = 0;
    std::int64_t size = 1;
    std::vector<StridedAxis> axes;
  };
  std::map<std::vector<std::int64_t>, Gather> by_shape;
};

std::vector<std::int64_t> without_ones(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> out;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(out), [](std::int64_t d) { return d != 1; });
  return out;
}

Gathers gathers_of(const Module& module) {
  Gathers out;
  for (const Computation& computation : module.computations)
    for (const Instruction& at : computation.instructions) {
      if (base_opcode(at) != "all-gather" || is_async_done(at) || at.operands.size() != 1) continue;
      const Shape& before = computation.instructions[at.operands.front()].shape;
      const auto dims = number_list(at.attribute("dimensions"));
      const auto groups = parse_replica_groups(at.attribute("replica_groups"), "");
      if (dims.size() != 1 || !groups || before.is_tuple || dims.front() < 0 ||
          static_cast<std::size_t>(dims.front()) >= before.dims.size())
        continue;
      Gathers::Gather gather{0, groups->size(module.devices()), strided_axes(*groups, module.devices())};
      for (std::size_t i = 0; i < static_cast<std::size_t>(dims.front()); ++i)
        if (before.dims[i] != 1) ++gather.dim;
      out.by_shape.emplace(without_ones(before.dims), std::move(gather));
    }
  return out;
}

/// Divides a dimension as the gather of the same shape undoes it. A layer's part of stacked weights is gathered, so a
/// dimension may be missing there.
void guess_sharding(const Gathers& gathers, const std::vector<ProgramAxis>& mesh, WholeParameter& parameter) {
  for (std::size_t left_out = 0; left_out <= parameter.dims.size(); ++left_out) {
    std::vector<std::int64_t> shape;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < parameter.dims.size(); ++i) {
      if (i + 1 == left_out || parameter.dims[i] == 1) continue;
      shape.push_back(parameter.dims[i]);
      places.push_back(i);
    }
    const auto known = gathers.by_shape.find(shape);
    if (known == gathers.by_shape.end() || known->second.dim >= places.size()) continue;
    const std::size_t dim = places[known->second.dim];
    parameter.dims[dim] *= known->second.size;
    for (const StridedAxis& step : known->second.axes) add_covered(mesh, step, parameter.axes[dim]);
    parameter.guessed = true;
    return;
  }
}

}  // namespace

double WholeParameter::elements() const {
  double out = 1.0;
  for (const std::int64_t size : dims) out *= static_cast<double>(size);
  return out;
}

Result<ProgramMesh> program_mesh(const Module& module) {
  ProgramMesh out;
  out.partitioned = is_partitioned(module);
  std::vector<PlacedSharding> shardings(module.parameters.size());
  std::vector<std::string> names(module.parameters.size());
  std::set<std::int64_t> cuts;
  bool any = false;
  if (const Computation* entry = module.entry_computation())
    for (const Instruction& at : entry->instructions) {
      if (at.opcode != "parameter") continue;
      const auto number = static_cast<std::size_t>(number_list(at.argument).front());
      for (const char c : at.op_name())
        if (c != '\\') names[number] += c;
      ASSAY_TRY(sharding, placed(module, at));
      for (const auto& axes : sharding.dims) add_cuts(axes, cuts);
      any = any || sharding.sharding.kind == Sharding::Kind::tiled;
      shardings[number] = std::move(sharding);
    }
  Gathers gathers;
  if (!any && module.devices() > 1) {
    gathers = gathers_of(module);
    for (const auto& [shape, gather] : gathers.by_shape) add_cuts(gather.axes, cuts);
  }
  if (module.mesh.empty()) {
    out.axes = axes_between(cuts, module.devices());
  } else {
    std::int64_t stride = module.devices();
    for (const NamedAxis& axis : module.mesh) {
      stride /= axis.second;
      if (axis.second > 1) out.axes.push_back({axis.first, axis.second, std::max<std::int64_t>(stride, 1), true});
    }
  }
  for (std::size_t i = 0; i < module.parameters.size(); ++i) {
    const Shape& shape = module.parameters[i];
    WholeParameter parameter;
    parameter.number = static_cast<std::int64_t>(i);
    parameter.name = names[i];
    parameter.element = shape.element;
    parameter.dims = parameter.local = shape.dims;
    parameter.axes.resize(shape.dims.size());
    const Sharding& sharding = shardings[i].sharding;
    for (std::size_t d = 0; d < std::min(sharding.tiles.size(), shape.dims.size()); ++d) {
      if (out.partitioned)
        parameter.dims[d] *= sharding.tiles[d];
      else
        parameter.local[d] = (shape.dims[d] + sharding.tiles[d] - 1) / sharding.tiles[d];
      if (d < sharding.axes.size() && !module.mesh.empty()) {
        for (const std::string& name : sharding.axes[d])
          for (std::size_t a = 0; a < out.axes.size(); ++a)
            if (out.axes[a].name == name) parameter.axes[d].push_back(a);
      } else if (d < shardings[i].dims.size()) {
        for (const StridedAxis& step : shardings[i].dims[d]) add_covered(out.axes, step, parameter.axes[d]);
      }
    }
    if (!gathers.by_shape.empty() && shape.element && shape.element->is_float)
      guess_sharding(gathers, out.axes, parameter);
    out.parameters.push_back(std::move(parameter));
  }
  return out;
}

}  // namespace assay::hlo
