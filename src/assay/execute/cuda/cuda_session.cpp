#include "assay/execute/cuda/cuda_session.h"

#include <cmath>
#include <cstring>

#include "assay/base/index.h"
#include "assay/execute/cuda/load.h"
#include "assay/execute/ranks/mpi.h"

namespace assay::execute {
namespace {

/// The id that rank 0 made, in all processes.
Result<std::string> shared_id(const AssayCuda& engine, Transport& transport) {
  std::string id(ASSAY_CUDA_ID_BYTES, '\0');
  if (transport.rank() > 0) {
    const Message got = transport.receive(0, control_tag);
    if (got.size() != id.size()) return fail("--engine cuda", "rank 0 could not start NCCL", "see its error");
    std::memcpy(id.data(), got.data(), id.size());
    return id;
  }
  const char* why = engine.unique_id(id.data());
  Message sent(why ? 0 : id.size());
  std::memcpy(sent.data(), id.data(), sent.size());
  for (std::size_t to = 1; to < transport.count(); ++to) transport.send(to, control_tag, sent);
  ASSAY_CHECK(told_by_engine(why, "install NCCL (Debian: libnccl2), or run on one GPU"));
  return id;
}

/// The part of an array that a device has.
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

}  // namespace

Result<CudaSession> CudaSession::open(const AssayCuda& engine, TaskList list, const AdamW& adam, Transport* transport) {
  CudaSession made(engine, std::move(list), transport);
  const TaskList& own = made.list_;
  std::vector<AssayCudaGroup> groups;
  for (std::size_t i = 0; i < own.groups.size(); ++i)
    groups.push_back({own.groups[i].data(), static_cast<int>(own.groups[i].size()), own.places[i]});
  AssayCudaRanks ranks{};
  std::string id;
  if (transport) {
    const LocalRank here = local_rank(*transport);
    made.exchange_ = std::make_unique<HostExchange>(*transport);
    ranks = {static_cast<int>(transport->rank()),
             static_cast<int>(transport->count()),
             static_cast<int>(here.rank),
             static_cast<int>(here.count),
             nullptr,
             made.exchange_.get(),
             &HostExchange::call};
    ASSAY_TRY(shared, shared_id(engine, *transport));
    id = shared;
    ranks.id = id.data();
  }
  const AssayCudaJob job{own.arrays.data(),
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
                         groups.data(),
                         static_cast<int>(groups.size()),
                         transport ? &ranks : nullptr};
  void* session = nullptr;
  ASSAY_CHECK(told_by_engine(engine.open(&job, &session),
                             "use --engine virtual, or a smaller model: --layers, --hidden, --batch"));
  made.session_.reset(session);
  return made;
}

std::vector<int> CudaSession::own_part(const Array<double>& tokens) const {
  const std::int64_t length = tokens.shape[1];
  const std::int64_t mine = std::ssize(list_.arrays) > list_.tokens ? list_.arrays[at(list_.tokens)].elements : 0;
  const std::int64_t microbatches = mine / (list_.sequences.size * length);
  const std::int64_t each = tokens.shape[0] / microbatches;  // sequences of a microbatch on all devices
  std::vector<int> out;
  for (std::int64_t m = 0; m < microbatches; ++m) {
    const auto first = tokens.values.begin() + (m * each + list_.sequences.start) * length;
    for (auto token = first; token != first + list_.sequences.size * length; ++token)
      out.push_back(static_cast<int>(*token));
  }
  return out;
}

Result<CudaSession::Timed> CudaSession::step(const Array<double>& tokens, const Array<double>& targets) {
  const std::vector<int> given = own_part(tokens), wanted = own_part(targets);
  AssayCudaStep result{};
  ASSAY_CHECK(told_by_engine(engine_->step(session_.get(), given.data(), wanted.data(), &result, seconds_.data())));
  ++timed_;
  double losses = list_.counts_loss ? result.loss_sum : 0.0, squares = result.squared_gradients;
  if (transport_) {
    const auto all = gather_values(*transport_, {losses, squares});
    losses = squares = 0;
    for (const std::vector<double>& one : all) {
      losses += one[0];
      squares += one[1];
    }
  }
  Timed out;
  out.step.loss = losses / static_cast<double>(tokens.values.size());
  out.step.gradient_norm = std::sqrt(squares);
  out.step.moved = list_.moved;
  out.step.stated = list_.stated;
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

}  // namespace assay::execute
