#include "assay/execute/run_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/result.h"
#include "assay/execute/program_step.h"

namespace assay {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool is_weight(const ProgramTensor& tensor) { return tensor.is_given && tensor.tensor_class == TensorClass::weight; }

/// The weights that the forward blocks of one kind of layer (below 0: embedding and head) read, by name.
std::map<int, std::string> weight_names(const Program& program, int kind) {
  std::map<int, std::string> names;
  for (const Block& block : program.blocks)
    for (std::int32_t i = block.first; block.phase == Phase::forward && block.kind == kind && i < block.last; ++i)
      for (int id : program.steps[at(i)].in)
        if (id >= 0 && is_weight(program.tensor(id))) names[id] = program.tensor(id).name;
  std::map<std::string, int> seen;
  for (auto& [id, text] : names)
    if (const int times = ++seen[text]; times > 1) text += fmt::format(".{}", times);
  return names;
}

/// The first input of a block that is given and of that name.
int given(const Program& program, const Block& block, std::string_view name, bool is_gradient = false) {
  for (std::int32_t i = block.first; i < block.last; ++i)
    for (int id : program.steps[at(i)].in)
      if (id >= 0 && program.tensor(id).is_given && program.tensor(id).is_gradient == is_gradient &&
          (name.empty() || program.tensor(id).name == name))
        return id;
  return -1;
}

int result_of(const Program& program, const Block& block) { return program.steps[at(block.last - 1)].out[0]; }

/// The last value of the gradient of a block's input.
int input_gradient(const Program& program, const Block& block) {
  for (std::int32_t i = block.last; i-- > block.first;)
    for (int id : program.steps[at(i)].out)
      if (id >= 0 && program.tensor(id).is_gradient && program.tensor(id).name == "In") return id;
  throw InternalError("a block has no gradient of its input");
}

class ProgramRunner {
 public:
  ProgramRunner(const Program& program, const Transformer& model, double tokens)
      : program_(program), model_(model), step_(program, model, tokens) {
    if (model.encoder) throw InternalError("encoders are not executed");
    for (int kind = -1; kind < static_cast<int>(model.decoder.kinds.size()); ++kind)
      names_.push_back(weight_names(program, kind));
  }

  /// Weights of a layer (below 0: embedding and head) by tensor, with the names they have in NamedArrays.
  std::map<int, std::string> names(std::int64_t layer) const {
    std::map<int, std::string> out = names_[at(kind(layer) + 1)];
    if (layer >= 0)
      for (auto& [id, text] : out) text = fmt::format("{}.{}", layer, text);
    return out;
  }
  ProgramMemory memory(std::int64_t layer, const NamedArrays& weights) const {
    ProgramMemory out(program_.tensors.size());
    for (const auto& [id, text] : names(layer)) out[at(id)] = step_.distributed(weights.at(text), id);
    return out;
  }

  std::int64_t layers() const { return model_.decoder.layers(); }
  int kind(std::int64_t layer) const { return layer < 0 ? -1 : model_.decoder.order[at(layer)]; }
  const Block& block(std::string_view name, Phase phase, int kind) const {
    for (const Block& found : program_.blocks)
      if (found.name == name && found.phase == phase && found.kind == kind) return found;
    throw InternalError("a program lacks a block");
  }
  const Block& layer_block(std::int64_t layer, Phase phase) const { return block("layer", phase, kind(layer)); }

  void run(const Block& which, std::int64_t layer, ProgramMemory& memory, bool once = false) {
    const Layer* shape = layer < 0 ? nullptr : &model_.decoder.kinds[at(kind(layer))];
    for (std::int32_t i = which.first; i < which.last; ++i)
      if (program_.steps[at(i)].once == once) step_.run(program_.steps[at(i)], shape, memory);
  }

  StepRunner& step() { return step_; }
  RunFacts facts() const { return {step_.disagreement(), step_.byte_error(), step_.moved()}; }

 private:
  const Program& program_;
  const Transformer& model_;
  StepRunner step_;
  std::vector<std::map<int, std::string>> names_;  ///< by kind, the outer weights first
};

/// Adds up over microbatches what steps of once per optimizer step read.
void carry_over(const Program& program, const ProgramMemory& from, ProgramMemory& sums) {
  std::vector<char> made(program.tensors.size(), 0);
  for (const Step& step : program.steps)
    for (int id : step.out)
      if (id >= 0 && step.once) made[at(id)] = 1;
  std::vector<char> done(program.tensors.size(), 0);
  for (const Step& step : program.steps) {
    if (!step.once) continue;
    for (int id : step.in) {
      if (id < 0 || made[at(id)] || done[at(id)] || program.tensor(id).is_given || from[at(id)].empty()) continue;
      done[at(id)] = 1;
      Shards<double>& sum = sums[at(id)];
      if (sum.empty()) {
        sum = from[at(id)];
        continue;
      }
      for (std::size_t d = 0; d < sum.size(); ++d) add(sum[d], from[at(id)][d]);
    }
  }
}

/// Forward and backward passes of one microbatch.
class TrainingPass {
 public:
  TrainingPass(ProgramRunner& runner, const Program& program, const NamedArrays& weights)
      : runner_(runner), program_(program), outer_(runner.memory(-1, weights)) {
    for (std::int64_t l = 0; l < runner.layers(); ++l) layers_.push_back(runner.memory(l, weights));
  }

  /// Returns the sum of the losses.
  double run(const Array<double>& tokens, const Array<double>& targets) {
    const Block& embedding = runner_.block("embedding", Phase::forward, -1);
    // Embedding and head are blocks of the same kind; they follow each other in the program.
    const Block& head = runner_.block("head", Phase::forward, -1);
    give(outer_, given(program_, embedding, "Tokens"), tokens);
    runner_.run(embedding, -1, outer_);
    const Shards<double>* x = &outer_[at(result_of(program_, embedding))];
    for (std::int64_t l = 0; l < runner_.layers(); ++l) {
      const Block& block = runner_.layer_block(l, Phase::forward);
      layers_[at(l)][at(given(program_, block, "In"))] = *x;
      runner_.run(block, l, layers_[at(l)]);
      x = &layers_[at(l)][at(result_of(program_, block))];
    }
    outer_[at(given(program_, head, "In"))] = *x;
    give(outer_, given(program_, head, "Targets"), targets);
    runner_.run(head, -1, outer_);
    double loss = 0;
    for (double value : runner_.step().collected(result_of(program_, head), outer_).values) loss += value;
    backward();
    return loss;
  }

  const ProgramMemory& memory(std::int64_t layer) const { return layer < 0 ? outer_ : layers_[at(layer)]; }

 private:
  void give(ProgramMemory& memory, int id, const Array<double>& global) {
    memory[at(id)] = runner_.step().distributed(global, id);
  }

  void backward() {
    const Block& head = runner_.block("head", Phase::backward, -1);
    runner_.run(head, -1, outer_);
    const Shards<double>* gradient = &outer_[at(input_gradient(program_, head))];
    for (std::int64_t l = runner_.layers(); l-- > 0;) {
      const Block& block = runner_.layer_block(l, Phase::backward);
      layers_[at(l)][at(given(program_, block, {}, true))] = *gradient;
      runner_.run(block, l, layers_[at(l)]);
      gradient = &layers_[at(l)][at(input_gradient(program_, block))];
    }
    const Block& embedding = runner_.block("embedding", Phase::backward, -1);
    outer_[at(given(program_, embedding, {}, true))] = *gradient;
    runner_.run(embedding, -1, outer_);
  }

  ProgramRunner& runner_;
  const Program& program_;
  ProgramMemory outer_;
  std::vector<ProgramMemory> layers_;
};

/// What a block of updates made of the weights, and from which gradients.
void read_updates(ProgramRunner& runner, const Program& program, const Block& block, std::int64_t layer,
                  const ProgramMemory& memory, TrainingRun& out) {
  const std::map<int, std::string> names = runner.names(layer);
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (step.op != Op::update) continue;
    const std::string& name = names.at(step.in[1]);
    out.gradients[name] = runner.step().collected(step.in[0], memory);
    std::int32_t last = i;
    while (last + 1 < block.last && program.steps[at(last + 1)].op != Op::update) ++last;
    const int result = program.steps[at(last)].out[0];
    if (program.tensor(result).sharding != program.tensor(step.in[1]).sharding)
      throw InternalError("an updated weight does not lie where it lay");
    out.updated[name] = runner.step().collected(result, memory);
  }
}

/// Rows [start, start + count) of the first dimension.
Array<double> rows(const Array<double>& all, std::int64_t start, std::int64_t count) {
  return part(all, 0, start, count);
}

/// The new tokens' entries of the caches of a block, in order.
std::vector<int> fresh_entries(const Program& program, const Block& block) {
  std::vector<int> out;
  int latent = -1, place = -1;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (step.op == Op::cast && step.in[1] >= 0) out.push_back(step.in[0]);
    if (step.op == Op::norm && program.tensor(step.out[0]).name == "C") latent = step.out[0];
    if (step.op == Op::rotate && program.tensor(step.out[0]).name == "K_pos") place = step.out[0];
    if (step.op == Op::attention && step.detail >= 0 && out.empty())
      out = latent >= 0 ? std::vector<int>{latent, place} : std::vector<int>{step.in[1], step.in[2]};
  }
  return out;
}

/// Gives a block's caches their old entries, with room for the new ones.
void give_caches(ProgramRunner& runner, const Program& program, const Block& block, const LayerCache& cache,
                 ProgramMemory& memory) {
  std::size_t next = 0;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (step.op != Op::cast || step.in[1] < 0) continue;
    const ProgramTensor& tensor = program.tensor(step.in[1]);
    const std::int64_t kept = tensor.dims[1].size, added = program.tensor(step.in[0]).dims[1].size;
    const Array<double>& old = cache.at(next++);
    const std::int64_t held = old.shape[1], used = std::min(held, kept - added);
    Shape shape = old.shape;
    shape[1] = kept;
    Array<double> whole = zeros<double>(shape);
    Shape from(shape.size(), 0), to(shape.size(), 0), extent = old.shape;
    from[1] = held - used, to[1] = kept - added - used, extent[1] = used;
    copy_block(old, from, extent, whole, to);
    memory[at(step.in[1])] = runner.step().distributed(whole, step.in[1]);
  }
}

}  // namespace

NamedArrays random_weights(const Program& program, const Transformer& model, std::uint64_t seed) {
  constexpr double spread = 0.3;  // small enough for plain exponentials, large enough for every path to matter
  NamedArrays out;
  const ProgramRunner runner(program, model, 1);
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
    for (const auto& [id, text] : runner.names(layer)) {
      const ProgramTensor& tensor = program.tensor(id);
      Array<double> values = random_reals<double>(global_shape(to_tensor(tensor)), mixed(seed, out.size()));
      const bool scale = tensor.name.ends_with("norm") && !tensor.name.starts_with("b_");
      for (double& value : values.values) value = spread * value + (scale ? 1.0 : 0.0);
      out[text] = std::move(values);
    }
  return out;
}

TrainingRun run_training(const Program& program, const Transformer& model, const NamedArrays& weights,
                         const Array<double>& tokens, const Array<double>& targets) {
  const double count = static_cast<double>(tokens.values.size());
  ProgramRunner runner(program, model, count);
  std::vector<ProgramMemory> sums;
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer) sums.push_back(runner.memory(layer, weights));
  TrainingRun out;
  const std::int64_t each = tokens.shape[0] / program.microbatches;
  for (std::int64_t m = 0; m < program.microbatches; ++m) {
    TrainingPass pass(runner, program, weights);
    out.loss += pass.run(rows(tokens, m * each, each), rows(targets, m * each, each)) / count;
    for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
      carry_over(program, pass.memory(layer), sums[at(layer + 1)]);
  }
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
    for (const Block& block : program.blocks)
      if (block.kind == runner.kind(layer) && block.phase != Phase::forward) {
        runner.run(block, layer, sums[at(layer + 1)], true);
        if (block.phase == Phase::update) read_updates(runner, program, block, layer, sums[at(layer + 1)], out);
      }
  out.facts = runner.facts();
  return out;
}

ServingRun run_serving(const Program& program, const Transformer& model, const NamedArrays& weights,
                       const Array<double>& tokens, std::vector<LayerCache>& caches) {
  ProgramRunner runner(program, model, 1);
  StepRunner& step = runner.step();
  caches.resize(at(runner.layers()));
  ProgramMemory outer = runner.memory(-1, weights);
  const Block& embedding = runner.block("embedding", Phase::forward, -1);
  const Block& head = runner.block("head", Phase::forward, -1);
  const int input = given(program, embedding, "Tokens");
  outer[at(input)] = step.distributed(tokens, input);
  runner.run(embedding, -1, outer);
  Shards<double> x = outer[at(result_of(program, embedding))];
  for (std::int64_t l = 0; l < runner.layers(); ++l) {
    const Block& block = runner.layer_block(l, Phase::forward);
    ProgramMemory memory = runner.memory(l, weights);
    memory[at(given(program, block, "In"))] = x;
    give_caches(runner, program, block, caches[at(l)], memory);
    runner.run(block, l, memory);
    x = memory[at(result_of(program, block))];
    const std::vector<int> fresh = fresh_entries(program, block);
    std::vector<Array<double>> entries;
    for (int id : fresh) entries.push_back(step.collected(id, memory));
    // Latent attention caches one row per token: the latent and the positional part.
    if (model.decoder.kinds[at(runner.kind(l))].attention->kv_rank > 0 && entries.size() == 2)
      entries = {joined(std::span<const Array<double>>(entries), 2)};
    LayerCache& cache = caches[at(l)];
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (cache.size() <= i) {
        cache.push_back(entries[i]);
      } else {
        const std::vector<Array<double>> both{cache[i], entries[i]};
        cache[i] = joined(std::span<const Array<double>>(both), 1);
      }
    }
  }
  for (Array<double>& shard : x) shard = part(shard, 1, shard.shape[1] - 1, 1);  // serving never splits a sequence
  outer[at(given(program, head, "In"))] = x;
  runner.run(head, -1, outer);
  ServingRun out;
  for (std::int32_t i = head.first; i < head.last; ++i) {
    const Step& made = program.steps[at(i)];
    if (made.op == Op::sample && program.tensor(made.in[0]).find(LogicalDim::vocabulary) >= 0)
      out.logits = step.collected(made.in[0], outer);
  }
  out.chosen = step.collected(result_of(program, head), outer);
  out.facts = runner.facts();
  return out;
}

}  // namespace assay
