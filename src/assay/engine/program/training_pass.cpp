#include "assay/engine/program/training_pass.h"

#include <algorithm>

#include "assay/base/index.h"
#include "assay/base/result.h"

namespace assay::engine {

std::vector<char> steps_to_input(const program::Program& program, const program::Block& block) {
  std::vector<char> needed(program.tensors.size(), 0), marks(at(block.last - block.first), 0);
  needed[at(input_gradient(program, block))] = 1;
  for (std::int32_t i = block.last; i-- > block.first;) {
    const program::Step& step = program.steps[at(i)];
    bool is_needed = false;
    for (int id : step.out) is_needed = is_needed || (id >= 0 && needed[at(id)] != 0);
    if (!is_needed) continue;
    marks[at(i - block.first)] = 1;
    for (int id : step.in)
      if (id >= 0) needed[at(id)] = 1;
  }
  return marks;
}

int input_gradient(const program::Program& program, const program::Block& block, std::string_view name) {
  for (std::int32_t i = block.last; i-- > block.first;)
    for (int id : program.steps[at(i)].out)
      if (id >= 0 && program.tensor(id).is_gradient && program.tensor(id).name == name) return id;
  throw InternalError("a block has no gradient of its input");
}

void add_to(Shards& sums, const Shards& more) {
  if (sums.empty()) {
    sums = more;
    return;
  }
  for (std::size_t d = 0; d < sums.size(); ++d) add(sums[d], more[d]);
}

std::vector<int> summed_tensors(const program::Program& program, bool shared) {
  std::vector<char> made(program.tensors.size(), 0);
  for (const program::Step& step : program.steps)
    for (int id : step.out)
      if (id >= 0 && step.once) made[at(id)] = 1;
  std::vector<int> out;
  std::vector<char> done(program.tensors.size(), 0);
  for (const program::Block& block : program.blocks)
    for (const program::Step& step : program.steps_of(block)) {
      if (block.is_shared != shared || !step.once) continue;
      for (int id : step.in) {
        if (id < 0 || made[at(id)] || done[at(id)] || program.tensor(id).is_given) continue;
        done[at(id)] = 1;
        out.push_back(id);
      }
    }
  return out;
}

std::vector<int> tied_tensors(const program::Program& program) {
  std::vector<char> made(program.tensors.size(), 0);
  std::vector<int> out;
  for (const bool reads : {false, true})
    for (const program::Block& block : program.blocks) {
      if (block.phase != program::Phase::backward || block.kind != -1 || (block.name == "embedding") != reads) continue;
      for (const program::Step& step : program.steps_of(block)) {
        for (int id : step.out)
          if (!reads && id >= 0) made[at(id)] = 1;
        for (int id : step.in)
          if (reads && id >= 0 && made[at(id)] && std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
      }
    }
  return out;
}

std::vector<int> trained_weights(const program::Program& program, std::string_view name) {
  std::vector<int> out;
  for (const program::Block& block : program.blocks)
    for (const program::Step& step : program.steps_of(block))
      if (block.kind == -1 && block.name == name && step.op == program::Op::update) out.push_back(step.in[1]);
  return out;
}

TrainingPass::TrainingPass(ProgramRunner& runner, const program::Program& program, const StackMemory& weights,
                           HostCopies* copies)
    : copies_(copies && copies->what().activations ? copies : nullptr),
      runner_(runner),
      program_(program),
      outer_(weights.front()),
      layers_(weights.begin() + 1, weights.end()) {}

double TrainingPass::run(const Array& tokens, const Array& targets) {
  // Embedding and head are blocks of the same kind; they follow each other in the program.
  const std::int64_t decoding = runner_.first_decoding();
  if (decoding > 0) {  // the encoder reads the same tokens
    const program::Block& end = runner_.block("head", program::Phase::forward, -2);
    embed(-2, tokens);
    run_forward(0, decoding,
                outer_[at(embedded_by(program_, runner_.block("embedding", program::Phase::forward, -2)))]);
    if (end.first < end.last) {  // a last norm
      outer_[at(given(program_, end, "In"))] = *flowing_;
      runner_.run(end, -1, outer_);
      flowing_ = &outer_[at(result_of(program_, end))];
    }
    encoded_ = *flowing_;
  }
  embed(-1, tokens);
  run_forward(decoding, runner_.layers(),
              outer_[at(embedded_by(program_, runner_.block("embedding", program::Phase::forward, -1)))]);
  const double sum = loss(*flowing_, targets);
  run_backward();
  return sum;
}

void TrainingPass::give(ProgramMemory& memory, int id, const Array& global) {
  memory[at(id)] = runner_.step().distributed(global, id);
}

void TrainingPass::embed(int kind, const Array& tokens) {
  const program::Block& embedding = runner_.block("embedding", program::Phase::forward, kind);
  give(outer_, given(program_, embedding, "Tokens"), tokens);
  runner_.run(embedding, -1, outer_);
}

void TrainingPass::run_forward(std::int64_t first, std::int64_t last, const Shards& x) {
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
    if (copies_) {
      runner_.step().settle();
      away_[l] = copies_->send(block, memory);
    }
    flowing_ = &memory[at(result_of(program_, block))];
  }
}

void TrainingPass::run_backward() {
  const program::Block& head = runner_.block("head", program::Phase::backward, -1);
  const std::int64_t decoding = runner_.first_decoding();
  runner_.run(head, -1, outer_);
  flowing_ = &outer_[at(input_gradient(program_, head))];
  for (std::int64_t l = runner_.layers(); l-- > decoding;) layer_backward(l, Gradients::all);
  embedding_backward(-1);
  if (decoding == 0) return;
  const program::Block& end = runner_.block("head", program::Phase::backward, -2);
  flowing_ = &encoded_gradient_;
  if (end.first < end.last) {
    outer_[at(given(program_, end, {}, true))] = encoded_gradient_;
    runner_.run(end, -1, outer_);
    flowing_ = &outer_[at(input_gradient(program_, end))];
  }
  for (std::int64_t l = decoding; l-- > 0;) layer_backward(l, Gradients::all);
  embedding_backward(-2);
}

int TrainingPass::token_inputs() const {
  return token_inputs_by(program_, runner_.block("embedding", program::Phase::forward, -1));
}

void TrainingPass::embedding_backward(int kind) {
  const program::Block& embedding = runner_.block("embedding", program::Phase::backward, kind);
  if (embedding.first == embedding.last) return;  // nothing in it is trained
  const program::Block& forward = runner_.block("embedding", program::Phase::forward, kind);
  const auto seed = [&](int result) { return at(given(program_, embedding, program_.tensor(result).name, true)); };
  Shards& arriving = outer_[seed(embedded_by(program_, forward))];
  arriving = *flowing_;
  if (!embedded_gradient_.empty()) add_to(arriving, embedded_gradient_);
  if (const int inputs = kind == -1 ? token_inputs() : -1; inputs >= 0) {
    Shards all;
    for (std::size_t d = 0; d < outer_[at(inputs)].size(); ++d) {
      all.emplace_back();
      if (outer_[at(inputs)][d].shape.empty()) continue;  // of another process
      all.back() = zeros(outer_[at(inputs)][d].shape);
      for (const auto& [layer, gradient] : token_gradients_) {
        Array one = gradient[d];
        one.shape.insert(one.shape.begin() + 2, 1);
        copy_block(one, Shape(4, 0), one.shape, all.back(), {0, 0, layer, 0});
      }
    }
    outer_[seed(inputs)] = all;
  }
  runner_.run(embedding, -1, outer_);
}

void TrainingPass::layer_backward(std::int64_t l, Gradients which) {
  const program::Block& block = runner_.layer_block(l, program::Phase::backward);
  const program::Block& forward = runner_.layer_block(l, program::Phase::forward);
  ProgramMemory& memory = layers_[at(l)];
  if (copies_) copies_->fetch(away_[l], memory);
  if (which == Gradients::of_weights)
    return runner_.run_marked(block, l, memory, steps_to_input(program_, block), false);
  memory[at(given(program_, block, program_.tensor(result_of(program_, forward)).name, true))] = *flowing_;
  // Gradients from later layers that use this layer's keys; nothing if there are none.
  const auto lent = lent_keys(program_, forward, false);
  for (std::size_t i = 0; i < lent.size(); ++i) {
    const int seed = given(program_, block, program_.tensor(lent[i]).name, true);
    auto& sums = key_gradients_[{l, i}];
    if (sums.empty())
      for (const Array& shard : memory[at(lent[i])]) sums.push_back(shard.shape.empty() ? Array{} : zeros(shard.shape));
    memory[at(seed)] = sums;
  }
  if (which == Gradients::of_input)
    runner_.run_marked(block, l, memory, steps_to_input(program_, block), true);
  else
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

Shards TrainingPass::embedded(const Array& tokens) {
  embed(-1, tokens);
  return outer_[at(embedded_by(program_, runner_.block("embedding", program::Phase::forward, -1)))];
}

Shards TrainingPass::forward(std::int64_t first, std::int64_t last, const Shards& x) {
  run_forward(first, last, x);
  return *flowing_;
}

double TrainingPass::loss(const Shards& x, const Array& targets) {
  const program::Block& head = runner_.block("head", program::Phase::forward, -1);
  outer_[at(given(program_, head, "In"))] = x;
  give(outer_, given(program_, head, "Targets"), targets);
  runner_.run(head, -1, outer_);
  double sum = 0;
  for (double value : runner_.step().collected(result_of(program_, head), outer_).values) sum += value;
  return sum;
}

Shards TrainingPass::head_gradient() {
  const program::Block& head = runner_.block("head", program::Phase::backward, -1);
  runner_.run(head, -1, outer_);
  return outer_[at(input_gradient(program_, head))];
}

Shards TrainingPass::backward(std::int64_t first, std::int64_t last, const Shards& arriving, Gradients which) {
  flowing_ = &arriving;
  for (std::int64_t l = last; l-- > first;) layer_backward(l, which);
  return which == Gradients::of_weights ? Shards{} : *flowing_;
}

void TrainingPass::embedding_gradient(const Shards& arriving) {
  flowing_ = &arriving;
  embedding_backward(-1);
}

}  // namespace assay::engine
