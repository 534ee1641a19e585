#include "assay/execute/cuda/cuda_session.h"

#include <cmath>

#include "assay/base/index.h"

namespace assay::execute {
namespace {

/// What the engine said.
Result<void> told(const char* why, const char* hint) {
  if (!why) return {};
  return fail("--engine cuda", why, hint, Error::Kind::missing);
}

std::vector<int> whole_numbers(const Array<double>& values) { return {values.values.begin(), values.values.end()}; }

}  // namespace

Result<CudaSession> CudaSession::open(const AssayCuda& engine, TaskList list, const AdamW& adam) {
  const AssayCudaJob job{list.arrays.data(),
                         list.tasks.data(),
                         list.starts.data(),
                         static_cast<int>(list.arrays.size()),
                         static_cast<int>(list.tasks.size()),
                         static_cast<int>(list.starts.size()),
                         static_cast<int>(list.runs.size()),
                         list.bytes,
                         list.tokens,
                         list.targets,
                         {adam.rate, adam.first_decay, adam.second_decay, adam.epsilon, adam.weight_decay}};
  void* session = nullptr;
  ASSAY_CHECK(
      told(engine.open(&job, &session), "use --engine virtual, or a smaller model: --layers, --hidden, --batch"));
  return CudaSession(engine, std::move(list), Owned(session, engine.close));
}

Result<CudaSession::Timed> CudaSession::step(const Array<double>& tokens, const Array<double>& targets) {
  const std::vector<int> given = whole_numbers(tokens), wanted = whole_numbers(targets);
  AssayCudaStep result{};
  ASSAY_CHECK(told(engine_->step(session_.get(), given.data(), wanted.data(), &result, seconds_.data()), ""));
  ++timed_;
  Timed out;
  out.step.loss = result.loss_sum / static_cast<double>(given.size());
  out.step.gradient_norm = std::sqrt(result.squared_gradients);
  out.seconds = result.seconds;
  return out;
}

Result<void> CudaSession::set_weights(const NamedArrays& weights) {
  for (const TaskWeight& weight : list_.weights) {
    const auto found = weights.find(weight.name);
    if (found == weights.end()) continue;
    const std::vector<float> values(found->second.values.begin(), found->second.values.end());
    ASSAY_CHECK(told(engine_->write(session_.get(), weight.master, weight.weight, values.data()), ""));
  }
  return {};
}

Result<NamedArrays> CudaSession::weights() const {
  NamedArrays out;
  for (const TaskWeight& weight : list_.weights) {
    std::vector<float> values(at(element_count(weight.shape)));
    ASSAY_CHECK(told(engine_->read(session_.get(), weight.master, values.data()), ""));
    out[weight.name] = {weight.shape, {values.begin(), values.end()}};
  }
  return out;
}

std::vector<StepClock> CudaSession::clocks() const {
  std::vector<StepClock> out;
  for (std::size_t i = 0; i < seconds_.size(); ++i) out.push_back({seconds_[i], timed_ * list_.runs[i]});
  return out;
}

void CudaSession::reset_clocks() {
  seconds_.assign(list_.runs.size(), 0.0);
  timed_ = 0;
}

}  // namespace assay::execute
