#include "assay/ask/verbs/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/ask/draw/flow.h"
#include "assay/base/text.h"
#include "assay/program/lower/lowering.h"

namespace assay::verbs::models {
namespace {

bool has_dim(const program::Tensor& tensor, const std::string& name) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(),
                     [&](const program::Dimension& dim) { return dim.name == name; });
}

/// "Q[B, S, N, H] = Norm[B, S, D] · W_q[D, N, H]", and below it what the product does with dimensions of both operands.
std::vector<draw::FlowLine> product_lines(const program::Mesh& mesh, const program::Tensor& left,
                                          const program::Tensor& right, const program::Tensor& out) {
  std::vector<draw::FlowLine> lines{{fmt::format("{} = {} · {}", program::tensor_text(mesh, out),
                                                 program::tensor_text(mesh, left), program::tensor_text(mesh, right))}};
  std::string summed, kept;
  for (const program::Dimension& dim : left.dims) {
    if (!has_dim(right, dim.name)) continue;
    std::string& names = has_dim(out, dim.name) ? kept : summed;
    names += (names.empty() ? "" : ", ") + dim.name;
  }
  if (!summed.empty()) lines.push_back({"sums over " + summed, draw::ColourRole::series_2});
  if (!kept.empty()) lines.push_back({"for each " + kept, draw::ColourRole::series_1});
  return lines;
}

std::vector<draw::FlowLine> step_lines(const program::Program& program, const program::Step& step) {
  const auto tensor = [&](int id) { return program::to_tensor(program, program.tensor(id)); };
  if (step.op == program::Op::product)
    return product_lines(program.mesh, tensor(step.in[0]), tensor(step.in[1]), tensor(step.out[0]));
  return {{program::tensor_text(program.mesh, tensor(step.out[0]))}};
}

/// Dimensions and their sizes, but for the batch.
std::string sizes_text(const program::Program& program, const program::Block& block) {
  std::string text;
  std::vector<std::string> seen{"B", "S", "T"};
  for (const program::Step& step : program.steps_of(block))
    for (const std::int16_t id : step.in) {
      if (id < 0) continue;
      for (const program::Dimension& dim : program::to_tensor(program, program.tensor(id)).dims) {
        if (std::find(seen.begin(), seen.end(), dim.name) != seen.end()) continue;
        seen.push_back(dim.name);
        text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", dim.name, human_count(dim.size));
      }
    }
  return text;
}

draw::ColourRole op_colour(program::Op op) {
  return op == program::Op::product || program::is_attention(op) || program::is_scan(op) ? draw::arithmetic_colour
                                                                                         : draw::memory_colour;
}

Result<draw::Flow> layer_flow(const model::Transformer& model) {
  ASSAY_CHECK(lower::check_lowers(model, "models"));
  lower::TrainingPlan plan;
  plan.work.queries = plan.work.keys = plan.work.source = 2048;  // shapes are shown by letter
  const auto [mesh, rules] = lower::training_stage({}, model);
  const program::Program program = lower::lower_training(model, mesh, rules, plan);
  const program::Block* layer = nullptr;
  for (const program::Block& block : program.blocks)
    if (block.kind >= 0 && block.phase == program::Phase::forward && (!layer || block.layers > layer->layers))
      layer = &block;
  if (!layer) return fail("models", fmt::format("{} has no layers to draw", model.id), "");
  draw::Flow flow;
  flow.title = fmt::format("A layer of {}", model.name);
  flow.subtitle = sizes_text(program, *layer);
  flow.nodes.push_back({"residual stream", {{"In", draw::ColourRole::muted}}, {}, draw::ColourRole::muted});
  std::map<int, std::size_t> made;  // the node that makes a tensor
  const auto node_of = [&](int id) { return made.contains(id) ? made.at(id) : 0; };
  for (std::int32_t s = layer->first; s < layer->last; ++s) {
    const program::Step& step = program.steps[static_cast<std::size_t>(s)];
    std::vector<std::size_t> inputs;
    for (const std::int16_t id : step.in) {
      if (id < 0) continue;
      const program::TensorClass kind = program.tensor(id).tensor_class;
      const bool is_weight = kind == program::TensorClass::weight || kind == program::TensorClass::used_weight;
      if (!is_weight && std::find(inputs.begin(), inputs.end(), node_of(id)) == inputs.end())
        inputs.push_back(node_of(id));
    }
    const bool draws = step.op != program::Op::view && !program::is_movement(step.op);
    if (draws)
      flow.nodes.push_back({std::string(program::name(step)), step_lines(program, step), inputs, op_colour(step.op)});
    for (const std::int16_t id : step.out)
      if (id >= 0) made[id] = draws ? flow.nodes.size() - 1 : inputs.empty() ? 0 : inputs.front();
  }
  return flow;
}

}  // namespace

Result<void> draw_layer(const model::Transformer& model, report::Response& response) {
  ASSAY_TRY(flow, layer_flow(model));
  response.picture = draw::draw_flow(flow);
  return {};
}

}  // namespace assay::verbs::models
