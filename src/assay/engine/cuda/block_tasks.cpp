#include "assay/engine/cuda/block_tasks.h"

#include <algorithm>

#include "assay/base/index.h"
#include "assay/engine/cuda/task_of_step.h"

namespace assay::engine {

BlockTasks::BlockTasks(const program::Program& program, const model::Transformer& model, std::size_t device,
                       std::size_t first, HeldLayers held)
    : program_(program),
      layout_(program),
      device_(device),
      runner_(program, model, 1),
      held_(std::move(held)),
      movements_(program.mesh, device, first),
      rings_(program),
      sums_(at(runner_.layers() + 1), TensorArrays(program.tensors.size(), -1)),
      is_sum_(program.tensors.size(), 0) {
  for (const int id : summed_tensors(program, false)) is_sum_[at(id)] = 1;
  list_.runs.assign(program.steps.size(), 0);
}

/// What the optimizer has of a weight: less than its device where its states are sharded.
std::vector<Extent> BlockTasks::optimizer_part(int tensor) const {
  for (const program::Step& step : program_.steps)
    if (step.op == program::Op::update && step.in[1] == tensor) return layout_.extents(step.out[0], device_);
  return layout_.extents(tensor, device_);
}

bool BlockTasks::runs(const program::Block& block, std::int64_t layer) const {
  const bool is_of_layer = layer < 0 ? block.kind < 0 : block.kind == runner_.kind(layer);
  return is_of_layer && held_.has(block, layer);
}

std::vector<char> BlockTasks::used(std::int64_t layer, bool in_updates) const {
  std::vector<char> marks(program_.tensors.size(), 0);
  for (const program::Block& block : program_.blocks) {
    if (!runs(block, layer)) continue;
    for (const program::Step& step : program_.steps_of(block)) {
      for (const int id : step.in)
        if (id >= 0 && (!in_updates || step.op == program::Op::update)) marks[at(id)] = 1;
    }
  }
  return marks;
}

void BlockTasks::add_weights(const std::vector<WeightStart>& starts) {
  weights_.assign(at(runner_.layers() + 1), TensorArrays(program_.tensors.size(), -1));
  states_ = weights_;
  std::map<std::string, char> needed;  // by name: whether it is trained here
  for (std::int64_t layer = -1; layer < runner_.layers(); ++layer) {
    const std::vector<char> marks = used(layer, false), trained = used(layer, true);
    for (const auto& [id, name] : runner_.names(layer))
      if (marks[at(id)]) needed[name] = std::max(needed[name], trained[at(id)]);
  }
  std::map<std::string, std::size_t> known;
  for (const WeightStart& start : starts) {
    const auto mine = needed.find(start.name);
    if (mine == needed.end()) continue;
    const program::ProgramTensor& tensor = program_.tensor(start.tensor);
    TaskWeight weight{start.name,
                      start.shape,
                      builder_.kept(type_of(tensor), elements_of(tensor)),
                      -1,
                      layout_.extents(start.tensor, device_),
                      optimizer_part(start.tensor)};
    if (mine->second == 0) weight.master_at = weight.weight_at;  // a copy of what another stage trains
    std::int64_t elements = 1;
    for (const Extent& extent : weight.master_at) elements *= extent.size;
    const bool apart = weight.is_shared_out() || tensor.dtype != Dtype::fp32;
    if (mine->second != 0) weight.master = apart ? builder_.kept(assay_cuda_fp32, elements) : weight.weight;
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
    for (const auto& [id, name] : runner_.names(layer))
      if (const auto found = known.find(name); found != known.end()) {
        weights_[at(layer + 1)][at(id)] = list_.weights[found->second].weight;
        states_[at(layer + 1)][at(id)] = static_cast<int>(found->second);
      }
}

Result<void> BlockTasks::run(const program::Block& block, std::int64_t layer, LayerArrays& memory, Gradients which) {
  std::vector<char> marks;
  if (which != Gradients::all) marks = steps_to_input(program_, block);
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const bool is_apart = !marks.empty() && (marks[at(i - block.first)] != 0) != (which == Gradients::of_input);
    if (!program_.steps[at(i)].once && !is_apart) ASSAY_CHECK(run_step(i, layer, memory));
  }
  return {};
}

Result<void> BlockTasks::run_updates() {
  LayerArrays memory = weights_;
  for (std::size_t i = 0; i < sums_.size(); ++i)
    for (std::size_t id = 0; id < sums_[i].size(); ++id)
      if (sums_[i][id] >= 0) memory[i][id] = sums_[i][id];
  for (std::int64_t layer = -1; layer < runner_.layers(); ++layer)
    for (const program::Block& block : program_.blocks) {
      if (!runs(block, layer) || block.phase == program::Phase::forward) continue;
      if (block.is_shared)
        return fail("--engine cuda", "layers that share weights do not run on a GPU yet", cuda_remedy);
      for (std::int32_t i = block.first; i < block.last; ++i)
        if (program_.steps[at(i)].once) ASSAY_CHECK(run_step(i, layer, memory));
    }
  return {};
}

Result<void> BlockTasks::run_step(std::int32_t number, std::int64_t layer, LayerArrays& all) {
  const program::Step& step = program_.steps[at(number)];
  ++list_.runs[at(number)];
  if (rings_.replaces(number)) return {};
  if (const RingStep* ring = rings_.at_step(number)) return run_ring(number, layer, *ring, all);
  TensorArrays& memory = all[at(layer + 1)];
  const StepPlace here = place(layer);
  ASSAY_TRY(task, program::is_movement(step.op) ? movements_.task(here, step) : task_of_step(here, step));
  task.step = number;
  ASSAY_CHECK(find_arrays(program_, step, memory, task));
  if (step.op == program::Op::update)
    add_update(task, step, layer, memory);
  else
    add_results(task, layer, memory);
  return {};
}

void BlockTasks::add_results(AssayCudaTask task, std::int64_t layer, TensorArrays& memory) {
  std::vector<std::pair<int, int>> carried;  // results that are added to those of earlier microbatches
  for (int& operand : task.out) {
    if (operand < 0) continue;
    const int id = operand;
    const program::ProgramTensor& tensor = program_.tensor(id);
    int& sum = sums_[at(layer + 1)][at(id)];
    if (updated_ && tensor.sharding == program_.tensor(*updated_).sharding) {
      operand = weights_[at(layer + 1)][at(*updated_)];  // all of the weight again
      updated_.reset();
      continue;
    }
    const bool adds = is_sum_[at(id)] && sum >= 0;
    if (adds && adds_up(task)) {
      operand = sum;
      task.flags |= assay_cuda_accumulates;
    } else {
      operand = builder_.added(type_of(tensor), elements_of(tensor));
      if (adds) carried.emplace_back(sum, operand);
      if (is_sum_[at(id)] && sum < 0) sum = operand;
    }
    memory[at(id)] = operand;
  }
  if (task.kernel == assay_cuda_product && (task.flags & assay_cuda_accumulates)) task.in[2] = task.out[0];
  builder_.add(task);
  for (const auto& [sum, part] : carried) builder_.add_sum(task.step, sum, part, sum);
}

void BlockTasks::add_update(AssayCudaTask& task, const program::Step& step, std::int64_t layer, TensorArrays& memory) {
  const TaskWeight& weight = list_.weights[at(states_[at(layer + 1)][at(step.in[1])])];
  const std::int64_t elements = builder_.array(weight.master).elements;
  const int part =
      weight.is_shared_out() ? builder_.added(builder_.array(weight.weight).type, elements) : weight.weight;
  task.in[1] = task.out[0] = part;
  task.in[2] = weight.master;
  task.in[3] = builder_.kept(assay_cuda_fp32, elements);
  task.in[4] = builder_.kept(assay_cuda_fp32, elements);
  if (!held_.counts_squares) task.number = 0;
  memory[at(step.out[0])] = part;
  updated_ = weight.is_shared_out() ? std::optional(step.in[1]) : std::nullopt;
  builder_.add(task);
}

Result<void> BlockTasks::run_ring(std::int32_t number, std::int64_t layer, const RingStep& ring, LayerArrays& all) {
  const program::Step& step = program_.steps[at(number)];
  TensorArrays& memory = all[at(layer + 1)];
  StepPlace here = place(layer);
  here.in_blocks = true;
  ASSAY_TRY(attention, task_of_step(here, step));
  attention.step = number;
  const auto shift_of = [&](std::int32_t which) -> Result<RingShift> {
    ASSAY_TRY(shift, movements_.shift(here, program_.steps[at(which)]));
    shift.task.step = which;
    return shift;
  };
  const auto array_of = [&](int id) { return memory[at(id)]; };
  const auto made = [&](int id) {
    return memory[at(id)] = builder_.added(type_of(program_.tensor(id)), elements_of(program_.tensor(id)));
  };
  const auto moved = [&](std::int32_t which) -> const program::Step& { return program_.steps[at(which)]; };
  ASSAY_TRY(keys, shift_of(ring.keys));
  ASSAY_TRY(values, shift_of(ring.values));
  RingTasks tasks(builder_, movements_, attention, keys, values);
  const RingTasks::Block own{array_of(moved(ring.keys).in[0]), array_of(moved(ring.values).in[0])};
  if (ring.key_gradients < 0) {
    tasks.forward(array_of(step.in[0]), own, {made(step.out[0]), made(step.out[1])});
    return {};
  }
  ASSAY_TRY(key_sums, shift_of(ring.key_gradients));
  ASSAY_TRY(value_sums, shift_of(ring.value_gradients));
  tasks.backward({array_of(step.in[0]), array_of(step.in[1]), array_of(step.in[4]), array_of(step.in[5])}, own,
                 {key_sums, value_sums},
                 {made(step.out[0]), made(moved(ring.key_gradients).out[0]), made(moved(ring.value_gradients).out[0])});
  return {};
}

TaskList BlockTasks::finished() && {
  list_.bytes = builder_.place();
  list_.arrays = builder_.arrays();
  list_.tasks = builder_.tasks();
  list_.groups = movements_.groups();
  list_.moved = movements_.moved;
  list_.stated = movements_.stated;
  return std::move(list_);
}

}  // namespace assay::engine
