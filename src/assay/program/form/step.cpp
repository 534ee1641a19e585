#include "assay/program/form/step.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::program {
namespace {

bool has(const Tensor& tensor, const std::string& dim) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(), [&](const Dimension& each) { return each.name == dim; });
}

/// The dimensions that a product sums over: both operands have them, the result does not.
std::string contracted(const Tensor& a, const Tensor& b, const Tensor& c) {
  std::string names;
  for (const Dimension& dim : a.dims)
    if (has(b, dim.name) && !has(c, dim.name)) names += dim.name;
  return names;
}

}  // namespace

std::string step_text(const Mesh& mesh, const std::function<Tensor(int)>& tensor, std::string_view contracted,
                      const Step& step) {
  const auto text = [&](int id) { return tensor_text(mesh, tensor(id)); };
  std::string outputs, inputs;
  for (int id : step.out)
    if (id >= 0) outputs += (outputs.empty() ? "" : ", ") + text(id);
  if (step.op == Op::product) {
    std::string product = fmt::format("{} = {} ·{} {}", outputs, text(step.in[0]), contracted, text(step.in[1]));
    for (std::size_t i = 2; i < step.in.size(); ++i)
      if (step.in[i] >= 0) product += " + " + text(step.in[i]);
    return product;
  }
  for (int id : step.in)
    if (id >= 0) inputs += (inputs.empty() ? "" : step.op == Op::add ? " + " : ", ") + text(id);
  if (step.op == Op::add) return fmt::format("{} = {}", outputs, inputs);
  if (is_movement(step.op))
    return fmt::format("{} = {}{}_{}({})", outputs, step.op == Op::slice ? "Slice" : facts(step.collective).notation,
                       step.takes_largest() ? "Max" : "", axes_text(mesh, step.axes), inputs);
  if (outputs.empty()) return fmt::format("{}({})", name(step), inputs);
  return fmt::format("{} = {}({})", outputs, name(step), inputs);
}

std::string step_text(const Mesh& mesh, std::span<const Tensor> tensors, const Step& step) {
  const auto tensor = [&](int id) -> const Tensor& { return tensors[static_cast<std::size_t>(id)]; };
  std::string summed;
  if (step.op == Op::product) summed = contracted(tensor(step.in[0]), tensor(step.in[1]), tensor(step.out[0]));
  return step_text(mesh, tensor, summed, step);
}

}  // namespace assay::program
