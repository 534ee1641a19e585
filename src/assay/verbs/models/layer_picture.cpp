#include "assay/verbs/models/layer_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/base/text.h"
#include "assay/draw/flow.h"
#include "assay/lower/lowering.h"

namespace assay::verbs::models {
namespace {

bool has_dim(const program::Tensor& tensor, const std::string& name) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(),
                     [&](const program::Dimension& dim) { return dim.name == name; });
}

/// What a product does with each dimension.
struct ProductDims {
  program::Tensor left, right, out;

  draw::ColourRole colour(const std::string& dim) const {
    if (!has_dim(left, dim) || !has_dim(right, dim)) return draw::ColourRole::ink;
    return has_dim(out, dim) ? draw::ColourRole::series_1 : draw::ColourRole::series_2;
  }
};

void add_word(const std::string& text, draw::ColourRole colour, std::vector<draw::FlowWord>& words) {
  if (words.empty() || words.back().colour != colour)
    words.push_back({text, colour});
  else
    words.back().text += text;
}

/// "Q[B, S, N, H]", with contracted and batch dimensions coloured.
void add_tensor(const program::Tensor& tensor, const ProductDims* product, std::vector<draw::FlowWord>& words) {
  add_word(tensor.name + (tensor.dims.empty() ? "" : "["), draw::ColourRole::ink, words);
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    const std::string& name = tensor.dims[d].name;
    add_word(name, product ? product->colour(name) : draw::ColourRole::ink, words);
    add_word(d + 1 < tensor.dims.size() ? ",\u00a0" : "]", draw::ColourRole::ink, words);
  }
}

std::vector<draw::FlowWord> step_words(const program::Program& program, const program::Step& step) {
  const auto tensor = [&](int id) { return program::to_tensor(program, program.tensor(id)); };
  std::vector<draw::FlowWord> words;
  if (step.op == program::Op::product) {
    const ProductDims dims{tensor(step.in[0]), tensor(step.in[1]), tensor(step.out[0])};
    add_tensor(dims.out, &dims, words);
    add_word("\u00a0=\u00a0", draw::ColourRole::ink, words);
    add_tensor(dims.left, &dims, words);
    add_word("\u00a0·\u00a0", draw::ColourRole::ink, words);
    add_tensor(dims.right, &dims, words);
    return words;
  }
  add_tensor(tensor(step.out[0]), nullptr, words);
  return words;
}

/// Dimensions and their sizes, but for the batch.
std::string sizes_text(const program::Program& program, const program::Block& block) {
  std::string text;
  std::vector<std::string> seen{"B", "S", "T"};
  for (std::int32_t s = block.first; s < block.last; ++s)
    for (const std::int16_t id : program.steps[static_cast<std::size_t>(s)].in) {
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
  flow.legend = {{"summed over", draw::ColourRole::series_2},
                 {"\u00a0\u00a0\u00a0in both operands and the result", draw::ColourRole::series_1}};
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
      flow.nodes.push_back({std::string(program::name(step)), step_words(program, step), inputs, op_colour(step.op)});
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
