#include "assay/predict/serving/fullest_moment.h"

#include "assay/base/index.h"

namespace assay::serving {
namespace {

bool counts_at_peak(const program::ProgramTensor& tensor, bool gathered) {
  const bool passed = tensor.tensor_class == program::TensorClass::residual;  // made by the block before
  if ((tensor.is_given && !passed) || (tensor.tensor_class == program::TensorClass::used_weight) != gathered)
    return false;
  const bool cache =
      tensor.tensor_class == program::TensorClass::key_value && tensor.find(model::LogicalDim::context) >= 0;
  return !cache;
}

}  // namespace

Bytes FullestMoment::operator()(const program::Block& block, bool gathered) {
  for (std::int32_t i = block.first; i < block.last; ++i)
    for (int id : program_.steps[at(i)].in)
      if (id >= 0) last_[at(id)] = i;
  Bytes held, most;
  const auto begin = [&](int id) {
    if (id < 0 || alive_[at(id)] > Bytes() || !counts_at_peak(program_.tensor(id), gathered)) return;
    held += alive_[at(id)] = program::local_bytes(program_, program_.tensor(id));
  };
  const auto end = [&](int id) {
    held -= alive_[at(id)];
    alive_[at(id)] = Bytes();
  };
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const program::Step& step = program_.steps[at(i)];
    const auto end_inputs = [&] {
      for (int id : step.in)
        if (id >= 0 && last_[at(id)] == i) end(id);
    };
    if (!gathered)
      for (int id : step.in) begin(id);        // inputs that earlier blocks made
    if (step.bytes == Bytes(0)) end_inputs();  // another view of the same memory
    for (int id : step.out) begin(id);
    if (held > most) {
      most = held;
      if (at_peak_) keep_alive();
    }
    end_inputs();
    for (int id : step.out)  // what only a backward pass would read
      if (id >= 0 && last_[at(id)] == never && program_.tensor(id).tensor_class != program::TensorClass::residual)
        end(id);
  }
  for (std::int32_t i = block.first; i < block.last; ++i) {
    for (int id : program_.steps[at(i)].in)
      if (id >= 0) {
        last_[at(id)] = never;
        alive_[at(id)] = Bytes();
      }
    for (int id : program_.steps[at(i)].out)
      if (id >= 0) alive_[at(id)] = Bytes();
  }
  return most;
}

void FullestMoment::keep_alive() {
  at_peak_->clear();
  for (std::size_t id = 0; id < alive_.size(); ++id)
    if (alive_[id] > Bytes()) at_peak_->push_back(static_cast<int>(id));
}

}  // namespace assay::serving
