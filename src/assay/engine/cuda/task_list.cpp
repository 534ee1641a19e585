#include "assay/engine/cuda/task_list.h"

#include <algorithm>
#include <map>

#include "assay/base/index.h"
#include "assay/engine/cuda/block_tasks.h"
#include "assay/engine/cuda/stage_messages.h"
#include "assay/engine/cuda/task_of_step.h"

namespace assay::engine {
namespace {

using MessageKind = StageMessage::Kind;
using Work = clock::PipelineWork;

/// The operations of a stage in the order of its schedule, with what it receives before them and sends after them.
class TaskLister {
 public:
  TaskLister(const program::Program& program, const model::Transformer& model, const TaskPlace& place)
      : program_(program),
        parts_(model, place.pipeline, program.microbatches),
        devices_(program.mesh.devices()),
        stage_(static_cast<std::int64_t>(place.rank) / devices_),
        device_(place.rank % at(devices_)),
        tied_(tied_tensors(program)),
        order_(parts_.order(stage_)),
        messages_(stage_messages(parts_, std::ssize(tied_))),
        channels_(stage_channels(parts_, std::ssize(tied_))),
        tasks_(program, model, device_, at(stage_ * devices_), parts_.held_by(stage_)),
        arriving_(order_.size()),
        arrived_(order_.size() + 1) {
    for (const SentMessage& message : messages_)
      if (message.to == stage_) arriving_[at(message.received_before)].push_back(&message);
  }

  Result<TaskList> run(const std::vector<WeightStart>& starts) {
    ASSAY_CHECK(tasks_.prepare());
    tasks_.add_weights(starts);
    const int given_tokens = given_of("embedding", "Tokens");
    const program::ProgramTensor& tokens = program_.tensor(given_tokens);
    own_tokens_ = elements_of(tokens);
    tasks_.set_tokens(static_cast<double>(tokens.dims[0].size * tokens.dims[1].size * program_.microbatches));
    all_tokens_ = builder().kept(assay_cuda_int32, own_tokens_ * program_.microbatches);
    all_targets_ = builder().kept(assay_cuda_int32, own_tokens_ * program_.microbatches);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      now_ = i;
      receive_due();
      ASSAY_CHECK(order_[i].work == Work::forward ? forward(order_[i]) : backward(order_[i]));
    }
    if (parts_.is_dual()) exchange_sums();
    if (has_sent_) wait_for_sent();
    if (parts_.is_dual()) add_sums();
    ASSAY_CHECK(tasks_.run_updates());
    share_embedding();
    const std::vector<Extent> tokens_at = tasks_.layout().extents(given_tokens, device_);
    TaskList list = std::move(tasks_).finished();
    list.tokens = all_tokens_;
    list.targets = all_targets_;
    list.tokens_at = tokens_at;
    list.counts_loss = tasks_.layout().is_first_holder(given_tokens, device_);
    list.handed = handed_;
    for (const auto& [from, to] : channels_) list.channels.push_back({rank_of(from), rank_of(to)});
    return list;
  }

 private:
  TaskBuilder& builder() { return tasks_.builder(); }
  const ProgramRunner& runner() const { return tasks_.runner(); }
  int rank_of(std::int64_t stage) const { return static_cast<int>(stage * devices_) + static_cast<int>(device_); }
  int given_of(std::string_view block, std::string_view name) const {
    return given(program_, runner().block(block, program::Phase::forward, -1), name);
  }
  LayerArrays& memory_of(std::int64_t microbatch) {
    return memories_.try_emplace(microbatch, tasks_.weights()).first->second;
  }

  int channel(std::int64_t from, std::int64_t to) const {
    return static_cast<int>(std::find(channels_.begin(), channels_.end(), std::pair(from, to)) - channels_.begin());
  }
  void send(int array, std::int64_t to) {
    builder().add(task_of(assay_cuda_send, -1, {array}, {}, {builder().array(array).elements, channel(stage_, to)}));
    has_sent_ = true;
  }
  void receive(int array, std::int64_t from) {
    const std::int64_t elements = builder().array(array).elements;
    builder().add(task_of(assay_cuda_receive, -1, {}, {array}, {elements, channel(from, stage_)}));
    handed_ += Bytes(static_cast<double>(elements * bytes_of_type(builder().array(array).type)));
  }

  /// What other stages send that this operation needs, or that was sent before. Arrays that have arrived there are
  /// free.
  void receive_due() {
    for (const SentMessage* message : arriving_[now_]) {
      const program::ProgramTensor& tensor = program_.tensor(tensor_of(message->what));
      const int array = builder().added(type_of(tensor), elements_of(tensor));
      receive(array, message->from);
      passed_[message->what] = array;
    }
    for (const int array : arrived_[now_]) builder().keep(array);
  }
  /// The residual stream between parts of the model, its gradient, or a gradient of the head.
  int tensor_of(const StageMessage& message) const {
    if (message.kind == MessageKind::tied_gradients) return tied_[at(message.part)];
    if (message.kind == MessageKind::activations)
      return given(program_, runner().layer_block(parts_[message.part].first, program::Phase::forward), "In");
    const std::int64_t layer = parts_[message.part].last - 1;
    const int result = result_of(program_, runner().layer_block(layer, program::Phase::forward));
    return given(program_, runner().layer_block(layer, program::Phase::backward), program_.tensor(result).name, true);
  }
  /// Gives an array to the stage that needs it, which may be this one.
  void pass(const StageMessage& what, std::int64_t to, int array) {
    if (to == stage_) {
      passed_[what] = array;
      return;
    }
    send(array, to);
    for (const SentMessage& message : messages_)
      if (message.from == stage_ && message.what == what) arrived_[at(message.arrived_before)].push_back(array);
  }
  int taken(const StageMessage& what) {
    const auto found = passed_.find(what);
    if (found == passed_.end()) throw InternalError("a stage waits for what was never sent");
    const int array = found->second;
    passed_.erase(found);
    return array;
  }

  Result<void> forward(const clock::PipelineOperation& operation) {
    const std::int64_t m = operation.microbatch, direction = parts_.direction(operation);
    const std::int64_t here = parts_.part_of(stage_, operation.chunk);
    LayerArrays& memory = memory_of(m);
    const auto part_of = [&](int all) { return builder().part_of(all, m * own_tokens_, own_tokens_); };
    int flowing = -1;
    if (here == 0) {
      const program::Block& embedding = runner().block("embedding", program::Phase::forward, -1);
      memory[0][at(given_of("embedding", "Tokens"))] = part_of(all_tokens_);
      ASSAY_CHECK(tasks_.run(embedding, -1, memory));
      flowing = memory[0][at(embedded_by(program_, embedding))];
    } else {
      flowing = taken({MessageKind::activations, here, m});
    }
    for (std::int64_t l = parts_[here].first; l < parts_[here].last; ++l) {
      const program::Block& block = runner().layer_block(l, program::Phase::forward);
      if (const int in = given(program_, block, "In"); in >= 0) memory[at(l + 1)][at(in)] = flowing;
      ASSAY_CHECK(tasks_.run(block, l, memory));
      flowing = memory[at(l + 1)][at(result_of(program_, block))];
    }
    if (here + 1 < parts_.count()) {
      pass({MessageKind::activations, here + 1, m}, parts_.stage_of(here + 1, direction), flowing);
      return {};
    }
    memory[0][at(given_of("head", "In"))] = flowing;
    memory[0][at(given_of("head", "Targets"))] = part_of(all_targets_);
    return tasks_.run(runner().block("head", program::Phase::forward, -1), -1, memory);
  }

  Result<void> backward(const clock::PipelineOperation& operation) {
    const std::int64_t m = operation.microbatch, direction = parts_.direction(operation);
    const std::int64_t here = parts_.part_of(stage_, operation.chunk);
    LayerArrays& memory = memory_of(m);
    if (operation.work == Work::backward_weight) return layers_backward(here, memory, Gradients::of_weights);
    if (here + 1 == parts_.count()) {
      const program::Block& head = runner().block("head", program::Phase::backward, -1);
      ASSAY_CHECK(tasks_.run(head, -1, memory));
      flowing_ = memory[0][at(input_gradient(program_, head))];
      for (std::int64_t i = 0; i < std::ssize(tied_); ++i)
        pass({MessageKind::tied_gradients, i, m}, parts_.stage_of(0, direction), memory[0][at(tied_[at(i)])]);
    } else {
      flowing_ = taken({MessageKind::activation_gradients, here, m});
    }
    ASSAY_CHECK(layers_backward(here, memory, operation.work == Work::backward ? Gradients::all : Gradients::of_input));
    if (here > 0) {
      pass({MessageKind::activation_gradients, here - 1, m}, parts_.stage_of(here - 1, direction), flowing_);
      return {};
    }
    for (std::int64_t i = 0; i < std::ssize(tied_); ++i)
      memory[0][at(tied_[at(i)])] = taken({MessageKind::tied_gradients, i, m});
    const program::Block& rows = runner().block("embedding", program::Phase::backward, -1);
    if (rows.first == rows.last) return {};  // nothing in it is trained
    const int embedded = embedded_by(program_, runner().block("embedding", program::Phase::forward, -1));
    memory[0][at(given(program_, rows, program_.tensor(embedded).name, true))] = flowing_;
    return tasks_.run(rows, -1, memory);
  }

  Result<void> layers_backward(std::int64_t part, LayerArrays& memory, Gradients which) {
    for (std::int64_t l = parts_[part].last; l-- > parts_[part].first;) {
      const program::Block& block = runner().layer_block(l, program::Phase::backward);
      TensorArrays& arrays = memory[at(l + 1)];
      if (which != Gradients::of_weights) {
        const int result = result_of(program_, runner().layer_block(l, program::Phase::forward));
        arrays[at(given(program_, block, program_.tensor(result).name, true))] = flowing_;
      }
      ASSAY_CHECK(tasks_.run(block, l, memory, which));
      flowing_ = arrays[at(input_gradient(program_, block))];
    }
    return {};
  }

  /// The gradients of the other copy of the model that dualpipe trains.
  void exchange_sums() {
    const std::int64_t other = parts_.shape().stages - 1 - stage_;
    for (const TensorArrays& layer : tasks_.sums())
      for (const int sum : layer)
        if (sum >= 0) {
          send(sum, other);
          copies_.push_back({sum, -1});
          arrived_.back().push_back(sum);
        }
    for (auto& [sum, copy] : copies_) {
      copy = builder().added(builder().array(sum).type, builder().array(sum).elements);
      receive(copy, other);
    }
  }
  void add_sums() {
    for (const auto& [sum, copy] : copies_) builder().add_sum(-1, sum, copy, sum);
  }
  void wait_for_sent() {
    builder().add(task_of(assay_cuda_arrived, -1, {}, {}));
    for (const int array : arrived_.back()) builder().keep(array);
  }

  /// A head that uses the embedding's weight gets what the first stage made of it.
  void share_embedding() {
    const std::int64_t from = parts_.stage_of(0, 0), to = parts_.stage_of(parts_.count() - 1, 0);
    if (tied_.empty() || parts_.is_dual() || from == to || (stage_ != from && stage_ != to)) return;
    for (const int id : trained_weights(program_, "embedding")) {
      const int weight = tasks_.weights()[0][at(id)];
      if (weight < 0) continue;
      if (stage_ == from)
        send(weight, to);
      else
        receive(weight, from);
    }
  }

  const program::Program& program_;
  StageParts parts_;
  std::int64_t devices_, stage_;
  std::size_t device_;
  std::vector<int> tied_;
  clock::StageOrder order_;
  std::vector<SentMessage> messages_;
  std::vector<std::pair<std::int64_t, std::int64_t>> channels_;
  BlockTasks tasks_;
  std::vector<std::vector<const SentMessage*>> arriving_;  ///< by operation of this stage
  std::vector<std::vector<int>> arrived_;                  ///< arrays that were sent, by operation
  std::map<std::int64_t, LayerArrays> memories_;           ///< by microbatch
  std::map<StageMessage, int> passed_;
  std::vector<std::pair<int, int>> copies_;  ///< sums of gradients, and those of the other copy of the model
  std::size_t now_ = 0;
  std::int64_t own_tokens_ = 0;
  int all_tokens_ = -1, all_targets_ = -1, flowing_ = -1;
  bool has_sent_ = false;
  Bytes handed_;
};

}  // namespace

bool TaskWeight::is_shared_out() const {
  for (std::size_t d = 0; d < weight_at.size(); ++d)
    if (weight_at[d].size != master_at[d].size) return true;
  return false;
}

std::vector<float> part_of_array(const Array& whole, const std::vector<Extent>& at) {
  Shape from, sizes;
  for (const Extent& extent : at) {
    from.push_back(extent.start);
    sizes.push_back(extent.size);
  }
  Array part = zeros(sizes);
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
                           const TaskPlace& place) {
  if (model.encoder) return fail("--engine cuda", "models with an encoder do not run on a GPU yet", cuda_remedy);
  return TaskLister(program, model, place).run(initial_starts(program, model, seed));
}

}  // namespace assay::engine
