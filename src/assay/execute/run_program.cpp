#include "assay/execute/run_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "assay/base/result.h"
#include "assay/execute/program_step.h"

namespace assay {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool is_weight(const ProgramTensor& tensor) { return tensor.is_given && tensor.tensor_class == TensorClass::weight; }

/// Embeddings and heads of both stacks count as one kind, -1.
bool is_forward_of(const Block& block, int kind) {
  return block.phase == Phase::forward && (block.kind == kind || (kind < 0 && block.kind < 0));
}

/// The weights that the forward blocks of one kind of layer (below 0: embedding and head) read, by name.
std::map<int, std::string> weight_names(const Program& program, int kind) {
  std::map<int, std::string> names;
  for (const Block& block : program.blocks)
    for (std::int32_t i = block.first; is_forward_of(block, kind) && i < block.last; ++i)
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

/// Embedded tokens, where the layers begin. What the layers have from the token itself comes after them.
int embedded_by(const Program& program, const Block& block) {
  int found = -1;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const int made = program.steps[at(i)].out[0];
    if (program.tensor(made).name == "TokenRows") break;
    if (program.tensor(made).tensor_class == TensorClass::residual) found = made;
  }
  return found;
}

/// What all layers have from the token itself: the last that an embedding makes; below 0: they have nothing.
int token_inputs_by(const Program& program, const Block& block) {
  const int last = result_of(program, block);
  return program.tensor(last).name == "TokenInputs" ? last : -1;
}

/// One layer's part of it: [B, S, layers, width] to [B, S, width].
Shards<double> token_input(const Shards<double>& all, std::int64_t layer) {
  Shards<double> out;
  for (const Array<double>& shard : all) {
    out.push_back(part(shard, 2, layer, 1));
    out.back().shape.erase(out.back().shape.begin() + 2);
  }
  return out;
}

/// The last value of the gradient of a block's input.
int input_gradient(const Program& program, const Block& block, std::string_view name = "In") {
  for (std::int32_t i = block.last; i-- > block.first;)
    for (int id : program.steps[at(i)].out)
      if (id >= 0 && program.tensor(id).is_gradient && program.tensor(id).name == name) return id;
  throw InternalError("a block has no gradient of its input");
}

/// Keys and values that a block uses from another layer (given), or makes for others.
std::vector<int> lent_keys(const Program& program, const Block& block, bool is_given) {
  std::vector<int> out;
  for (std::int32_t i = block.first; i < block.last; ++i)
    for (const auto& ids : {std::span<const std::int16_t>(program.steps[at(i)].in), {program.steps[at(i)].out}})
      for (int id : ids)
        if (id >= 0 && program.tensor(id).is_lent && program.tensor(id).is_given == is_given &&
            program.tensor(id).tensor_class == TensorClass::key_value &&
            std::find(out.begin(), out.end(), id) == out.end())
          out.push_back(id);
  std::sort(out.begin(), out.end(),
            [&](int a, int b) { return program.tensor(a).name < program.tensor(b).name; });  // keys, then values
  return out;
}

/// The layers of both stacks, those of the encoder first.
struct StackedLayer {
  const Layer* shape = nullptr;
  int kind = -1;  ///< as the program numbers it
  bool encodes = false;
  std::int64_t place = 0;  ///< in its stack
};
std::vector<StackedLayer> all_layers(const Transformer& model) {
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

class ProgramRunner {
 public:
  ProgramRunner(const Program& program, const Transformer& model, double tokens)
      : program_(program), model_(model), step_(program, tokens) {
    const std::size_t kinds = model.decoder.kinds.size() + (model.encoder ? model.encoder->kinds.size() : 0);
    for (int kind = -1; kind < static_cast<int>(kinds); ++kind) names_.push_back(weight_names(program, kind));
  }

  /// Weights of a layer (below 0: embedding and head) by tensor, with the names they have in NamedArrays.
  std::map<int, std::string> names(std::int64_t layer) const {
    std::map<int, std::string> out = names_[at(kind(layer) + 1)];
    if (layer >= 0)
      for (auto& [id, text] : out)
        text = fmt::format("{}.{}", program_.tensor(id).is_shared ? first_of_kind(layer) : layer, text);
    return out;
  }
  ProgramMemory memory(std::int64_t layer, const NamedArrays& weights) const {
    ProgramMemory out(program_.tensors.size());
    for (const auto& [id, text] : names(layer)) out[at(id)] = step_.distributed(weights.at(text), id);
    return out;
  }

  std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }
  /// The number of the decoder's first layer.
  std::int64_t first_decoding() const { return layers() - model_.decoder.layers(); }
  const StackedLayer& layer(std::int64_t number) const { return layers_[at(number)]; }
  int kind(std::int64_t layer) const { return layer < 0 ? -1 : layers_[at(layer)].kind; }
  /// The first layer that may share weights with this one.
  std::int64_t first_of_kind(std::int64_t layer) const {
    if (layer < 0) return layer;
    const auto like = [&](const StackedLayer& other) { return other.kind == kind(layer); };
    return std::find_if(layers_.begin(), layers_.end(), like) - layers_.begin();
  }
  /// The layer whose keys this one uses; below 0: it makes its own.
  std::int64_t lender(std::int64_t number) const {
    const StackedLayer& here = layers_[at(number)];
    const bool shares = here.shape->attention && here.shape->attention->shares_kv;
    const bool takes_values = here.shape->state_space && here.shape->state_space->value_rank > 0;
    if (here.encodes || (!shares && !takes_values)) return -1;
    return first_decoding() + key_lender(model_.decoder, here.place);
  }
  const Block& block(std::string_view name, Phase phase, int kind) const {
    for (const Block& found : program_.blocks)
      if (found.name == name && found.phase == phase && found.kind == kind) return found;
    throw InternalError("a program lacks a block");
  }
  const Block& layer_block(std::int64_t layer, Phase phase) const {
    return block(layers_[at(layer)].encodes ? "encoder layer" : "layer", phase, kind(layer));
  }

  void run(const Block& which, std::int64_t layer, ProgramMemory& memory, bool once = false) {
    const Layer* shape = layer < 0 ? nullptr : layers_[at(layer)].shape;
    for (std::int32_t i = which.first; i < which.last; ++i)
      if (program_.steps[at(i)].once == once) step_.run(program_.steps[at(i)], shape, memory);
  }

  StepRunner& step() { return step_; }
  RunFacts facts() const { return {step_.disagreement(), step_.byte_error(), step_.moved()}; }

 private:
  const Program& program_;
  const Transformer& model_;
  StepRunner step_;
  std::vector<StackedLayer> layers_ = all_layers(model_);
  std::vector<std::map<int, std::string>> names_;  ///< by kind, the outer weights first
};

void add_to(Shards<double>& sums, const Shards<double>& more) {
  if (sums.empty()) {
    sums = more;
    return;
  }
  for (std::size_t d = 0; d < sums.size(); ++d) add(sums[d], more[d]);
}

/// Adds up over microbatches what steps of once per optimizer step read: those of a layer's own weights, or those of
/// weights that it shares.
void carry_over(const Program& program, const ProgramMemory& from, bool shared, ProgramMemory& sums) {
  std::vector<char> made(program.tensors.size(), 0);
  for (const Step& step : program.steps)
    for (int id : step.out)
      if (id >= 0 && step.once) made[at(id)] = 1;
  std::vector<char> done(program.tensors.size(), 0);
  for (const Block& block : program.blocks)
    for (std::int32_t i = block.first; block.is_shared == shared && i < block.last; ++i) {
      const Step& step = program.steps[at(i)];
      if (!step.once) continue;
      for (int id : step.in) {
        if (id < 0 || made[at(id)] || done[at(id)] || program.tensor(id).is_given || from[at(id)].empty()) continue;
        done[at(id)] = 1;
        add_to(sums[at(id)], from[at(id)]);
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
    // Embedding and head are blocks of the same kind; they follow each other in the program.
    const Block& head = runner_.block("head", Phase::forward, -1);
    const std::int64_t decoding = runner_.first_decoding();
    if (decoding > 0) {  // the encoder reads the same tokens
      const Block& end = runner_.block("head", Phase::forward, -2);
      embed(-2, tokens);
      forward(0, decoding, outer_[at(embedded_by(program_, runner_.block("embedding", Phase::forward, -2)))]);
      if (end.first < end.last) {  // a last norm
        outer_[at(given(program_, end, "In"))] = *flowing_;
        runner_.run(end, -1, outer_);
        flowing_ = &outer_[at(result_of(program_, end))];
      }
      encoded_ = *flowing_;
    }
    embed(-1, tokens);
    forward(decoding, runner_.layers(),
            outer_[at(embedded_by(program_, runner_.block("embedding", Phase::forward, -1)))]);
    outer_[at(given(program_, head, "In"))] = *flowing_;
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

  void embed(int kind, const Array<double>& tokens) {
    const Block& embedding = runner_.block("embedding", Phase::forward, kind);
    give(outer_, given(program_, embedding, "Tokens"), tokens);
    runner_.run(embedding, -1, outer_);
  }

  /// Layers [first, last), the first of which reads x; `flowing_` is then what the last one made.
  void forward(std::int64_t first, std::int64_t last, const Shards<double>& x) {
    flowing_ = &x;
    for (std::int64_t l = first; l < last; ++l) {
      const Block& block = runner_.layer_block(l, Phase::forward);
      ProgramMemory& memory = layers_[at(l)];
      memory[at(given(program_, block, "In"))] = *flowing_;
      if (const int encoded = given(program_, block, "Encoded"); encoded >= 0) memory[at(encoded)] = encoded_;
      if (const int embedded = given(program_, block, "Embedded"); embedded >= 0) memory[at(embedded)] = x;
      if (const int token = given(program_, block, "TokenInput"); token >= 0)
        memory[at(token)] = token_input(outer_[at(token_inputs())], runner_.layer(l).place);
      if (const std::int64_t lender = runner_.lender(l); lender >= 0) {
        const auto mine = lent_keys(program_, block, true);
        const auto theirs = lent_keys(program_, runner_.layer_block(lender, Phase::forward), false);
        for (std::size_t i = 0; i < mine.size(); ++i) memory[at(mine[i])] = layers_[at(lender)][at(theirs.at(i))];
      }
      runner_.run(block, l, memory);
      flowing_ = &memory[at(result_of(program_, block))];
    }
  }

  void backward() {
    const Block& head = runner_.block("head", Phase::backward, -1);
    const std::int64_t decoding = runner_.first_decoding();
    runner_.run(head, -1, outer_);
    flowing_ = &outer_[at(input_gradient(program_, head))];
    for (std::int64_t l = runner_.layers(); l-- > decoding;) backward(l);
    embedding_backward(-1);
    if (decoding == 0) return;
    const Block& end = runner_.block("head", Phase::backward, -2);
    flowing_ = &encoded_gradient_;
    if (end.first < end.last) {
      outer_[at(given(program_, end, {}, true))] = encoded_gradient_;
      runner_.run(end, -1, outer_);
      flowing_ = &outer_[at(input_gradient(program_, end))];
    }
    for (std::int64_t l = decoding; l-- > 0;) backward(l);
    embedding_backward(-2);
  }

  int token_inputs() const { return token_inputs_by(program_, runner_.block("embedding", Phase::forward, -1)); }

  void embedding_backward(int kind) {
    const Block& embedding = runner_.block("embedding", Phase::backward, kind);
    if (embedding.first == embedding.last) return;  // nothing of it is trained
    const Block& forward = runner_.block("embedding", Phase::forward, kind);
    const auto seed = [&](int result) { return at(given(program_, embedding, program_.tensor(result).name, true)); };
    Shards<double>& arriving = outer_[seed(embedded_by(program_, forward))];
    arriving = *flowing_;
    if (!embedded_gradient_.empty()) add_to(arriving, embedded_gradient_);
    if (const int inputs = kind == -1 ? token_inputs() : -1; inputs >= 0) {
      Shards<double> all;
      for (std::size_t d = 0; d < outer_[at(inputs)].size(); ++d) {
        all.push_back(zeros<double>(outer_[at(inputs)][d].shape));
        for (const auto& [layer, gradient] : token_gradients_) {
          Array<double> one = gradient[d];
          one.shape.insert(one.shape.begin() + 2, 1);
          copy_block(one, Shape(4, 0), one.shape, all.back(), {0, 0, layer, 0});
        }
      }
      outer_[seed(inputs)] = all;
    }
    runner_.run(embedding, -1, outer_);
  }

  void backward(std::int64_t l) {
    const Block& block = runner_.layer_block(l, Phase::backward);
    const Block& forward = runner_.layer_block(l, Phase::forward);
    ProgramMemory& memory = layers_[at(l)];
    memory[at(given(program_, block, program_.tensor(result_of(program_, forward)).name, true))] = *flowing_;
    // What later layers made of the keys that this one lends, or nothing if none came.
    const auto lent = lent_keys(program_, forward, false);
    for (std::size_t i = 0; i < lent.size(); ++i) {
      const int seed = given(program_, block, program_.tensor(lent[i]).name, true);
      auto& sums = key_gradients_[{l, i}];
      if (sums.empty())
        for (const Array<double>& shard : memory[at(lent[i])]) sums.push_back(zeros<double>(shard.shape));
      memory[at(seed)] = sums;
    }
    runner_.run(block, l, memory);
    flowing_ = &memory[at(input_gradient(program_, block))];
    if (given(program_, forward, "TokenInput") >= 0)
      token_gradients_[runner_.layer(l).place] = memory[at(input_gradient(program_, block, "TokenInput"))];
    if (given(program_, forward, "Encoded") >= 0)
      add_to(encoded_gradient_, memory[at(input_gradient(program_, block, "Encoded"))]);
    if (given(program_, forward, "Embedded") >= 0)
      add_to(embedded_gradient_, memory[at(input_gradient(program_, block, "Embedded"))]);
    if (const std::int64_t lender = runner_.lender(l); lender >= 0) {
      const auto mine = lent_keys(program_, forward, true);
      for (std::size_t i = 0; i < mine.size(); ++i)
        add_to(key_gradients_[{lender, i}], memory[at(input_gradient(program_, block, program_.tensor(mine[i]).name))]);
    }
  }

  Shards<double> encoded_, encoded_gradient_;
  Shards<double> embedded_gradient_;  ///< from blocks that read the embedding, too
  std::map<std::pair<std::int64_t, std::size_t>, Shards<double>> key_gradients_;  ///< by lending layer and tensor
  std::map<std::int64_t, Shards<double>> token_gradients_;                        ///< by layer of the decoder
  const Shards<double>* flowing_ = nullptr;  ///< the residual stream, or its gradient
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
  int index = -1, latent = -1, place = -1;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (step.op == Op::cast && step.in[1] >= 0) out.push_back(step.in[0]);
    if (step.op == Op::norm && program.tensor(step.out[0]).name == "C") latent = step.out[0];
    if (step.op == Op::rotate && program.tensor(step.out[0]).name == "K_pos") place = step.out[0];
    if (step.op == Op::pick && out.empty()) index = step.in[1];
    if (step.op == Op::attention && step.detail >= 0 && out.empty()) {
      out = latent >= 0 ? std::vector<int>{latent, place} : std::vector<int>{step.in[1], step.in[2]};
      if (index >= 0) out.insert(out.begin(), index);
    }
  }
  return out;
}

/// Keys and values that a block made of what the encoder made; nothing where it has them in a cache, or has none.
std::vector<int> encoded_entries(const Program& program, const Block& block) {
  for (std::int32_t i = block.first; i < block.last; ++i)
    if (const Step& step = program.steps[at(i)]; step.op == Op::attention && step.detail >= 0)
      if (program.attentions[at(step.detail)].cross && !program.tensor(step.in[1]).is_given)
        return {step.in[1], step.in[2]};
  return {};
}

/// Keys and values of a block as a later layer reads them: its caches with the new tokens, or those alone.
std::vector<int> readable_keys(const Program& program, const Block& block) {
  std::vector<int> out;
  for (std::int32_t i = block.first; i < block.last; ++i)
    if (const Step& step = program.steps[at(i)]; step.op == Op::cast && step.in[1] >= 0) out.push_back(step.out[0]);
  return out.empty() ? lent_keys(program, block, false) : out;
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
      if (out.contains(text)) continue;
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
    for (std::int64_t layer = -1; layer < runner.layers(); ++layer) {
      carry_over(program, pass.memory(layer), false, sums[at(layer + 1)]);
      carry_over(program, pass.memory(layer), true, sums[at(runner.first_of_kind(layer) + 1)]);
    }
  }
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
    for (const Block& block : program.blocks)
      if ((block.kind == runner.kind(layer) || (layer < 0 && block.kind < 0)) && block.phase != Phase::forward &&
          (!block.is_shared || runner.first_of_kind(layer) == layer)) {
        runner.run(block, layer, sums[at(layer + 1)], true);
        if (block.phase == Phase::update) read_updates(runner, program, block, layer, sums[at(layer + 1)], out);
      }
  out.facts = runner.facts();
  return out;
}

ServingRun run_serving(const Program& program, const Transformer& model, const NamedArrays& weights,
                       const Array<double>& tokens, ServedSequences& kept) {
  ProgramRunner runner(program, model, 1);
  StepRunner& step = runner.step();
  kept.caches.resize(at(runner.layers())), kept.states.resize(at(runner.layers()));
  kept.encoded_caches.resize(at(runner.layers()));
  ProgramMemory outer = runner.memory(-1, weights);
  const Block& embedding = runner.block("embedding", Phase::forward, -1);
  const Block& head = runner.block("head", Phase::forward, -1);
  const int input = given(program, embedding, "Tokens");
  outer[at(input)] = step.distributed(tokens, input);
  runner.run(embedding, -1, outer);
  const Shards<double> embedded_tokens = outer[at(embedded_by(program, embedding))];
  Shards<double> x = embedded_tokens;
  std::map<std::int64_t, std::vector<Shards<double>>> lent;  // by layer: keys and values that later ones use
  for (std::int64_t l = runner.first_decoding(); l < runner.layers(); ++l) {
    const Block& block = runner.layer_block(l, Phase::forward);
    ProgramMemory memory = runner.memory(l, weights);
    memory[at(given(program, block, "In"))] = x;
    if (const std::int64_t lender = runner.lender(l); lender >= 0) {
      const auto mine = lent_keys(program, block, true);
      for (std::size_t i = 0; i < mine.size(); ++i) memory[at(mine[i])] = lent.at(lender).at(i);
    }
    if (const int encoded = given(program, block, "Encoded"); encoded >= 0)
      memory[at(encoded)] = step.distributed(kept.encoded, encoded);
    if (const int embedded = given(program, block, "Embedded"); embedded >= 0) memory[at(embedded)] = embedded_tokens;
    if (const int token = given(program, block, "TokenInput"); token >= 0)
      memory[at(token)] = token_input(outer[at(token_inputs_by(program, embedding))], runner.layer(l).place);
    give_caches(runner, program, block, kept.caches[at(l)], memory);
    LayerCache& encoded_cache = kept.encoded_caches[at(l)];
    constexpr std::string_view encoded_names[] = {"CK_cache", "CV_cache"};
    for (std::size_t i = 0; i < 2; ++i)
      if (const int id = given(program, block, encoded_names[i]); id >= 0)
        memory[at(id)] = step.distributed(encoded_cache.at(i), id);
    step.carry(&kept.states[at(l)]);
    runner.run(block, l, memory);
    x = memory[at(result_of(program, block))];
    for (int id : readable_keys(program, block)) lent[l].push_back(memory[at(id)]);
    if (encoded_cache.empty())
      for (int id : encoded_entries(program, block)) encoded_cache.push_back(step.collected(id, memory));
    const std::vector<int> fresh = fresh_entries(program, block);
    std::vector<Array<double>> entries;
    for (int id : fresh) entries.push_back(step.collected(id, memory));
    // Latent attention caches one row per token: the latent and the positional part.
    const std::optional<Attention>& attention = model.decoder.kinds[at(runner.kind(l))].attention;
    if (attention && attention->kv_rank > 0 && entries.size() == (attention->index_heads > 0 ? 3u : 2u)) {
      const Array<double> row = joined(std::span<const Array<double>>(entries).last(2), 2);
      entries.resize(entries.size() - 2);
      entries.push_back(row);
    }
    LayerCache& cache = kept.caches[at(l)];
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
