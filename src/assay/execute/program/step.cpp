#include "assay/execute/program/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/execute/movement.h"

namespace assay::execute {
StepRunner::StepRunner(const program::Program& program, double tokens)
    : program_(program), tokens_(tokens), devices_(program.mesh), layout_(program) {}

Shards<double> StepRunner::distributed(const Array<double>& global, int tensor) const {
  return distribute(global, layout_.tensor(tensor), program_.mesh);
}

Array<double> StepRunner::collected(int tensor, const ProgramMemory& memory) {
  const Collected<double> all = collect(memory[at(tensor)], layout_.tensor(tensor), program_.mesh);
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

void StepRunner::run(const program::Step& step, const model::Layer* layer, ProgramMemory& memory) {
  for (int id : step.in)
    if (id >= 0 && memory[at(id)].empty())
      throw InternalError("a step reads a tensor that was not computed: " + program::step_text(program_, step));
  if (program::is_movement(step.op)) {
    memory[at(step.out[0])] = step.is(program::Collective::ragged_all_to_all)
                                  ? exchanged(step, memory[at(step.in[0])], memory[at(step.in[1])])
                                  : moved(step, memory[at(step.in[0])]);
    return;
  }
  check_layouts(step);
  if (step.op == program::Op::update) return run_update(step, memory);
  for (int id : step.out)
    if (id >= 0) memory[at(id)].assign(devices_.count(), {});
  Shards<double>* state = state_of(step);
  for (std::size_t d = 0; d < devices_.count(); ++d) {
    const LocalContext context{layout_, layer, memory, d, state ? &(*state)[d] : nullptr, tokens_};
    std::vector<Numbers> made = LocalStep(step, context).run();
    std::size_t next = 0;
    for (int id : step.out) {
      if (id < 0) continue;
      Numbers& result = made.at(next++);
      result.shape = layout_.local_shape(id);
      if (element_count(result.shape) != static_cast<std::int64_t>(result.values.size()))
        throw InternalError("a step's result has the wrong size: " + program::step_text(program_, step));
      memory[at(id)][d] = std::move(result);
    }
  }
}

void StepRunner::run_update(const program::Step& step, ProgramMemory& memory) {
  // The optimizer's part of the weight may be smaller than the stored part.
  Shards<double> mine =
      sliced(program_.mesh, layout_.tensor(step.in[1]), layout_.tensor(step.out[0]), memory[at(step.in[1])]);
  for (std::size_t d = 0; d < mine.size(); ++d)
    for (std::size_t i = 0; i < mine[d].values.size(); ++i)
      mine[d].values[i] -= descent_rate * memory[at(step.in[0])][d].values.at(i);
  memory[at(step.out[0])] = std::move(mine);
}

Shards<double>* StepRunner::state_of(const program::Step& step) {
  const bool is_recurrent =
      step.op == program::Op::scan || step.op == program::Op::convolve || step.op == program::Op::shift;
  if (!states_ || !is_recurrent) return nullptr;
  if (states_->size() == next_state_) states_->emplace_back(devices_.count());
  return &(*states_)[next_state_++];
}

Shards<double> StepRunner::exchanged(const program::Step& step, const Shards<double>& from, const Shards<double>& to) {
  RaggedMove<double> run = run_ragged(devices_, step, from, to, layout_.tensor(step.out[0]));
  count(run.moved.received, run.routed);  // the step states what even routing would move
  return std::move(run.moved.shards);
}

void StepRunner::count(Bytes received, Bytes predicted) {
  moved_ += received;
  predicted_ += predicted;
  byte_error_ = std::max(byte_error_, std::abs((received - predicted).value()) / std::max(1.0, predicted.value()));
}

Shards<double> StepRunner::moved(const program::Step& step, const Shards<double>& from) {
  Moved<double> run = run_movement(
      devices_, step, layout_.tensor(step.in[0]), layout_.tensor(step.out[0]), from,
      step.is(program::Collective::permute) && step.detail >= 0 ? &program_.permutations[at(step.detail)] : nullptr);
  // Scales travel with their values.
  const program::ProgramTensor& tensor = program_.tensor(step.in[0]);
  const double scaled = tensor.bits / facts(tensor.dtype).bits;
  const bool swaps = step.is(program::Collective::permute) && step.detail < 0;  // some devices keep their shard
  const Bytes received = scaled * (swaps ? run.busiest : run.received);
  count(received, step.bytes);
  return std::move(run.shards);
}

}  // namespace assay::execute
