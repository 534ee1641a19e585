#include "assay/execute/program/run_program.h"

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/execute/program/runner.h"

namespace assay::execute {
namespace {

/// The last value of the gradient of a block's input.
int input_gradient(const program::Program& program, const program::Block& block, std::string_view name = "In") {
  for (std::int32_t i = block.last; i-- > block.first;)
    for (int id : program.steps[at(i)].out)
      if (id >= 0 && program.tensor(id).is_gradient && program.tensor(id).name == name) return id;
  throw InternalError("a block has no gradient of its input");
}

void add_to(Shards<double>& sums, const Shards<double>& more) {
  if (sums.empty()) {
    sums = more;
    return;
  }
  for (std::size_t d = 0; d < sums.size(); ++d) add(sums[d], more[d]);
}

/// Sums over microbatches the inputs of steps that run once per optimizer step: gradients of a layer's own weights, or
/// of its shared weights.
void carry_over(const program::Program& program, const ProgramMemory& from, bool shared, ProgramMemory& sums) {
  std::vector<char> made(program.tensors.size(), 0);
  for (const program::Step& step : program.steps)
    for (int id : step.out)
      if (id >= 0 && step.once) made[at(id)] = 1;
  std::vector<char> done(program.tensors.size(), 0);
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; block.is_shared == shared && i < block.last; ++i) {
      const program::Step& step = program.steps[at(i)];
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
  TrainingPass(ProgramRunner& runner, const program::Program& program, const NamedArrays& weights)
      : runner_(runner), program_(program), outer_(runner.memory(-1, weights)) {
    for (std::int64_t l = 0; l < runner.layers(); ++l) layers_.push_back(runner.memory(l, weights));
  }

  /// Returns the sum of the losses.
  double run(const Array<double>& tokens, const Array<double>& targets) {
    // Embedding and head are blocks of the same kind; they follow each other in the program.
    const program::Block& head = runner_.block("head", program::Phase::forward, -1);
    const std::int64_t decoding = runner_.first_decoding();
    if (decoding > 0) {  // the encoder reads the same tokens
      const program::Block& end = runner_.block("head", program::Phase::forward, -2);
      embed(-2, tokens);
      forward(0, decoding, outer_[at(embedded_by(program_, runner_.block("embedding", program::Phase::forward, -2)))]);
      if (end.first < end.last) {  // a last norm
        outer_[at(given(program_, end, "In"))] = *flowing_;
        runner_.run(end, -1, outer_);
        flowing_ = &outer_[at(result_of(program_, end))];
      }
      encoded_ = *flowing_;
    }
    embed(-1, tokens);
    forward(decoding, runner_.layers(),
            outer_[at(embedded_by(program_, runner_.block("embedding", program::Phase::forward, -1)))]);
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
    const program::Block& embedding = runner_.block("embedding", program::Phase::forward, kind);
    give(outer_, given(program_, embedding, "Tokens"), tokens);
    runner_.run(embedding, -1, outer_);
  }

  /// Runs layers [first, last) starting from x; afterwards `flowing_` is the last layer's result.
  void forward(std::int64_t first, std::int64_t last, const Shards<double>& x) {
    flowing_ = &x;
    for (std::int64_t l = first; l < last; ++l) {
      const program::Block& block = runner_.layer_block(l, program::Phase::forward);
      ProgramMemory& memory = layers_[at(l)];
      memory[at(given(program_, block, "In"))] = *flowing_;
      if (const int encoded = given(program_, block, "Encoded"); encoded >= 0) memory[at(encoded)] = encoded_;
      if (const int embedded = given(program_, block, "Embedded"); embedded >= 0) memory[at(embedded)] = x;
      if (const int token = given(program_, block, "TokenInput"); token >= 0)
        memory[at(token)] = token_input(outer_[at(token_inputs())], runner_.layer(l).place);
      if (const std::int64_t lender = runner_.lender(l); lender >= 0) {
        const auto mine = lent_keys(program_, block, true);
        const auto theirs = lent_keys(program_, runner_.layer_block(lender, program::Phase::forward), false);
        for (std::size_t i = 0; i < mine.size(); ++i) memory[at(mine[i])] = layers_[at(lender)][at(theirs.at(i))];
      }
      runner_.run(block, l, memory);
      flowing_ = &memory[at(result_of(program_, block))];
    }
  }

  void backward() {
    const program::Block& head = runner_.block("head", program::Phase::backward, -1);
    const std::int64_t decoding = runner_.first_decoding();
    runner_.run(head, -1, outer_);
    flowing_ = &outer_[at(input_gradient(program_, head))];
    for (std::int64_t l = runner_.layers(); l-- > decoding;) backward(l);
    embedding_backward(-1);
    if (decoding == 0) return;
    const program::Block& end = runner_.block("head", program::Phase::backward, -2);
    flowing_ = &encoded_gradient_;
    if (end.first < end.last) {
      outer_[at(given(program_, end, {}, true))] = encoded_gradient_;
      runner_.run(end, -1, outer_);
      flowing_ = &outer_[at(input_gradient(program_, end))];
    }
    for (std::int64_t l = decoding; l-- > 0;) backward(l);
    embedding_backward(-2);
  }

  int token_inputs() const {
    return token_inputs_by(program_, runner_.block("embedding", program::Phase::forward, -1));
  }

  void embedding_backward(int kind) {
    const program::Block& embedding = runner_.block("embedding", program::Phase::backward, kind);
    if (embedding.first == embedding.last) return;  // nothing in it is trained
    const program::Block& forward = runner_.block("embedding", program::Phase::forward, kind);
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
    const program::Block& block = runner_.layer_block(l, program::Phase::backward);
    const program::Block& forward = runner_.layer_block(l, program::Phase::forward);
    ProgramMemory& memory = layers_[at(l)];
    memory[at(given(program_, block, program_.tensor(result_of(program_, forward)).name, true))] = *flowing_;
    // Gradients from later layers that use this layer's keys; nothing if there are none.
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
  Shards<double> embedded_gradient_;  ///< from blocks that also read the embedding
  std::map<std::pair<std::int64_t, std::size_t>, Shards<double>> key_gradients_;  ///< by lending layer and tensor
  std::map<std::int64_t, Shards<double>> token_gradients_;                        ///< by layer of the decoder
  const Shards<double>* flowing_ = nullptr;  ///< the residual stream, or its gradient
  ProgramRunner& runner_;
  const program::Program& program_;
  ProgramMemory outer_;
  std::vector<ProgramMemory> layers_;
};

/// The weights that a block of updates produced, and the gradients it used.
void read_updates(ProgramRunner& runner, const program::Program& program, const program::Block& block,
                  std::int64_t layer, const ProgramMemory& memory, TrainingRun& out) {
  const std::map<int, std::string> names = runner.names(layer);
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const program::Step& step = program.steps[at(i)];
    if (step.op != program::Op::update) continue;
    const std::string& name = names.at(step.in[1]);
    out.gradients[name] = runner.step().collected(step.in[0], memory);
    std::int32_t last = i;
    while (last + 1 < block.last && program.steps[at(last + 1)].op != program::Op::update) ++last;
    const int result = program.steps[at(last)].out[0];
    if (program.tensor(result).sharding != program.tensor(step.in[1]).sharding)
      throw InternalError("an updated weight has another sharding than before");
    out.updated[name] = runner.step().collected(result, memory);
  }
}

/// Rows [start, start + count) of the first dimension.
Array<double> rows(const Array<double>& all, std::int64_t start, std::int64_t count) {
  return part(all, 0, start, count);
}

}  // namespace

NamedArrays random_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed) {
  constexpr double spread = 0.3;  // small enough for plain exponentials, large enough for every path to matter
  NamedArrays out;
  const ProgramRunner runner(program, model, 1);
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
    for (const auto& [id, text] : runner.names(layer)) {
      if (out.contains(text)) continue;
      const program::ProgramTensor& tensor = program.tensor(id);
      Array<double> values =
          random_reals<double>(global_shape(program::to_tensor(program, tensor)), mixed(seed, out.size()));
      const bool scale = tensor.name.ends_with("norm") && !tensor.name.starts_with("b_");
      for (double& value : values.values) value = spread * value + (scale ? 1.0 : 0.0);
      out[text] = std::move(values);
    }
  return out;
}

TrainingRun run_training(const program::Program& program, const model::Transformer& model, const NamedArrays& weights,
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
    for (const program::Block& block : program.blocks)
      if ((block.kind == runner.kind(layer) || (layer < 0 && block.kind < 0)) &&
          block.phase != program::Phase::forward && (!block.is_shared || runner.first_of_kind(layer) == layer)) {
        runner.run(block, layer, sums[at(layer + 1)], true);
        if (block.phase == program::Phase::update)
          read_updates(runner, program, block, layer, sums[at(layer + 1)], out);
      }
  out.facts = runner.facts();
  return out;
}

}  // namespace assay::execute
