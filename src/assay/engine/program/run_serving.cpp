// Serving steps of run_program.h: caches and states are carried from step to step.
#include <algorithm>
#include <cmath>
#include <span>

#include "assay/base/index.h"
#include "assay/engine/program/runner.h"

namespace assay::engine {
namespace {

/// What a model makes of the results of its head.
Array as_logits(Array scores, const model::Definition& by) {
  for (double& value : scores.values) {
    value *= by.logit_scale;
    if (by.logit_cap > 0) value = by.logit_cap * std::tanh(value / by.logit_cap);
  }
  return scores;
}

/// The new tokens' entries of the caches of a block, in order.
std::vector<int> fresh_entries(const program::Program& program, const program::Block& block) {
  std::vector<int> out;
  int index = -1, latent = -1, place = -1;
  for (const program::Step& step : program.steps_of(block)) {
    if (step.op == program::Op::cast && step.in[1] >= 0) out.push_back(step.in[0]);
    if (step.op == program::Op::norm && program.tensor(step.out[0]).name == "C") latent = step.out[0];
    if (step.op == program::Op::rotate && program.tensor(step.out[0]).name == "K_pos") place = step.out[0];
    if (step.op == program::Op::pick && out.empty()) index = step.in[1];
    if (step.op == program::Op::attention && step.detail >= 0 && out.empty()) {
      out = latent >= 0 ? std::vector<int>{latent, place} : std::vector<int>{step.in[1], step.in[2]};
      if (index >= 0) out.insert(out.begin(), index);
    }
  }
  return out;
}

/// The weights of a layer, in a block's memory as long as it runs.
class BorrowedWeights {
 public:
  BorrowedWeights(const ProgramRunner& runner, std::int64_t layer, PlacedWeights& placed, ProgramMemory& memory)
      : names_(runner.names(layer)), placed_(placed), memory_(memory) {}
  void take(const ProgramRunner& runner, const NamedArrays& weights) {
    for (const auto& [id, text] : names_) {
      const auto [found, is_new] = placed_.try_emplace(text);
      memory_[at(id)] = is_new ? runner.step().distributed(weights.at(text), id) : std::move(found->second);
    }
  }
  void give_back() {
    for (const auto& [id, text] : names_) placed_[text] = std::move(memory_[at(id)]);
  }

 private:
  std::map<int, std::string> names_;
  PlacedWeights& placed_;
  ProgramMemory& memory_;
};

/// Keys and values that a block computed from the encoder's output; nothing if it has them in a cache, or has none.
std::vector<int> encoded_entries(const program::Program& program, const program::Block& block) {
  for (const program::Step& step : program.steps_of(block))
    if (step.op == program::Op::attention && step.detail >= 0)
      if (program.attentions[at(step.detail)].cross && !program.tensor(step.in[1]).is_given)
        return {step.in[1], step.in[2]};
  return {};
}

/// Keys and values of a block as a later layer reads them: its caches with the new tokens, or only the new tokens.
std::vector<int> readable_keys(const program::Program& program, const program::Block& block) {
  std::vector<int> out;
  for (const program::Step& step : program.steps_of(block))
    if (step.op == program::Op::cast && step.in[1] >= 0) out.push_back(step.out[0]);
  return out.empty() ? lent_keys(program, block, false) : out;
}

/// Fills a block's caches with their old entries, leaving room for the new ones.
void give_caches(ProgramRunner& runner, const program::Program& program, const program::Block& block,
                 const LayerCache& cache, ProgramMemory& memory) {
  std::size_t next = 0;
  for (const program::Step& step : program.steps_of(block)) {
    if (step.op != program::Op::cast || step.in[1] < 0) continue;
    const program::ProgramTensor& tensor = program.tensor(step.in[1]);
    const std::int64_t kept = tensor.dims[1].size, added = program.tensor(step.in[0]).dims[1].size;
    const Array& old = cache.at(next++);
    const std::int64_t held = old.shape[1], used = std::min(held, kept - added);
    Shape shape = old.shape;
    shape[1] = kept;
    Array whole = zeros(shape);
    Shape from(shape.size(), 0), to(shape.size(), 0), extent = old.shape;
    from[1] = held - used;
    to[1] = kept - added - used;
    extent[1] = used;
    copy_block(old, from, extent, whole, to);
    memory[at(step.in[1])] = runner.step().distributed(whole, step.in[1]);
  }
}

}  // namespace

ServingRun run_serving(const program::Program& program, const model::Transformer& model, const NamedArrays& weights,
                       const Array& tokens, ServedSequences& kept, const ServingOptions& options) {
  ProgramRunner runner(program, model, 1, options.placement);
  StepRunner& step = runner.step();
  kept.caches.resize(at(runner.layers()));
  kept.states.resize(at(runner.layers()));
  kept.encoded_caches.resize(at(runner.layers()));
  PlacedWeights own;
  PlacedWeights& placed = options.placed ? *options.placed : own;
  ProgramMemory outer(program.tensors.size());
  BorrowedWeights outer_weights(runner, -1, placed, outer);
  outer_weights.take(runner, weights);
  const program::Block& embedding = runner.block("embedding", program::Phase::forward, -1);
  const program::Block& head = runner.block("head", program::Phase::forward, -1);
  const int input = given(program, embedding, "Tokens");
  outer[at(input)] = step.distributed(tokens, input);
  runner.run(embedding, -1, outer);
  step.settle();
  const Shards embedded_tokens = outer[at(embedded_by(program, embedding))];
  Shards x = embedded_tokens;
  std::map<std::int64_t, std::vector<Shards>> lent;  // by layer: keys and values for later layers
  for (std::int64_t l = runner.first_decoding(); l < runner.layers(); ++l) {
    const program::Block& block = runner.layer_block(l, program::Phase::forward);
    ProgramMemory memory(program.tensors.size());
    BorrowedWeights layer_weights(runner, l, placed, memory);
    layer_weights.take(runner, weights);
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
    step.settle();
    x = memory[at(result_of(program, block))];
    for (int id : readable_keys(program, block)) lent[l].push_back(memory[at(id)]);
    if (encoded_cache.empty())
      for (int id : encoded_entries(program, block)) encoded_cache.push_back(step.collected(id, memory));
    const std::vector<int> fresh = fresh_entries(program, block);
    std::vector<Array> entries;
    for (int id : fresh) entries.push_back(step.collected(id, memory));
    // Latent attention caches one row per token: the latent and the positional part.
    const std::optional<model::Attention>& attention = model.decoder.kinds[at(runner.kind(l))].attention;
    if (attention && attention->kv_rank > 0 && entries.size() == (attention->index_heads > 0 ? 3u : 2u)) {
      const Array row = joined(std::span<const Array>(entries).last(2), 2);
      entries.resize(entries.size() - 2);
      entries.push_back(row);
    }
    layer_weights.give_back();
    LayerCache& cache = kept.caches[at(l)];
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (cache.size() <= i) {
        cache.push_back(entries[i]);
      } else {
        const std::vector<Array> both{cache[i], entries[i]};
        cache[i] = joined(both, 1);
      }
    }
  }
  std::vector<Array> logits;
  for (std::int64_t back = options.scored; back-- > 0;) {  // serving never splits a sequence
    Shards& scored = outer[at(given(program, head, "In"))];
    scored.assign(x.size(), {});
    for (std::size_t d : step.devices().here()) scored[d] = part(x[d], 1, x[d].shape[1] - 1 - back, 1);
    runner.run(head, -1, outer);
    step.settle();
    for (const program::Step& made : program.steps_of(head)) {
      if (made.op == program::Op::sample && program.tensor(made.in[0]).find(model::LogicalDim::vocabulary) >= 0)
        logits.push_back(step.collected(made.in[0], outer));
    }
  }
  ServingRun out;
  out.logits = as_logits(joined(logits, 1), model.definition);
  out.chosen = step.collected(result_of(program, head), outer);
  out.facts = runner.facts();
  out.clocks = step.clocks();
  outer_weights.give_back();
  return out;
}

}  // namespace assay::engine
