#include "assay/engine/cuda/cuda_session.h"

#include <cmath>

#include "assay/base/index.h"
#include "assay/engine/cuda/load.h"

namespace assay::engine {

Result<CudaSession> CudaSession::open(const AssayCuda& engine, TaskList list, const AdamW& adam, Transport* transport) {
  CudaSession made(engine, std::move(list), transport);
  const TaskList& own = made.list_;
  AssayCudaJob job{own.arrays.data(),
                   own.tasks.data(),
                   own.starts.data(),
                   static_cast<int>(own.arrays.size()),
                   static_cast<int>(own.tasks.size()),
                   static_cast<int>(own.starts.size()),
                   static_cast<int>(own.runs.size()),
                   own.bytes,
                   own.tokens,
                   own.targets,
                   {adam.rate, adam.first_decay, adam.second_decay, adam.epsilon, adam.weight_decay},
                   nullptr,
                   0,
                   own.channels.data(),
                   static_cast<int>(own.channels.size()),
                   nullptr};
  if (transport) {
    ASSAY_TRY(connection, Connection::open(engine, *transport));
    made.connection_ = std::move(connection);
    made.connection_->join(job, own.groups);
  }
  void* session = nullptr;
  ASSAY_CHECK(told_by_engine(engine.open(&job, &session),
                             "use --engine virtual, or a smaller model: --layers, --hidden, --batch"));
  made.session_.reset(session);
  return made;
}

std::vector<int> CudaSession::own_part(const Array& tokens) const {
  const Extent &sequences = list_.tokens_at[0], &part = list_.tokens_at[1];
  const std::int64_t microbatches = list_.arrays[at(list_.tokens)].elements / (sequences.size * part.size);
  const std::int64_t length = tokens.shape[1];
  const std::int64_t each = tokens.shape[0] / microbatches;  // sequences of a microbatch on all devices
  std::vector<int> out;
  for (std::int64_t m = 0; m < microbatches; ++m)
    for (std::int64_t s = 0; s < sequences.size; ++s) {
      const auto first = tokens.values.begin() + (m * each + sequences.start + s) * length + part.start;
      for (auto token = first; token != first + part.size; ++token) out.push_back(static_cast<int>(*token));
    }
  return out;
}

Result<CudaSession::Timed> CudaSession::step(const Array& tokens, const Array& targets) {
  const std::vector<int> given = own_part(tokens), wanted = own_part(targets);
  AssayCudaStep result{};
  ASSAY_CHECK(told_by_engine(engine_->step(session_.get(), given.data(), wanted.data(), &result, seconds_.data())));
  ++timed_;
  std::vector<double> sums{list_.counts_loss ? result.loss_sum : 0.0, result.squared_gradients, list_.moved.value(),
                           list_.stated.value(), list_.handed.value()};
  double devices = 1;
  if (transport_) {
    devices = static_cast<double>(transport_->count());
    std::vector<double> all(sums.size(), 0.0);
    for (const std::vector<double>& one : gather_values(*transport_, sums))
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
    sums = std::move(all);
  }
  Timed out;
  out.step.loss = sums[0] / static_cast<double>(tokens.values.size());
  out.step.gradient_norm = std::sqrt(sums[1]);
  out.step.moved = Bytes(sums[2] / devices);
  out.step.stated = Bytes(sums[3] / devices);
  out.step.handed = Bytes(sums[4] / devices);
  out.time = Seconds(result.seconds);
  return out;
}

Result<void> CudaSession::set_weights(const NamedArrays& weights) {
  for (const TaskWeight& weight : list_.weights) {
    const auto found = weights.find(weight.name);
    if (found == weights.end()) continue;
    const bool apart = weight.is_shared_out();
    const std::vector<float> values = part_of_array(found->second, weight.weight_at);
    ASSAY_CHECK(
        told_by_engine(engine_->write(session_.get(), apart ? -1 : weight.master, weight.weight, values.data())));
    if (!apart) continue;
    const std::vector<float> kept = part_of_array(found->second, weight.master_at);
    ASSAY_CHECK(told_by_engine(engine_->write(session_.get(), weight.master, -1, kept.data())));
  }
  return {};
}

Result<NamedArrays> CudaSession::weights() const {
  NamedArrays out;
  for (const TaskWeight& weight : list_.weights) {
    if (weight.master < 0) continue;
    std::vector<float> values(at(element_count(weight.shape)));
    ASSAY_CHECK(told_by_engine(engine_->read(session_.get(), weight.master, values.data())));
    out[weight.name] = {weight.shape, {values.begin(), values.end()}};
  }
  return out;
}

std::vector<StepClock> CudaSession::clocks() const {
  std::vector<StepClock> out;
  for (std::size_t i = 0; i < seconds_.size(); ++i) out.push_back({Seconds(seconds_[i]), timed_ * list_.runs[i]});
  return out;
}

void CudaSession::reset_clocks() {
  seconds_.assign(list_.runs.size(), 0.0);
  timed_ = 0;
}

}  // namespace assay::engine
