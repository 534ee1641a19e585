#include "assay/engine/program/step.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/engine/movement.h"

namespace assay::engine {
namespace {

const model::Definition usual_definition;

/// Whether other steps need not wait for a movement.
bool is_hidden(const program::Step& step) {
  return program::is_collective(step.op) && step.urgency != program::Urgency::critical &&
         !step.is(program::Collective::ragged_all_to_all) && !step.is(program::Collective::permute);
}

}  // namespace

std::string_view work_kind(const program::Step& step) {
  if (program::is_collective(step.op)) return "collectives";
  if (step.op == program::Op::update) return "update";
  if (step.op == program::Op::product) return "products";
  if (step.op == program::Op::attention || step.op == program::Op::attention_grad) return "attention";
  return "other kernels";
}

StepRunner::StepRunner(const program::Program& program, double tokens, Placement placement, Overlap overlap)
    : program_(program),
      tokens_(tokens),
      definition_(&usual_definition),
      devices_(program.mesh, placement),
      layout_(program),
      clocks_(program.steps.size()),
      records_(placement.transport != nullptr),
      overlap_(overlap),
      background_(placement.transport && overlap != Overlap::none
                      ? std::make_unique<Background>(program.mesh, placement)
                      : nullptr) {}

bool StepRunner::travels(const program::Step& step) const {
  if (overlap_ == Overlap::hidden) return is_hidden(step);
  return overlap_ == Overlap::all && program::is_collective(step.op) &&
         !step.is(program::Collective::ragged_all_to_all);
}

const program::Permutation* StepRunner::permutation_of(const program::Step& step) const {
  return step.is(program::Collective::permute) && step.detail >= 0 ? &program_.permutations[at(step.detail)] : nullptr;
}

void StepRunner::record(const program::Step& step, Activity::Kind kind, Seconds start, Seconds end, Seconds busy) {
  if (records_) activities_.push_back({static_cast<int>(&step - program_.steps.data()), kind, start, end, busy});
}

Shards StepRunner::distributed(const Array& global, int tensor) const {
  Shards shards = distribute(global, layout_.tensor(tensor), program_.mesh);
  for (std::size_t d = 0; d < shards.size(); ++d)
    if (!devices_.is_here(d)) shards[d] = {};
  return shards;
}

Array StepRunner::collected(int tensor, const ProgramMemory& memory) {
  const Collected all = collect(devices_.gathered(memory[at(tensor)]), layout_.tensor(tensor), program_.mesh);
  disagreement_ = std::max(disagreement_, all.disagreement);
  return all.array;
}

void StepRunner::check_layouts(const program::Step& step) const {
  const auto same = [&](int a, int b) {
    if (a < 0 || b < 0 || program_.tensor(a).sharding == program_.tensor(b).sharding) return;
    throw InternalError("operands have different shardings: " + program::step_text(program_, step));
  };
  switch (step.op) {
    case program::Op::add:
      for (int id : step.in)
        if (id >= 0 && program_.tensor(id).rank == program_.tensor(step.out[0]).rank) same(id, step.out[0]);
      break;
    case program::Op::activate:
      same(step.in[1], step.out[0]);
      [[fallthrough]];
    case program::Op::rotate:
    case program::Op::rotate_grad:
      same(step.in[0], step.out[0]);
      break;
    case program::Op::product:
      same(step.in[2], step.out[0]);
      break;
    case program::Op::activate_grad:
      for (std::size_t i = 0; i < 3; ++i) same(step.in[i], step.out[0]);
      break;
    default:
      break;
  }
}

void StepRunner::start(const program::Step& step, ProgramMemory& memory) {
  const Background::Key key{&memory, step.out[0]};
  const program::Tensor &before = layout_.tensor(step.in[0]), &after = layout_.tensor(step.out[0]);
  travelling_[key] = &memory;
  background_->start(
      key, static_cast<int>(&step - program_.steps.data()),
      [&step, &before, &after, permutation = permutation_of(step), from = memory[at(step.in[0])]](
          VirtualDevices& devices) { return run_movement(devices, step, before, after, from, permutation); });
}

void StepRunner::start_ready(const program::Step& step, ProgramMemory& memory) {
  if (background_ && travels(step) && !memory[at(step.in[0])].empty() && memory[at(step.out[0])].empty() &&
      !background_->has({&memory, step.out[0]}))
    start(step, memory);
}

void StepRunner::start_ahead(const program::Step& step, ProgramMemory& memory) {
  if (step.urgency != program::Urgency::ahead || !travels(step) || memory[at(step.in[0])].empty()) return;
  start(step, memory);
}

void StepRunner::take(ProgramMemory& memory, int tensor) {
  const Background::Key key{&memory, tensor};
  const program::Step& step = program_.steps[at(background_->started().at(key))];
  const Seconds start = clock_time();
  Background::Done done = background_->take(key);
  const Seconds end = clock_time();
  waited_time_ += end - start;
  background_time_ += done.end - done.start;
  record(step, Activity::Kind::travels, done.start, done.end, done.busy);
  if (end > done.end && start < done.end) record(step, Activity::Kind::waits, start, end);
  travelling_.erase(key);
  StepClock& clock = clocks_[static_cast<std::size_t>(&step - program_.steps.data())];
  clock.time += done.end - done.start;
  ++clock.runs;
  memory[at(tensor)] = counted(step, std::move(done.moved));
}

void StepRunner::take_inputs(const program::Step& step, ProgramMemory& memory) {
  for (int id : step.in)
    if (id >= 0 && background_ && background_->has({&memory, id})) take(memory, id);
}

void StepRunner::settle() {
  while (!travelling_.empty()) take(*travelling_.begin()->second, travelling_.begin()->first.second);
}

void StepRunner::run(const program::Step& step, const model::Layer* layer, ProgramMemory& memory) {
  take_inputs(step, memory);
  if (background_ && travels(step)) {
    if (!background_->has({&memory, step.out[0]})) start(step, memory);
    return;
  }
  for (int id : step.in)
    if (id >= 0 && memory[at(id)].empty())
      throw InternalError("a step reads a tensor that was not computed: " + program::step_text(program_, step));
  const Seconds start = clock_time(), had = core_time();
  if (program::is_movement(step.op)) {
    memory[at(step.out[0])] = step.is(program::Collective::ragged_all_to_all)
                                  ? exchanged(step, memory[at(step.in[0])], memory[at(step.in[1])])
                                  : moved(step, memory[at(step.in[0])]);
  } else {
    check_layouts(step);
    if (step.op == program::Op::update)
      run_update(step, memory);
    else
      run_on_devices(step, layer, memory);
  }
  const program::Step* first = program_.steps.data();
  if (std::less<>()(&step, first) || !std::less<>()(&step, first + clocks_.size())) return;  // not one of the program's
  StepClock& clock = clocks_[static_cast<std::size_t>(&step - first)];
  const Seconds end = clock_time();
  clock.time += end - start;
  ++clock.runs;
  record(step, program::is_collective(step.op) ? Activity::Kind::moves : Activity::Kind::computes, start, end,
         core_time() - had);
}

void StepRunner::run_on_devices(const program::Step& step, const model::Layer* layer, ProgramMemory& memory) {
  for (int id : step.out)
    if (id >= 0) memory[at(id)].assign(devices_.count(), {});
  Shards* state = state_of(step);
  for (std::size_t d : devices_.here()) {
    const LocalContext context{layout_, layer, memory, d, state ? &(*state)[d] : nullptr, tokens_, *definition_};
    std::vector<Array> made = run_local(step, context);
    std::size_t next = 0;
    for (int id : step.out) {
      if (id < 0) continue;
      Array& result = made.at(next++);
      result.shape = layout_.local_shape(id);
      if (element_count(result.shape) != static_cast<std::int64_t>(result.values.size()))
        throw InternalError("a step's result has the wrong size: " + program::step_text(program_, step));
      memory[at(id)][d] = std::move(result);
    }
  }
}

void StepRunner::run_update(const program::Step& step, ProgramMemory& memory) {
  // The optimizer's part of the weight may be smaller than the stored part.
  Shards mine = sliced(devices_, layout_.tensor(step.in[1]), layout_.tensor(step.out[0]), memory[at(step.in[1])]);
  Moments* moments = adam_ ? &(*moments_)[step.in[1]] : nullptr;
  if (moments && moments->first.empty()) {
    moments->first.resize(mine.size());
    for (std::size_t d : devices_.here()) moments->first[d] = zeros(mine[d].shape);
    moments->second = moments->first;
  }
  for (std::size_t d : devices_.here()) {
    const Array& gradient = memory[at(step.in[0])][d];
    if (gradient.values.size() != mine[d].values.size()) throw InternalError("a gradient is not of its weight");
    if (moments)
      adam_step(*adam_, update_number_, program::is_matrix(program_.tensor(step.in[1])), gradient, mine[d],
                moments->first[d], moments->second[d]);
    else
      for (std::size_t i = 0; i < mine[d].values.size(); ++i) mine[d].values[i] -= descent_rate * gradient.values[i];
    const bool counts = layout_.is_first_holder(step.in[0], d);
    for (std::size_t i = 0; counts && i < gradient.values.size(); ++i)
      squared_gradients_ += gradient.values[i] * gradient.values[i];
  }
  memory[at(step.out[0])] = std::move(mine);
}

Shards* StepRunner::state_of(const program::Step& step) {
  const bool is_recurrent =
      step.op == program::Op::scan || step.op == program::Op::convolve || step.op == program::Op::shift;
  if (!states_ || !is_recurrent) return nullptr;
  if (states_->size() == next_state_) states_->emplace_back(devices_.count());
  return &(*states_)[next_state_++];
}

Shards StepRunner::exchanged(const program::Step& step, const Shards& from, const Shards& to) {
  RaggedMove run = run_ragged(devices_, step, from, to, layout_.tensor(step.out[0]));
  count(run.moved.received, run.routed);  // the step states what even routing would move
  return std::move(run.moved.shards);
}

void StepRunner::count(Bytes received, Bytes predicted) {
  moved_ += received;
  predicted_ += predicted;
  byte_error_ = std::max(byte_error_, std::abs((received - predicted).value()) / std::max(1.0, predicted.value()));
}

Shards StepRunner::moved(const program::Step& step, const Shards& from) {
  Moved run =
      run_movement(devices_, step, layout_.tensor(step.in[0]), layout_.tensor(step.out[0]), from, permutation_of(step));
  return counted(step, std::move(run));
}

Shards StepRunner::counted(const program::Step& step, Moved run) {
  // Scales travel with their values.
  const program::ProgramTensor& tensor = program_.tensor(step.in[0]);
  const double scaled = tensor.bits / facts(tensor.dtype).bits;
  const bool swaps = step.is(program::Collective::permute) && step.detail < 0;  // some devices keep their shard
  const Bytes received = scaled * (swaps ? run.busiest : run.received);
  count(received, step.bytes);
  return std::move(run.shards);
}

}  // namespace assay::engine
