#include "assay/engine/program/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "assay/base/index.h"
#include "assay/base/result.h"

namespace assay::engine {
namespace {

bool is_stored_weight(const program::ProgramTensor& tensor) {
  return tensor.is_given && tensor.tensor_class == program::TensorClass::weight;
}

/// Embeddings and heads of both stacks count as one kind, -1.
bool is_forward_of(const program::Block& block, int kind) {
  return block.phase == program::Phase::forward && (block.kind == kind || (kind < 0 && block.kind < 0));
}

/// The weights that the forward blocks of one kind of layer (below 0: embedding and head) read, by name.
std::map<int, std::string> weight_names(const program::Program& program, int kind) {
  std::map<int, std::string> names;
  for (const program::Block& block : program.blocks)
    for (const program::Step& step : program.steps_of(block))
      for (int id : step.in)
        if (is_forward_of(block, kind) && id >= 0 && is_stored_weight(program.tensor(id)))
          names[id] = program.tensor(id).name;
  std::map<std::string, int> seen;
  for (auto& [id, text] : names)
    if (const int times = ++seen[text]; times > 1) text += fmt::format(".{}", times);
  return names;
}

std::vector<StackedLayer> all_layers(const model::Transformer& model) {
  std::vector<StackedLayer> out;
  const int decoder_kinds = static_cast<int>(model.decoder.kinds.size());
  for (std::int64_t i = 0; model.encoder && i < model.encoder->layers(); ++i) {
    const int kind = model.encoder->order[at(i)];
    out.push_back({&model.encoder->kinds[at(kind)], decoder_kinds + kind, true, i});
  }
  for (std::int64_t i = 0; i < model.decoder.layers(); ++i)
    out.push_back({&model.decoder.kinds[model.decoder.order[at(i)]], model.decoder.order[at(i)], false, i});
  return out;
}

}  // namespace

int given(const program::Program& program, const program::Block& block, std::string_view name, bool is_gradient) {
  for (const program::Step& step : program.steps_of(block))
    for (int id : step.in)
      if (id >= 0 && program.tensor(id).is_given && program.tensor(id).is_gradient == is_gradient &&
          (name.empty() || program.tensor(id).name == name))
        return id;
  return -1;
}

int result_of(const program::Program& program, const program::Block& block) {
  return program.steps[at(block.last - 1)].out[0];
}

int embedded_by(const program::Program& program, const program::Block& block) {
  int found = -1;
  for (const program::Step& step : program.steps_of(block)) {
    const int made = step.out[0];
    if (program.tensor(made).name == "TokenRows") break;
    if (program.tensor(made).tensor_class == program::TensorClass::residual) found = made;
  }
  return found;
}

int token_inputs_by(const program::Program& program, const program::Block& block) {
  const int last = result_of(program, block);
  return program.tensor(last).name == "TokenInputs" ? last : -1;
}

Shards token_input(const Shards& all, std::int64_t layer) {
  Shards out;
  for (const Array& shard : all) {
    out.emplace_back();
    if (shard.shape.empty()) continue;  // of another process
    out.back() = part(shard, 2, layer, 1);
    out.back().shape.erase(out.back().shape.begin() + 2);
  }
  return out;
}

std::vector<int> lent_keys(const program::Program& program, const program::Block& block, bool is_given) {
  std::vector<int> out;
  for (const program::Step& step : program.steps_of(block))
    for (const auto& ids : {std::span<const std::int16_t>(step.in), {step.out}})
      for (int id : ids)
        if (id >= 0 && program.tensor(id).is_cross_layer && program.tensor(id).is_given == is_given &&
            program.tensor(id).tensor_class == program::TensorClass::key_value &&
            std::find(out.begin(), out.end(), id) == out.end())
          out.push_back(id);
  std::sort(out.begin(), out.end(),
            [&](int a, int b) { return program.tensor(a).name < program.tensor(b).name; });  // keys, then values
  return out;
}

ProgramRunner::ProgramRunner(const program::Program& program, const model::Transformer& model, double tokens,
                             Placement placement, Overlap overlap)
    : program_(program), model_(model), step_(program, tokens, placement, overlap), layers_(all_layers(model)) {
  step_.define(model.definition);
  const std::size_t kinds = model.decoder.kinds.size() + (model.encoder ? model.encoder->kinds.size() : 0);
  for (int kind = -1; kind < static_cast<int>(kinds); ++kind) names_.push_back(weight_names(program, kind));
}

std::map<int, std::string> ProgramRunner::names(std::int64_t layer) const {
  std::map<int, std::string> out = names_[at(kind(layer) + 1)];
  if (layer >= 0)
    for (auto& [id, text] : out)
      text = fmt::format("{}.{}", program_.tensor(id).is_shared ? first_of_kind(layer) : layer, text);
  return out;
}

ProgramMemory ProgramRunner::memory(std::int64_t layer, const NamedArrays& weights) const {
  ProgramMemory out(program_.tensors.size());
  for (const auto& [id, text] : names(layer)) out[at(id)] = step_.distributed(weights.at(text), id);
  return out;
}

std::int64_t ProgramRunner::first_of_kind(std::int64_t layer) const {
  if (layer < 0) return layer;
  const auto like = [&](const StackedLayer& other) { return other.kind == kind(layer); };
  return std::find_if(layers_.begin(), layers_.end(), like) - layers_.begin();
}

std::int64_t ProgramRunner::lender(std::int64_t number) const {
  const StackedLayer& here = layer(number);
  const bool shares = here.shape->attention && here.shape->attention->shares_kv;
  const bool takes_values = here.shape->state_space && here.shape->state_space->value_rank > 0;
  if (here.encodes || (!shares && !takes_values)) return -1;
  return first_decoding() + model::key_lender(model_.decoder, here.place);
}

const program::Block& ProgramRunner::block(std::string_view name, program::Phase phase, int kind) const {
  for (const program::Block& found : program_.blocks)
    if (found.name == name && found.phase == phase && found.kind == kind) return found;
  throw InternalError("a program lacks a block");
}

void ProgramRunner::run(const program::Block& which, std::int64_t layer, ProgramMemory& memory, bool once) {
  const model::Layer* shape = layer < 0 ? nullptr : layers_[at(layer)].shape;
  for (const program::Step& step : program_.steps_of(which))
    if (step_.overlaps() && step.once == once) step_.start_ahead(step, memory);
  for (const program::Step& step : program_.steps_of(which))
    if (step.once == once) step_.run(step, shape, memory);
}

void ProgramRunner::run_marked(const program::Block& which, std::int64_t layer, ProgramMemory& memory,
                               const std::vector<char>& marks, bool marked) {
  const model::Layer* shape = layer < 0 ? nullptr : layers_[at(layer)].shape;
  for (std::int32_t i = which.first; i < which.last; ++i)
    if (!program_.steps[at(i)].once && (marks[at(i - which.first)] != 0) == marked)
      step_.run(program_.steps[at(i)], shape, memory);
}

}  // namespace assay::engine
