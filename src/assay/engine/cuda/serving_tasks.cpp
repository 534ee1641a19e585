#include "assay/engine/cuda/serving_tasks.h"

#include <fmt/format.h>

#include "assay/base/index.h"
#include "assay/engine/cuda/task_builder.h"
#include "assay/engine/cuda/task_list.h"
#include "assay/engine/cuda/task_of_step.h"
#include "assay/engine/program/runner.h"
#include "assay/model/accounting.h"
#include "assay/program/lower/lowering.h"

namespace assay::engine {
namespace {

constexpr const char* serving_engine = "--engine cuda";

class ServingLister {
 public:
  ServingLister(const program::Program& program, const model::Transformer& model, const KeptArrays& kept,
                const ServedStepPlace& place, Movements& movements)
      : program_(program),
        layout_(program),
        runner_(program, model, 1),
        kept_(kept),
        place_(place),
        movements_(movements) {
    for (const AssayCudaArray& array : kept.arrays) builder_.fixed(array);
  }

  Result<ServingTasks> run() {
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
    ASSAY_CHECK(run_head(flowing));
    out_.bytes = builder_.place(kept_.bytes);
    out_.arrays = builder_.arrays();
    out_.tasks = builder_.tasks();
    return std::move(out_);
  }

 private:
  /// A layer starts with its weights; below 0: embedding and head.
  void enter(std::int64_t layer) {
    memory_.assign(program_.tensors.size(), -1);
    for (const auto& [id, name] : runner_.names(layer)) memory_[at(id)] = kept_.weights.at(name).array;
    written_ = 0;
  }

  Result<void> run_head(int flowing) {
    const program::Block& head = runner_.block("head", program::Phase::forward, -1);
    const int input = given(program_, head, "In");
    scores_ = scores_of(head);
    chosen_ = result_of(program_, head);
    const std::int64_t logits = elements_of(program_.tensor(scores_));
    out_.logits = builder_.kept(type_of(program_.tensor(scores_)), place_.scored * logits);
    out_.chosen = builder_.kept(assay_cuda_int32, place_.scored * sequences_);
    for (std::int64_t device = 0; device < program_.mesh.devices(); ++device)
      out_.vocabulary.push_back(layout_.extents(scores_, at(device)).back());
    for (std::int64_t back = 0; back < place_.scored; ++back) {
      enter(-1);
      int rows = flowing;
      if (queries_ > 1) {
        const std::int64_t width = elements_of(program_.tensor(input)) / sequences_;
        rows = builder_.added(type_of(program_.tensor(input)), sequences_ * width);
        builder_.add(
            task_of(assay_cuda_last_tokens, head.first, {flowing}, {rows}, {sequences_, queries_, width, back}));
      }
      memory_[at(input)] = rows;
      memory_[at(scores_)] = builder_.part_of(out_.logits, back * logits, logits);
      memory_[at(chosen_)] = builder_.part_of(out_.chosen, back * sequences_, sequences_);
      ASSAY_CHECK(run_block(head, -1));
    }
    return {};
  }

  /// The logits: what the first sampling reads.
  int scores_of(const program::Block& head) const {
    for (const program::Step& step : program_.steps_of(head))
      if (step.op == program::Op::sample) return step.in[0];
    throw InternalError("a head that samples nothing");
  }

  Result<void> run_block(const program::Block& block, std::int64_t layer) {
    for (std::int32_t i = block.first; i < block.last; ++i) ASSAY_CHECK(run_step(i, layer));
    return {};
  }

  Result<void> run_step(std::int32_t number, std::int64_t layer) {
    const program::Step& step = program_.steps[at(number)];
    if (step.op == program::Op::cast && step.in[1] >= 0) return write_cache(number, layer);
    const StepPlace place{program_, layout_, place_.device, layer < 0 ? nullptr : runner_.layer(layer).shape};
    ASSAY_TRY(task, program::is_movement(step.op) ? movements_.task(place, step) : task_of_step(place, step));
    task.step = number;
    ASSAY_CHECK(find_arrays(program_, step, memory_, task));
    for (int& operand : task.out) {
      if (operand < 0) continue;
      int& made = memory_[at(operand)];
      const bool has_place = made >= 0 && (operand == scores_ || operand == chosen_);
      if (!has_place) made = builder_.added(type_of(program_.tensor(operand)), elements_of(program_.tensor(operand)));
      operand = made;
    }
    if (task.kernel == assay_cuda_cache_attention) {
      task.in[3] = out_.places;
      task.sizes[6] = kept_.room;
    }
    if (task.kernel == assay_cuda_attention && task.out[1] < 0)
      task.out[1] = builder_.added(assay_cuda_fp32, task.sizes[0] * task.sizes[1] * task.sizes[3]);
    builder_.add(task);
    return {};
  }

  /// New keys go before new values. A prompt attends to them where they were made, later tokens to the cache.
  Result<void> write_cache(std::int32_t number, std::int64_t layer) {
    const program::Step& step = program_.steps[at(number)];
    const program::ProgramTensor& fresh = program_.tensor(step.in[0]);
    if (written_ > 1 || fresh.rank != 4)
      return fail(serving_engine,
                  fmt::format("such a cache is not on a GPU yet: {}", program::step_text(program_, step)), cuda_remedy);
    const KeptArrays::LayerCaches& caches = kept_.caches[place_.number][at(layer)];
    const int cache = written_++ == 0 ? caches.keys : caches.values;
    const int made = memory_[at(step.in[0])];
    const std::int64_t first = layout_.first_position(), width = elements_of(fresh) / (sequences_ * queries_);
    builder_.add(task_of(assay_cuda_cache_write, number, {made, out_.places}, {cache},
                         {sequences_, queries_, width, kept_.room, first}));
    memory_[at(step.out[0])] = first > 0 ? cache : made;
    return {};
  }

  const program::Program& program_;
  TensorLayout layout_;
  ProgramRunner runner_;
  const KeptArrays& kept_;
  const ServedStepPlace& place_;
  Movements& movements_;
  TaskBuilder builder_;
  ServingTasks out_;
  std::vector<int> memory_;  ///< arrays of the layer at hand, by tensor
  std::int64_t sequences_ = 1, queries_ = 1;
  int written_ = 0;                ///< caches of the layer
  int scores_ = -1, chosen_ = -1;  ///< logits and tokens, which have their places
};

/// Values of a token that a device keeps of every key-value cache of a layer: of the keys first.
std::vector<std::int64_t> cache_widths(const program::Program& program, const program::Block& block) {
  std::vector<std::int64_t> widths;
  for (const program::Step& step : program.steps_of(block)) {
    if (step.op != program::Op::cast || step.in[1] < 0) continue;
    const program::ProgramTensor& fresh = program.tensor(step.in[0]);
    widths.push_back(elements_of(fresh) / (local_size(program, fresh, 0) * local_size(program, fresh, 1)));
  }
  return widths;
}

}  // namespace

program::Program served_program(const model::Transformer& model, const lower::Parallelism& parallelism,
                                std::int64_t sequences, std::int64_t queries, std::int64_t keys) {
  lower::Workload work;
  work.sequences = sequences;
  work.queries = queries;
  work.keys = keys;
  work.cached = true;
  work.expert_load = model::most_expert_load(model);
  const lower::StageRules stage = lower::serving_stage(parallelism, {}, model);
  return lower::lower_serving(model, stage.mesh, stage.rules, work, {});
}

Result<KeptArrays> kept_arrays(const std::vector<const model::Transformer*>& models, const program::Program& program,
                               std::size_t device, const KeptRoom& room, std::uint64_t seed) {
  KeptArrays kept;
  kept.room = room.tokens;
  TaskBuilder builder;
  const model::Transformer& whole = *models.front();
  if (whole.encoder) return fail(serving_engine, "models with an encoder do not run on a GPU yet", cuda_remedy);
  const ProgramRunner runner(program, whole, 1);
  const TensorLayout layout(program);
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
    for (const auto& [id, name] : runner.names(layer)) kept.weights[name].at = layout.extents(id, device);
  const program::Program training = lower::lower_training(whole, {}, {}, {});
  for (const WeightStart& start : initial_starts(training, whole, seed)) {
    KeptArrays::Weight& weight = kept.weights.at(start.name);
    std::int64_t elements = 1;
    for (const Extent& extent : weight.at) elements *= extent.size;
    weight.array = builder.kept(type_of(training.tensor(start.tensor)), elements);
    kept.starts.push_back(cuda_start(-1, weight.array, start, weight.at));
  }
  for (const model::Transformer* model : models) {
    kept.caches.emplace_back();
    for (std::int64_t l = 0; l < model->decoder.layers(); ++l) {
      const model::Layer& layer = model->decoder.kinds[model->decoder.order[at(l)]];
      if (!layer.attention || layer.attention->kv_rank > 0 || layer.attention->shares_kv)
        return fail(serving_engine,
                    fmt::format("layer {} has no keys and values of its own, and does not run on a GPU yet", l),
                    cuda_remedy);
      const std::vector<std::int64_t> widths = cache_widths(program, runner.layer_block(l, program::Phase::forward));
      const std::int64_t entries = room.places * room.tokens;
      kept.caches.back().push_back({builder.kept(assay_cuda_bf16, entries * widths.at(0)),
                                    builder.kept(assay_cuda_bf16, entries * widths.at(1))});
    }
  }
  kept.bytes = builder.place();
  kept.arrays = builder.arrays();
  return kept;
}

Result<ServingTasks> serving_tasks(const program::Program& program, const model::Transformer& model,
                                   const KeptArrays& kept, const ServedStepPlace& place, Movements& movements) {
  return ServingLister(program, model, kept, place, movements).run();
}

}  // namespace assay::engine
