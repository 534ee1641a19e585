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

Result<std::optional<Sharding>> stated_sharding(const Module& module, std::string_view gspmd, std::string_view shardy,
                                                const Instruction& at) {
  const std::size_t sdy = module.mesh.empty() ? std::string_view::npos : shardy.find("#sdy.sharding<");
  if (gspmd.empty() && sdy == std::string_view::npos) return std::nullopt;
  auto read = sdy == std::string_view::npos ? parse_sharding(gspmd, "")
                                            : parse_sdy_sharding(shardy.substr(sdy), module.mesh, "");
  if (!read) return fail(module.where(at), read.error().what, read.error().hint);
  return std::move(*read);
}

void add_cuts(const Sharding& sharding, std::set<std::int64_t>& cuts) {
  for (std::size_t d = 0; d < sharding.tiles.size(); ++d)
    for (const StridedAxis& step : steps_of(sharding, d)) cuts.insert({step.stride, step.stride * step.size});
}

std::vector<ProgramAxis> axes_between(const std::set<std::int64_t>& cuts, std::int64_t devices) {
  std::vector<ProgramAxis> out;
  std::int64_t stride = 1;
  for (const std::int64_t cut : cuts) {
    if (cut <= stride || cut > devices || cut % stride != 0) continue;
    out.push_back({"", cut / stride, stride});
    stride = cut;
  }
  if (devices > stride && devices % stride == 0) out.push_back({"", devices / stride, stride});
  std::reverse(out.begin(), out.end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].name = fmt::format("A{}", i);
  return out;
}

double WholeParameter::elements() const {
  double out = 1.0;
  for (const std::int64_t size : dims) out *= static_cast<double>(size);
  return out;
}

Result<ProgramMesh> program_mesh(const Module& module) {
  ProgramMesh out;
  out.partitioned = is_partitioned(module);
  std::vector<Sharding> shardings(module.parameters.size());
  std::vector<std::string> names(module.parameters.size());
  std::set<std::int64_t> cuts;
  bool any = false;
  if (const Computation* entry = module.entry_computation())
    for (const Instruction& at : entry->instructions) {
      if (at.opcode != "parameter") continue;
      const auto number = static_cast<std::size_t>(number_list(at.argument).front());
      for (const char c : at.op_name())
        if (c != '\\') names[number] += c;
      ASSAY_TRY(sharding, stated_sharding(module, at.attribute("sharding"), at.attribute("frontend_attributes"), at));
      if (!sharding) continue;
      add_cuts(*sharding, cuts);
      any = any || sharding->kind == Sharding::Kind::tiled;
      shardings[number] = std::move(*sharding);
    }
  Gathers gathers;
  if (!any && module.devices() > 1) {
    gathers = gathers_of(module);
    for (const auto& [shape, gather] : gathers.by_shape)
      for (const StridedAxis& axis : gather.axes) cuts.insert({axis.stride, axis.stride * axis.size});
  }
  if (module.mesh.empty()) {
    out.axes = axes_between(cuts, module.devices());
  } else {
    std::int64_t stride = module.devices();
    for (const NamedAxis& axis : module.mesh) {
      stride /= axis.second;
      if (axis.second > 1) out.axes.push_back({axis.first, axis.second, std::max<std::int64_t>(stride, 1)});
    }
  }
  for (std::size_t i = 0; i < module.parameters.size(); ++i) {
    const Shape& shape = module.parameters[i];
    WholeParameter parameter;
    parameter.name = names[i];
    parameter.element = shape.element;
    parameter.dims = parameter.local = shape.dims;
    parameter.axes.resize(shape.dims.size());
    const Sharding& sharding = shardings[i];
    for (std::size_t d = 0; d < std::min(sharding.tiles.size(), shape.dims.size()); ++d) {
      if (out.partitioned)
        parameter.dims[d] *= sharding.tiles[d];
      else
        parameter.local[d] = (shape.dims[d] + sharding.tiles[d] - 1) / sharding.tiles[d];
      if (d < sharding.axes.size() && !module.mesh.empty()) {
        for (const std::string& name : sharding.axes[d])
          for (std::size_t a = 0; a < out.axes.size(); ++a)
            if (out.axes[a].name == name) parameter.axes[d].push_back(a);
      } else {
        const std::vector<StridedAxis> steps = steps_of(sharding, d);
        std::for_each(steps.rbegin(), steps.rend(),
                      [&](const StridedAxis& step) { add_covered(out.axes, step, parameter.axes[d]); });
      }
    }
    if (!gathers.by_shape.empty() && shape.element && shape.element->is_float)
      guess_sharding(gathers, out.axes, parameter);
    out.parameters.push_back(std::move(parameter));
  }
  return out;
}

}  // namespace assay::hlo
