#include "assay/execute/cuda/serving_tasks.h"

#include <fmt/format.h>

#include "assay/base/index.h"
#include "assay/execute/cuda/task_builder.h"
#include "assay/execute/cuda/task_list.h"
#include "assay/execute/cuda/task_of_step.h"
#include "assay/execute/program/runner.h"
#include "assay/lower/lowering.h"
#include "assay/model/accounting.h"

namespace assay::execute {
namespace {

constexpr const char* serving_engine = "--engine cuda";

class ServingLister {
 public:
  ServingLister(const program::Program& program, const model::Transformer& model, const KeptArrays& kept,
                std::size_t number)
      : program_(program), layout_(program), runner_(program, model, 1), kept_(kept), number_(number) {
    for (const AssayCudaArray& array : kept.arrays) builder_.fixed(array);
  }

  Result<ServingTasks> run(std::int64_t scored) {
    const program::Block& embedding = runner_.block("embedding", program::Phase::forward, -1);
    const int input = given(program_, embedding, "Tokens");
    sequences_ = program_.tensor(input).dims[0].size;
    queries_ = program_.tensor(input).dims[1].size;
    out_.tokens = builder_.kept(assay_cuda_int32, sequences_ * queries_);
    out_.places = builder_.kept(assay_cuda_int32, sequences_);
    enter(-1);
    memory_[at(input)] = out_.tokens;
    ASSAY_CHECK(run_block(embedding, -1));
    int flowing = memory_[at(embedded_by(program_, embedding))];
    for (std::int64_t l = 0; l < runner_.layers(); ++l) {
      const program::Block& block = runner_.layer_block(l, program::Phase::forward);
      enter(l);
      memory_[at(given(program_, block, "In"))] = flowing;
      ASSAY_CHECK(run_block(block, l));
      flowing = memory_[at(result_of(program_, block))];
    }
    ASSAY_CHECK(run_head(flowing, scored));
    out_.bytes = builder_.place(kept_.bytes);
    out_.arrays = builder_.arrays();
    out_.tasks = builder_.tasks();
    return std::move(out_);
  }

 private:
  /// A layer starts with its weights; below 0: embedding and head.
  void enter(std::int64_t layer) {
    memory_.assign(program_.tensors.size(), -1);
    for (const auto& [id, name] : runner_.names(layer)) memory_[at(id)] = kept_.weights.at(name);
    written_ = 0;
  }

  Result<void> run_head(int flowing, std::int64_t scored) {
    const program::Block& head = runner_.block("head", program::Phase::forward, -1);
    const int input = given(program_, head, "In");
    const program::Step& last = program_.steps[at(head.last - 1)];
    const std::int64_t logits = elements_of(program_.tensor(last.in[0]));
    out_.logits = builder_.kept(type_of(program_.tensor(last.in[0])), scored * logits);
    out_.chosen = builder_.kept(assay_cuda_int32, scored * sequences_);
    for (std::int64_t back = 0; back < scored; ++back) {
      enter(-1);
      int rows = flowing;
      if (queries_ > 1) {
        const std::int64_t width = elements_of(program_.tensor(input)) / sequences_;
        rows = builder_.added(type_of(program_.tensor(input)), sequences_ * width);
        AssayCudaTask task = empty_task(assay_cuda_last_tokens);
        task.step = head.first;
        task.in[0] = flowing;
        task.out[0] = rows;
        task.sizes[0] = sequences_, task.sizes[1] = queries_, task.sizes[2] = width, task.sizes[3] = back;
        builder_.add(task);
      }
      memory_[at(input)] = rows;
      memory_[at(last.in[0])] = builder_.part_of(out_.logits, back * logits, logits);
      memory_[at(last.out[0])] = builder_.part_of(out_.chosen, back * sequences_, sequences_);
      ASSAY_CHECK(run_block(head, -1));
    }
    return {};
  }

  Result<void> run_block(const program::Block& block, std::int64_t layer) {
    for (std::int32_t i = block.first; i < block.last; ++i) ASSAY_CHECK(run_step(i, layer));
    return {};
  }

  Result<void> run_step(std::int32_t number, std::int64_t layer) {
    const program::Step& step = program_.steps[at(number)];
    if (step.op == program::Op::cast && step.in[1] >= 0) return write_cache(number, layer);
    ASSAY_TRY(task, task_of_step({program_, layout_, 0, layer < 0 ? nullptr : runner_.layer(layer).shape}, step));
    task.step = number;
    for (int& operand : task.in) {
      if (operand < 0) continue;
      const int id = operand;
      operand = memory_[at(id)];
      if (operand < 0)
        return fail(serving_engine,
                    fmt::format("{} comes from another layer, which does not run on a GPU yet: {}",
                                program_.tensor(id).name, program::step_text(program_, step)),
                    cuda_remedy);
    }
    for (int& operand : task.out) {
      if (operand < 0) continue;
      int& made = memory_[at(operand)];
      if (!is_wanted(operand, made))
        made = builder_.added(type_of(program_.tensor(operand)), elements_of(program_.tensor(operand)));
      operand = made;
    }
    if (task.kernel == assay_cuda_rotate) task.sizes[5] = first_position(layer);
    if (task.kernel == assay_cuda_cache_attention) {
      task.in[3] = out_.places;
      task.sizes[6] = kept_.room;
    }
    if (task.kernel == assay_cuda_attention && task.out[1] < 0)
      task.out[1] = builder_.added(assay_cuda_fp32, task.sizes[0] * task.sizes[1] * task.sizes[3]);
    builder_.add(task);
    return {};
  }

  /// Logits and tokens have their place already.
  bool is_wanted(int id, int array) const {
    const program::Block& head = runner_.block("head", program::Phase::forward, -1);
    const program::Step& last = program_.steps[at(head.last - 1)];
    return array >= 0 && (id == last.in[0] || id == last.out[0]);
  }

  std::int64_t first_position(std::int64_t layer) const {
    const program::Block& block = runner_.layer_block(layer, program::Phase::forward);
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (const program::Step& step = program_.steps[at(i)]; step.op == program::Op::attention && step.detail >= 0)
        return program_.attentions[at(step.detail)].keys - program_.attentions[at(step.detail)].queries;
    return 0;
  }

  /// New keys go before new values. A prompt attends to them where they were made, later tokens to the cache.
  Result<void> write_cache(std::int32_t number, std::int64_t layer) {
    const program::Step& step = program_.steps[at(number)];
    const program::ProgramTensor& fresh = program_.tensor(step.in[0]);
    if (written_ > 1 || fresh.rank != 4)
      return fail(serving_engine,
                  fmt::format("such a cache is not on a GPU yet: {}", program::step_text(program_, step)), cuda_remedy);
    const KeptArrays::LayerCaches& caches = kept_.caches[number_][at(layer)];
    const int cache = written_++ == 0 ? caches.keys : caches.values;
    AssayCudaTask task = empty_task(assay_cuda_cache_write);
    task.step = number;
    task.in[0] = memory_[at(step.in[0])];
    task.in[1] = out_.places;
    task.out[0] = cache;
    const std::int64_t first = first_position(layer);
    task.sizes[0] = sequences_, task.sizes[1] = queries_;
    task.sizes[2] = fresh.dims[2].size * fresh.dims[3].size;
    task.sizes[3] = kept_.room, task.sizes[4] = first;
    builder_.add(task);
    memory_[at(step.out[0])] = first > 0 ? cache : task.in[0];
    return {};
  }

  const program::Program& program_;
  TensorLayout layout_;
  ProgramRunner runner_;
  const KeptArrays& kept_;
  std::size_t number_;
  TaskBuilder builder_;
  ServingTasks out_;
  std::vector<int> memory_;  ///< arrays of the layer at hand, by tensor
  std::int64_t sequences_ = 1, queries_ = 1;
  int written_ = 0;  ///< caches of the layer
};

}  // namespace

Result<KeptArrays> kept_arrays(const std::vector<const model::Transformer*>& models, std::int64_t places,
                               std::int64_t room, std::uint64_t seed) {
  KeptArrays kept;
  kept.room = room;
  TaskBuilder builder;
  const model::Transformer& whole = *models.front();
  if (whole.encoder) return fail(serving_engine, "models with an encoder do not run on a GPU yet", cuda_remedy);
  const program::Program training = lower::lower_training(whole, {}, {}, {});
  for (const WeightStart& start : initial_starts(training, whole, seed)) {
    const int array = kept.weights[start.name] =
        builder.kept(type_of(training.tensor(start.tensor)), element_count(start.shape));
    kept.starts.push_back(cuda_start(-1, array, start, whole_extents(start.shape)));
  }
  for (const model::Transformer* model : models) {
    kept.caches.emplace_back();
    for (std::int64_t l = 0; l < model->decoder.layers(); ++l) {
      const model::Layer& layer = model->decoder.kinds[model->decoder.order[at(l)]];
      if (!layer.attention || layer.attention->kv_rank > 0 || layer.attention->shares_kv)
        return fail(serving_engine,
                    fmt::format("layer {} has no keys and values of its own, and does not run on a GPU yet", l),
                    cuda_remedy);
      const std::int64_t keys = places * room * layer.attention->kv_heads;
      kept.caches.back().push_back({builder.kept(assay_cuda_bf16, keys * layer.attention->head_dim),
                                    builder.kept(assay_cuda_bf16, keys * layer.attention->value_dim)});
    }
  }
  kept.bytes = builder.place();
  kept.arrays = builder.arrays();
  return kept;
}

program::Program served_program(const model::Transformer& model, std::int64_t sequences, std::int64_t queries,
                                std::int64_t keys) {
  lower::Workload work;
  work.sequences = sequences;
  work.queries = queries;
  work.keys = keys;
  work.cached = true;
  work.expert_load = model::most_expert_load(model);
  return lower::lower_serving(model, {}, {}, work, {});
}

Result<ServingTasks> serving_tasks(const program::Program& program, const model::Transformer& model,
                                   const KeptArrays& kept, std::size_t number, std::int64_t scored) {
  return ServingLister(program, model, kept, number).run(scored);
}

}  // namespace assay::execute
