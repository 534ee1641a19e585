#include "assay/program/form/sharding.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::program {

double shard_count(const Mesh& mesh, AxisSet axes) {
  double n = 1.0;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (axes & axis_bit(static_cast<int>(i))) n *= static_cast<double>(mesh.axes[i].size);
  return n;
}

std::int64_t local_size(const Mesh& mesh, std::int64_t size, AxisList axes) {
  const auto ways = static_cast<std::int64_t>(shard_count(mesh, axes.set()));
  return (size + ways - 1) / ways;
}

std::vector<std::int64_t> local_shape(const Mesh& mesh, const Tensor& tensor) {
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    shape.push_back(local_size(mesh, tensor.dims[i].size, tensor.sharding.dims[i]));
  return shape;
}

Bytes local_bytes(const Mesh& mesh, const Tensor& tensor) {
  double elements = 1.0;
  for (std::int64_t n : local_shape(mesh, tensor)) elements *= static_cast<double>(n);
  return storage(tensor.dtype, elements);
}

Bytes global_bytes(const Tensor& tensor) {
  double elements = 1.0;
  for (const Dimension& dim : tensor.dims) elements *= static_cast<double>(dim.size);
  return storage(tensor.dtype, elements);
}

std::int64_t replication(const Mesh& mesh, const Tensor& tensor) {
  return static_cast<std::int64_t>(static_cast<double>(mesh.devices()) /
                                   shard_count(mesh, tensor.sharding.used_axes()));
}

bool is_padded(const Mesh& mesh, const Tensor& tensor) {
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    if (local_size(mesh, tensor.dims[i].size, tensor.sharding.dims[i]) *
            static_cast<std::int64_t>(shard_count(mesh, tensor.sharding.dims[i].set())) !=
        tensor.dims[i].size)
      return true;
  return false;
}

namespace {

std::string list_text(const Mesh& mesh, const std::vector<int>& axes) {
  std::vector<std::string> names;
  bool has_words = false;
  for (std::size_t i = 0; i < axes.size();) {
    const std::string& name = mesh.axes[static_cast<std::size_t>(axes[i])].name;
    const std::size_t open = name.find('(');
    const std::string whole = name.substr(0, open);
    std::size_t parts = 0, run = 0;
    for (const MeshAxis& axis : mesh.axes) parts += axis.name.starts_with(whole + "(");
    while (run < parts && i + run < axes.size() &&
           mesh.axes[static_cast<std::size_t>(axes[i + run])].name == part_name(whole, run + 1))
      ++run;
    const bool complete = open != std::string::npos && run == parts;
    names.push_back(complete ? whole : name);
    has_words |= whole.size() > 1;
    i += complete ? parts : 1;
  }
  return join(names, has_words ? "+" : "");
}

}  // namespace

AxisList ordered(const Mesh& mesh, AxisSet set, const std::vector<AxisList>& known) {
  for (const AxisList list : known)
    if (list.set() == set) return list;
  AxisList list;
  for (int axis = 0; axis < static_cast<int>(mesh.axes.size()); ++axis)
    if (set & axis_bit(axis)) list = list.pushed(axis);
  return list;
}

std::string axes_text(const Mesh& mesh, AxisList axes) { return list_text(mesh, axes.axes()); }

std::string axes_text(const Mesh& mesh, AxisSet axes) {
  std::vector<int> list;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (axes & axis_bit(static_cast<int>(i))) list.push_back(static_cast<int>(i));
  return list_text(mesh, list);
}

std::string tensor_text(const Mesh& mesh, const Tensor& tensor) {
  std::string text = tensor.name + (tensor.dims.empty() ? "" : "[");
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    text += (i ? ", " : "") + tensor.dims[i].name;
    const AxisList axes = tensor.sharding.dims[i];
    if (!axes.empty()) text += "_" + axes_text(mesh, axes);
  }
  if (!tensor.dims.empty()) text += "]";
  if (tensor.sharding.unreduced) text += fmt::format(" {{U_{}}}", axes_text(mesh, tensor.sharding.unreduced));
  return text;
}

}  // namespace assay::program
