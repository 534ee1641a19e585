#include "assay/engine/program/host_copies.h"

#include <utility>

#include "assay/base/index.h"
#include "assay/engine/program/runner.h"
#include "assay/predict/training/layer_cost.h"
#include "assay/program/lower/lowering.h"

namespace assay::engine {
namespace {

bool is_activation(const program::ProgramTensor& tensor) {
  return tensor.is_kept && !(tensor.is_given && tensor.is_cross_layer) &&
         tensor.tensor_class != program::TensorClass::weight &&
         tensor.tensor_class != program::TensorClass::used_weight;
}

}  // namespace

Bytes HostCopies::bytes_of(int tensor, const Shards& shards) const {
  double elements = 0;
  for (const Array& shard : shards) elements += static_cast<double>(shard.values.size());
  return Bytes(elements * program_.tensor(tensor).bits / 8.0);
}

Bytes HostCopies::bytes_of(const std::map<int, Moments>& moments) {
  double elements = 0;
  for (const auto& [weight, of_weight] : moments)
    for (const Shards* shards : {&of_weight.first, &of_weight.second})
      for (const Array& shard : *shards) elements += static_cast<double>(shard.values.size());
  return Bytes(elements * static_cast<double>(sizeof(double)));
}

HostCopies::Away HostCopies::send(const program::Block& forward, ProgramMemory& memory) {
  Away away;
  const int result = result_of(program_, forward);
  const auto take = [&](int id) {
    if (id < 0 || away.contains(id) || !is_activation(program_.tensor(id))) return;
    Shards& held = memory[at(id)];
    out_ += bytes_of(id, held);
    const bool is_read_on = id == result || program_.tensor(id).is_cross_layer;
    away[id] = is_read_on ? held : std::exchange(held, {});
  };
  for (const program::Step& step : program_.steps_of(forward)) {
    for (const int id : step.in) take(id);
    for (const int id : step.out) take(id);
  }
  return away;
}

void HostCopies::fetch(Away& away, ProgramMemory& memory) {
  for (auto& [id, shards] : away) {
    in_ += bytes_of(id, shards);
    memory[at(id)] = std::move(shards);
  }
  away.clear();
}

void HostCopies::send(const std::map<int, Moments>& moments) { out_ += bytes_of(moments); }
void HostCopies::fetch(const std::map<int, Moments>& moments) { in_ += bytes_of(moments); }

Bytes HostCopies::stated_activations(const program::Block& forward) const {
  return lower::kept_bytes(program_, forward) - training::gathered_bytes(Plain{}, program_, forward);
}

Bytes HostCopies::stated_states(int kind) const {
  double elements = 0;
  for (const program::Block& block : program_.blocks)
    for (const program::Step& step : program_.steps_of(block))
      if (block.kind == kind && step.op == program::Op::update) elements += program_.tensor(step.out[0]).elements;
  return elements * what_.state_bytes;
}

}  // namespace assay::engine
