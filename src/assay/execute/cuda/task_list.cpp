#include "assay/execute/cuda/task_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "assay/base/index.h"
#include "assay/execute/cuda/task_builder.h"
#include "assay/execute/cuda/task_of_step.h"
#include "assay/execute/program/training_pass.h"

namespace assay::execute {
namespace {

constexpr const char* engine_name = "--engine cuda";

class TaskLister {
 public:
  TaskLister(const program::Program& program, const model::Transformer& model, std::size_t device)
      : program_(program),
        layout_(program),
        device_(device),
        runner_(program, model, 1),
        movements_(program.mesh, device),
        sums_(at(runner_.layers() + 1), Numbering(program.tensors.size(), -1)),
        is_sum_(program.tensors.size(), 0) {
    for (const int id : summed_tensors(program, false)) is_sum_[at(id)] = 1;
    list_.runs.assign(program.steps.size(), 0);
  }

  Result<TaskList> run(const std::vector<WeightStart>& starts) {
    add_weights(starts);
    const int given_tokens = given_of("embedding", "Tokens");
    const program::ProgramTensor& tokens = program_.tensor(given_tokens);
    const std::int64_t count = elements_of(tokens);
    all_tokens_ = static_cast<double>(tokens.dims[0].size * tokens.dims[1].size * program_.microbatches);
    list_.tokens_at = layout_.extents(given_tokens, device_);
    list_.tokens = builder_.kept(assay_cuda_int32, count * program_.microbatches);
    list_.targets = builder_.kept(assay_cuda_int32, count * program_.microbatches);
    for (std::int64_t m = 0; m < program_.microbatches; ++m) {
      microbatch_ = m;
      memory_ = weights_;
      give(-1, given_of("embedding", "Tokens"), builder_.part_of(list_.tokens, m * count, count));
      give(-1, given_of("head", "Targets"), builder_.part_of(list_.targets, m * count, count));
      ASSAY_CHECK(run_passes());
    }
    const program::AxisSet split = tokens.sharding.split_axes();
    const Coordinates here = coordinates(program_.mesh, static_cast<std::int64_t>(device_));
    for (std::size_t axis = 0; axis < here.size(); ++axis)
      if (here[axis] != 0 && (split & program::axis_bit(static_cast<int>(axis))) == 0) list_.counts_loss = false;
    memory_ = weights_;
    for (std::size_t i = 0; i < sums_.size(); ++i)
      for (std::size_t id = 0; id < sums_[i].size(); ++id)
        if (sums_[i][id] >= 0) memory_[i][id] = sums_[i][id];
    ASSAY_CHECK(run_updates());
    list_.bytes = builder_.place();
    list_.arrays = builder_.arrays();
    list_.tasks = builder_.tasks();
    list_.groups = movements_.groups();
    list_.moved = movements_.moved;
    list_.stated = movements_.stated;
    return std::move(list_);
  }

 private:
  using Numbering = std::vector<int>;  ///< arrays by tensor; below 0: none

  int given_of(std::string_view block, std::string_view name) const {
    return given(program_, runner_.block(block, program::Phase::forward, -1), name);
  }
  void give(std::int64_t layer, int id, int array) { memory_[at(layer + 1)][at(id)] = array; }
  int array_of(std::int64_t layer, int id) const { return memory_[at(layer + 1)][at(id)]; }

  /// What the optimizer has of a weight: less than its device where its states are sharded.
  std::vector<Extent> optimizer_part(int tensor) const {
    for (const program::Step& step : program_.steps)
      if (step.op == program::Op::update && step.in[1] == tensor) return layout_.extents(step.out[0], device_);
    return layout_.extents(tensor, device_);
  }

  void add_weights(const std::vector<WeightStart>& starts) {
    weights_.assign(at(runner_.layers() + 1), Numbering(program_.tensors.size(), -1));
    states_ = weights_;
    std::map<std::string, std::size_t> known;
    for (const WeightStart& start : starts) {
      const program::ProgramTensor& tensor = program_.tensor(start.tensor);
      TaskWeight weight{start.name,
                        start.shape,
                        builder_.kept(type_of(tensor), elements_of(tensor)),
                        -1,
                        layout_.extents(start.tensor, device_),
                        optimizer_part(start.tensor)};
      std::int64_t elements = 1;
      for (const Extent& extent : weight.master_at) elements *= extent.size;
      const bool apart = weight.is_shared_out() || tensor.dtype != Dtype::fp32;
      weight.master = apart ? builder_.kept(assay_cuda_fp32, elements) : weight.weight;
      if (weight.is_shared_out()) {
        list_.starts.push_back(cuda_start(-1, weight.weight, start, weight.weight_at));
        list_.starts.push_back(cuda_start(weight.master, -1, start, weight.master_at));
      } else {
        list_.starts.push_back(cuda_start(weight.master, weight.weight, start, weight.weight_at));
      }
      known[start.name] = list_.weights.size();
      list_.weights.push_back(std::move(weight));
    }
    for (std::int64_t layer = -1; layer < runner_.layers(); ++layer)
      for (const auto& [id, name] : runner_.names(layer)) {
        weights_[at(layer + 1)][at(id)] = list_.weights[known.at(name)].weight;
        states_[at(layer + 1)][at(id)] = static_cast<int>(known.at(name));
      }
  }

  Result<void> run_passes() {
    const program::Block& embedding = runner_.block("embedding", program::Phase::forward, -1);
    ASSAY_CHECK(run_block(embedding, -1, false));
    int flowing = array_of(-1, embedded_by(program_, embedding));
    for (std::int64_t l = 0; l < runner_.layers(); ++l) {
      const program::Block& block = runner_.layer_block(l, program::Phase::forward);
      if (const int in = given(program_, block, "In"); in >= 0) give(l, in, flowing);
      ASSAY_CHECK(run_block(block, l, false));
      flowing = array_of(l, result_of(program_, block));
    }
    const program::Block& head = runner_.block("head", program::Phase::forward, -1);
    give(-1, given(program_, head, "In"), flowing);
    ASSAY_CHECK(run_block(head, -1, false));
    const program::Block& back = runner_.block("head", program::Phase::backward, -1);
    ASSAY_CHECK(run_block(back, -1, false));
    flowing = array_of(-1, input_gradient(program_, back));
    for (std::int64_t l = runner_.layers(); l-- > 0;) {
      const program::Block& block = runner_.layer_block(l, program::Phase::backward);
      const int result = result_of(program_, runner_.layer_block(l, program::Phase::forward));
      give(l, given(program_, block, program_.tensor(result).name, true), flowing);
      ASSAY_CHECK(run_block(block, l, false));
      flowing = array_of(l, input_gradient(program_, block));
    }
    const program::Block& rows = runner_.block("embedding", program::Phase::backward, -1);
    if (rows.first == rows.last) return {};  // nothing in it is trained
    give(-1, given(program_, rows, program_.tensor(embedded_by(program_, embedding)).name, true), flowing);
    return run_block(rows, -1, false);
  }

  Result<void> run_updates() {
    for (std::int64_t layer = -1; layer < runner_.layers(); ++layer)
      for (const program::Block& block : program_.blocks) {
        const bool is_mine = layer < 0 ? block.kind < 0 : block.kind == runner_.kind(layer);
        if (!is_mine || block.phase == program::Phase::forward) continue;
        if (block.is_shared) return fail(engine_name, "layers that share weights do not run on a GPU yet", cuda_remedy);
        ASSAY_CHECK(run_block(block, layer, true));
      }
    return {};
  }

  Result<void> run_block(const program::Block& block, std::int64_t layer, bool once) {
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (program_.steps[at(i)].once == once) ASSAY_CHECK(run_step(i, layer));
    return {};
  }

  Result<void> run_step(std::int32_t number, std::int64_t layer) {
    const program::Step& step = program_.steps[at(number)];
    ASSAY_TRY(task, step_task(step, layer));
    task.step = number;
    ++list_.runs[at(number)];
    for (std::size_t i = 0; i < std::size(task.in); ++i) {
      if (task.in[i] < 0) continue;
      const int id = task.in[i];
      task.in[i] = array_of(layer, id);
      if (task.in[i] < 0)
        return fail(engine_name,
                    fmt::format("{} comes from another layer, which does not run on a GPU yet: {}",
                                program_.tensor(id).name, program::step_text(program_, step)),
                    cuda_remedy);
    }
    if (step.op == program::Op::update) {
      add_update(task, step, layer);
      return {};
    }
    std::vector<std::pair<int, int>> carried;  // results that are added to those of earlier microbatches
    for (std::size_t i = 0; i < std::size(task.out); ++i) {
      if (task.out[i] < 0) continue;
      const int id = task.out[i];
      const program::ProgramTensor& tensor = program_.tensor(id);
      int& sum = sums_[at(layer + 1)][at(id)];
      const bool adds = is_sum_[at(id)] && microbatch_ > 0;
      if (updated_ && tensor.sharding == program_.tensor(*updated_).sharding) {
        task.out[i] = weights_[at(layer + 1)][at(*updated_)];  // all of the weight again
        updated_.reset();
        continue;
      }
      if (adds && adds_up(task))
        task.out[i] = sum;
      else
        task.out[i] = builder_.added(type_of(tensor), elements_of(tensor));
      if (adds && !adds_up(task)) carried.emplace_back(sum, task.out[i]);
      if (is_sum_[at(id)] && microbatch_ == 0) sum = task.out[i];
      give(layer, id, task.out[i]);
    }
    const auto is_carried = [&](int array) {
      return array >= 0 &&
             std::any_of(sums_[at(layer + 1)].begin(), sums_[at(layer + 1)].end(), [&](int s) { return s == array; });
    };
    if (microbatch_ > 0 && adds_up(task) && (is_carried(task.out[0]) || is_carried(task.out[1]))) {
      task.flags |= assay_cuda_accumulates;
      if (task.kernel == assay_cuda_product) task.in[2] = task.out[0];
    }
    builder_.add(task);
    for (const auto& [sum, part] : carried) {
      AssayCudaTask more = empty_task(assay_cuda_add);
      more.step = number;
      more.in[0] = more.out[0] = sum;
      more.in[1] = part;
      more.sizes[0] = builder_.array(sum).elements;
      builder_.add(more);
    }
    return {};
  }

  Result<AssayCudaTask> step_task(const program::Step& step, std::int64_t layer) {
    const StepPlace place{program_, layout_, device_, layer < 0 ? nullptr : runner_.layer(layer).shape, all_tokens_};
    return program::is_movement(step.op) ? movements_.task(place, step) : task_of_step(place, step);
  }

  void add_update(AssayCudaTask& task, const program::Step& step, std::int64_t layer) {
    const TaskWeight& weight = list_.weights[at(states_[at(layer + 1)][at(step.in[1])])];
    const std::int64_t elements = builder_.array(weight.master).elements;
    const int part =
        weight.is_shared_out() ? builder_.added(builder_.array(weight.weight).type, elements) : weight.weight;
    task.in[1] = task.out[0] = part;
    task.in[2] = weight.master;
    task.in[3] = builder_.kept(assay_cuda_fp32, elements);
    task.in[4] = builder_.kept(assay_cuda_fp32, elements);
    give(layer, step.out[0], part);
    updated_ = weight.is_shared_out() ? std::optional(step.in[1]) : std::nullopt;
    builder_.add(task);
  }

  const program::Program& program_;
  TensorLayout layout_;
  std::size_t device_;
  ProgramRunner runner_;
  TaskList list_;
  Movements movements_;
  std::optional<int> updated_;  ///< a weight of which the optimizer has changed a part
  TaskBuilder builder_;
  std::vector<Numbering> weights_, memory_;  ///< by layer, embedding and head first
  std::vector<Numbering> sums_, states_;     ///< gradients over all microbatches; numbers of weights
  std::vector<char> is_sum_;                 ///< by tensor
  std::int64_t microbatch_ = 0;
  double all_tokens_ = 1;
};

}  // namespace

bool TaskWeight::is_shared_out() const {
  for (std::size_t d = 0; d < weight_at.size(); ++d)
    if (weight_at[d].size != master_at[d].size) return true;
  return false;
}

std::vector<float> part_of_array(const Array<double>& whole, const std::vector<Extent>& at) {
  Shape from, sizes;
  for (const Extent& extent : at) {
    from.push_back(extent.start);
    sizes.push_back(extent.size);
  }
  Array<double> part = zeros<double>(sizes);
  copy_block(whole, from, sizes, part, Shape(sizes.size(), 0));
  return {part.values.begin(), part.values.end()};
}

AssayCudaStart cuda_start(int master, int weight, const WeightStart& start, const std::vector<Extent>& at) {
  AssayCudaStart out{
      master, weight, start.seed, start.shift * start.factor + start.constant, WeightStart::spread * start.factor,
      0,      {},     {}};
  std::fill(std::begin(out.sizes), std::end(out.sizes), 1);
  std::int64_t stride = 1;
  for (std::size_t d = start.shape.size(); d-- > 0; stride *= start.shape[d]) {
    out.first += at[d].start * stride;
    out.sizes[d] = at[d].size;
    out.strides[d] = stride;
  }
  return out;
}

Result<TaskList> task_list(const program::Program& program, const model::Transformer& model, std::uint64_t seed,
                           std::size_t device) {
  if (model.encoder) return fail(engine_name, "models with an encoder do not run on a GPU yet", cuda_remedy);
  return TaskLister(program, model, device).run(initial_starts(program, model, seed));
}

}  // namespace assay::execute
