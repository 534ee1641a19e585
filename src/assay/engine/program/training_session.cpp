#include "assay/engine/program/training_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/model/layer_parts.h"

namespace assay::engine {
namespace {

using Work = clock::PipelineWork;

/// Kinds of messages between stages.
enum HandedOver : int {
  activations,
  activation_gradients,
  tied_gradients,
  copied_gradients,
  new_weights,
  message_kinds
};

double tokens_of(const program::Program& program) {
  for (const program::ProgramTensor& tensor : program.tensors)
    if (tensor.name == "Tokens")
      return static_cast<double>(tensor.dims[0].size * tensor.dims[1].size * program.microbatches);
  throw InternalError("a program has no tokens");
}

/// Rows [start, start + count) of the first dimension.
Array rows_of(const Array& all, std::int64_t number, std::int64_t microbatches) {
  const std::int64_t count = all.shape[0] / microbatches;
  return part(all, 0, number * count, count);
}

}  // namespace

Result<void> check_session(const model::Transformer& model, const clock::PipelineShape& pipeline) {
  if (pipeline.stages == 1) return {};
  ASSAY_CHECK(clock::check_pipeline(pipeline));
  std::string_view what = model.encoder ? "an encoder" : model.token_input_vocabulary > 0 ? "token inputs" : "";
  for (const model::Layer& layer : model.decoder.kinds) {
    if (layer.shared) what = "layers that share weights";
    if (layer.attention && layer.attention->shares_kv) what = "layers that share keys";
    if (layer.state_space && layer.state_space->value_rank > 0) what = "layers that share values";
    if (model::is_aside(layer)) what = "layers that also read the embedding";
  }
  if (!what.empty())
    return fail("--pp", fmt::format("{} has {}, which stages would have to exchange as well", model.id, what),
                "run it with --pp 1");
  const std::int64_t parts = clock::model_parts(pipeline);
  if (parts > model.decoder.layers())
    return fail("--pp", fmt::format("{} layers cannot be split into {} parts", model.decoder.layers(), parts),
                "give more --layers, or fewer stages");
  return {};
}

TrainingSession::TrainingSession(const program::Program& program, const model::Transformer& model,
                                 const NamedArrays& weights, const SessionOptions& options)
    : program_(program),
      model_(model),
      parts_(model, options.pipeline, program.microbatches),
      adam_(options.adam),
      transport_(options.transport),
      overlap_(options.overlap),
      own_sums_(summed_tensors(program, false)),
      shared_sums_(summed_tensors(program, true)),
      tied_(tied_tensors(program)),
      handover_(at(program.mesh.devices()), options.transport),
      copies_(program, options.offloading) {
  for (std::int64_t stage = 0; stage < shape().stages; ++stage)
    if (!transport_ || static_cast<std::int64_t>(transport_->rank()) / program.mesh.devices() == stage)
      add_stage(stage, weights);
}

void TrainingSession::add_stage(std::int64_t number, const NamedArrays& weights) {
  const Placement placement{transport_, at(number * program_.mesh.devices())};
  Stage& stage =
      stages_.emplace_back(Stage{number, ProgramRunner(program_, model_, tokens_of(program_), placement, overlap_)});
  const std::int64_t layers = stage.runner.layers();
  stage.held = parts_.held_by(number);
  stage.order = parts_.order(number);
  stage.moments.resize(at(layers + 1));
  stage.weights.push_back(stage.held.embeds || stage.held.ends ? stage.runner.memory(-1, weights) : ProgramMemory());
  for (std::int64_t l = 0; l < layers; ++l)
    stage.weights.push_back(stage.held.layers[at(l)] ? stage.runner.memory(l, weights) : ProgramMemory());
}

Handover::Way TrainingSession::way(std::int64_t from, std::int64_t to, std::int64_t part_number,
                                   std::int64_t microbatch, int kind) const {
  const std::int64_t number = (part_number * shape().microbatches + microbatch) * message_kinds + kind;
  return {from, to, static_cast<int>(number)};
}

bool TrainingSession::advance(Stage& stage, const Batch& batch) {
  if (stage.next == stage.order.size()) return false;
  const clock::PipelineOperation& operation = stage.order[stage.next];
  const std::int64_t here = parts_.part_of(stage.number, operation.chunk), direction = parts_.direction(operation);
  const bool is_forward = operation.work == Work::forward;
  const bool is_backward = operation.work == Work::backward || operation.work == Work::backward_input;
  if (is_forward && here > 0 &&
      !handover_.has(way(parts_.stage_of(here - 1, direction), stage.number, here, operation.microbatch, activations)))
    return false;
  if (is_backward && here + 1 < parts_.count() &&
      !handover_.has(
          way(parts_.stage_of(here + 1, direction), stage.number, here, operation.microbatch, activation_gradients)))
    return false;
  ++stage.next;
  if (is_forward)
    run_forward(stage, operation, batch);
  else
    run_backward(stage, operation);
  return true;
}

void TrainingSession::run_forward(Stage& stage, const clock::PipelineOperation& operation, const Batch& batch) {
  const std::int64_t m = operation.microbatch, direction = parts_.direction(operation);
  const std::int64_t here = parts_.part_of(stage.number, operation.chunk);
  auto [found, is_new] = stage.passes.try_emplace(m, stage.runner, program_, stage.weights, &copies_);
  TrainingPass& pass = found->second;
  if (shape().stages == 1) {  // backwards, too
    loss_ += pass.run(rows_of(batch.tokens, m, shape().microbatches), rows_of(batch.targets, m, shape().microbatches));
    return;
  }
  const Shards x = here == 0
                       ? pass.embedded(rows_of(batch.tokens, m, shape().microbatches))
                       : handover_.take(way(parts_.stage_of(here - 1, direction), stage.number, here, m, activations));
  const Shards y = pass.forward(parts_[here].first, parts_[here].last, x);
  if (here + 1 == parts_.count())
    loss_ += pass.loss(y, rows_of(batch.targets, m, shape().microbatches));
  else
    handover_.send(way(stage.number, parts_.stage_of(here + 1, direction), here + 1, m, activations), y);
}

void TrainingSession::run_backward(Stage& stage, const clock::PipelineOperation& operation) {
  const std::int64_t m = operation.microbatch, direction = parts_.direction(operation);
  const std::int64_t here = parts_.part_of(stage.number, operation.chunk), parts = parts_.count();
  TrainingPass& pass = stage.passes.at(m);
  const auto [first, last] = parts_[here];
  if (shape().stages == 1) return finish_part(stage, m);
  if (operation.work == Work::backward_weight) {
    pass.backward(first, last, {}, Gradients::of_weights);
    return finish_part(stage, m);
  }
  // The gradients of embedding and head are small parts of a stage: they are never apart.
  const bool ties = parts_.stage_of(0, direction) != parts_.stage_of(parts - 1, direction);
  Shards arriving;
  if (here + 1 == parts) {
    arriving = pass.head_gradient();
    if (ties && !tied_.empty()) stage.runner.step().settle();
    for (std::size_t i = 0; ties && i < tied_.size(); ++i)
      handover_.send(way(stage.number, parts_.stage_of(0, direction), static_cast<std::int64_t>(i), m, tied_gradients),
                     pass.memory(-1)[at(tied_[i])]);
  } else {
    arriving = handover_.take(way(parts_.stage_of(here + 1, direction), stage.number, here, m, activation_gradients));
  }
  const Gradients which = operation.work == Work::backward ? Gradients::all : Gradients::of_input;
  const Shards dx = pass.backward(first, last, arriving, which);
  if (here == 0) {
    for (std::size_t i = 0; ties && i < tied_.size(); ++i)
      pass.memory(-1)[at(tied_[i])] = handover_.take(
          way(parts_.stage_of(parts - 1, direction), stage.number, static_cast<std::int64_t>(i), m, tied_gradients));
    pass.embedding_gradient(dx);
  } else {
    handover_.send(way(stage.number, parts_.stage_of(here - 1, direction), here - 1, m, activation_gradients), dx);
  }
  if (operation.work == Work::backward) finish_part(stage, m);
}

void TrainingSession::finish_part(Stage& stage, std::int64_t microbatch) {
  const std::int64_t parts = shape().stages == 1 || parts_.is_dual() ? 1 : clock::chunks_per_stage(shape());
  if (++stage.finished[microbatch] < parts) return;
  TrainingPass& pass = stage.passes.at(microbatch);
  stage.runner.step().settle();
  for (std::int64_t layer = -1; layer < stage.runner.layers(); ++layer) {
    const ProgramMemory& from = pass.memory(layer);
    const auto carry = [&](const std::vector<int>& tensors, std::int64_t to) {
      for (int id : tensors)
        if (!from.empty() && !from[at(id)].empty()) add_to(stage.sums[at(to + 1)][at(id)], from[at(id)]);
    };
    carry(own_sums_, layer);
    carry(shared_sums_, stage.runner.first_of_kind(layer));
  }
  stage.passes.erase(microbatch);
}

void TrainingSession::add_copies() {
  const auto each = [&](Stage& stage, auto&& visit) {
    const std::int64_t other = shape().stages - 1 - stage.number;
    for (std::int64_t layer = -1; layer < stage.runner.layers(); ++layer)
      for (std::size_t i = 0; i < own_sums_.size(); ++i) {
        ProgramMemory& sums = stage.sums[at(layer + 1)];
        if (sums.empty() || sums[at(own_sums_[i])].empty()) continue;
        const std::int64_t number = (layer + 1) * std::ssize(own_sums_) + static_cast<std::int64_t>(i);
        visit(sums[at(own_sums_[i])], other, number);
      }
  };
  for (Stage& stage : stages_)
    each(stage, [&](const Shards& sums, std::int64_t other, std::int64_t number) {
      handover_.send(way(stage.number, other, number, 0, copied_gradients), sums);
    });
  for (Stage& stage : stages_)
    each(stage, [&](Shards& sums, std::int64_t other, std::int64_t number) {
      add_to(sums, handover_.take(way(other, stage.number, number, 0, copied_gradients)));
    });
}

void TrainingSession::take_updates(Stage& stage, const program::Block& block, std::int64_t layer) {
  ProgramMemory& memory = stage.sums[at(layer + 1)];
  const std::map<int, std::string> names = stage.runner.names(layer);
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const program::Step& step = program_.steps[at(i)];
    if (step.op != program::Op::update) continue;
    if (keeps_gradients_) gradients_[names.at(step.in[1])] = stage.runner.step().collected(step.in[0], memory);
    std::int32_t last = i;
    while (last + 1 < block.last && program_.steps[at(last + 1)].op != program::Op::update) ++last;
    const int result = program_.steps[at(last)].out[0];
    if (program_.tensor(result).sharding != program_.tensor(step.in[1]).sharding)
      throw InternalError("an updated weight has another sharding than before");
    const bool is_shared = program_.tensor(step.in[1]).is_shared;
    for (std::int64_t other = layer; other < stage.runner.layers(); ++other)
      if (other == layer || (is_shared && stage.runner.first_of_kind(other) == layer && layer >= 0))
        stage.weights[at(other + 1)][at(step.in[1])] = memory[at(result)];
  }
}

void TrainingSession::update(Stage& stage) {
  for (std::int64_t layer = -1; layer < stage.runner.layers(); ++layer) {
    if (layer >= 0 && !stage.held.layers[at(layer)]) continue;
    std::map<int, Moments>& moments = stage.moments[at(layer + 1)];
    const bool is_away = copies_.what().states && layer >= 0;
    if (is_away) copies_.fetch(moments);
    if (adam_) stage.runner.step().update_with(*adam_, updates_, moments);
    for (const program::Block& block : program_.blocks) {
      const bool is_mine =
          layer < 0 ? block.kind < 0 && stage.held.has(block, -1) : block.kind == stage.runner.kind(layer);
      if (!is_mine || block.phase == program::Phase::forward ||
          (block.is_shared && stage.runner.first_of_kind(layer) != layer))
        continue;
      stage.runner.run(block, layer, stage.sums[at(layer + 1)], true);
      stage.runner.step().settle();
      if (block.phase == program::Phase::update) take_updates(stage, block, layer);
    }
    if (is_away) copies_.send(moments);
  }
}

Bytes TrainingSession::stated_copies() const {
  Bytes sum;
  for (const Stage& stage : stages_)
    for (std::int64_t layer = 0; layer < stage.runner.layers(); ++layer) {
      if (!stage.held.layers[at(layer)]) continue;
      const program::Block& forward = stage.runner.layer_block(layer, program::Phase::forward);
      // Each stage of dualpipe has two parts, which take half of the microbatches each.
      const double passes = static_cast<double>(shape().microbatches) / (parts_.is_dual() ? 2.0 : 1.0);
      if (copies_.what().activations) sum += passes * copies_.stated_activations(forward);
      if (copies_.what().states) sum += copies_.stated_states(stage.runner.kind(layer));
    }
  return sum;
}

void TrainingSession::share_embedding() {
  const std::int64_t from = parts_.stage_of(0, 0), to = parts_.stage_of(parts_.count() - 1, 0);
  if (tied_.empty() || parts_.is_dual() || from == to) return;
  const std::vector<int> weights = trained_weights(program_, "embedding");
  const auto passed = [&](std::size_t i) { return way(from, to, static_cast<std::int64_t>(i), 0, new_weights); };
  for (Stage& stage : stages_)
    for (std::size_t i = 0; stage.number == from && i < weights.size(); ++i)
      handover_.send(passed(i), stage.weights.front()[at(weights[i])]);
  for (Stage& stage : stages_)
    for (std::size_t i = 0; stage.number == to && i < weights.size(); ++i)
      stage.weights.front()[at(weights[i])] = handover_.take(passed(i));
}

TrainedStep TrainingSession::step(const Array& tokens, const Array& targets) {
  ++updates_;
  loss_ = 0;
  gradients_.clear();
  const Batch batch{tokens, targets};
  std::vector<double> before(6, 0.0);
  const auto totals = [&] {
    std::vector<double> now{0, 0, 0, handover_.received().value(), copies_.out().value(), copies_.in().value()};
    for (const Stage& stage : stages_) {
      const StepRunner& runner = stage.runner.step();
      // Both copies of dualpipe have all gradients.
      if (stage.held.counts_squares) now[0] += runner.squared_gradients();
      now[1] += runner.received().value() * static_cast<double>(runner.devices().here().size());
      now[2] += runner.predicted().value() * static_cast<double>(runner.devices().here().size());
    }
    return now;
  };
  before = totals();
  for (Stage& stage : stages_) {
    stage.next = 0;
    stage.finished.clear();
    stage.sums = stage.weights;
  }
  for (bool works = true; works;) {
    works = false;
    for (Stage& stage : stages_)
      while (advance(stage, batch)) works = true;
  }
  for (const Stage& stage : stages_)
    if (stage.next < stage.order.size()) throw InternalError("the operations of a pipeline wait for each other");
  if (parts_.is_dual()) add_copies();
  for (Stage& stage : stages_) update(stage);
  if (shape().stages > 1) share_embedding();
  std::vector<double> sums = totals();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= before[i];
  const bool reports_loss = !transport_ || stages_.front().runner.step().devices().is_here(0);
  sums.push_back(reports_loss ? loss_ : 0.0);
  sums.push_back(stated_copies().value() * static_cast<double>(stages_.front().runner.step().devices().here().size()));
  if (transport_)
    for (std::size_t rank = 0; const std::vector<double>& other : gather_values(*transport_, sums)) {
      for (std::size_t i = 0; rank != transport_->rank() && i < sums.size(); ++i) sums[i] += other[i];
      ++rank;
    }
  const auto devices = static_cast<double>(program_.mesh.devices() * shape().stages);
  return {sums[6] / tokens_of(program_), std::sqrt(sums[0]),       Bytes(sums[1] / devices), Bytes(sums[2] / devices),
          Bytes(sums[3] / devices),      Bytes(sums[4] / devices), Bytes(sums[5] / devices), Bytes(sums[7] / devices)};
}

template <class Visit>
void TrainingSession::each_weight(Visit visit) {
  const std::vector<int> head = trained_weights(program_, "head");
  const auto is_of_head = [&](int id) { return std::find(head.begin(), head.end(), id) != head.end(); };
  for (Stage& stage : stages_)
    for (std::int64_t layer = -1; layer < stage.runner.layers(); ++layer) {
      if (layer >= 0 && !stage.held.layers[at(layer)]) continue;
      for (const auto& [id, text] : stage.runner.names(layer))
        if (layer >= 0 || (is_of_head(id) ? stage.held.ends : stage.held.embeds)) visit(stage, layer, id, text);
    }
}

NamedArrays TrainingSession::weights() {
  NamedArrays out;
  each_weight([&](Stage& stage, std::int64_t layer, int id, const std::string& text) {
    if (!out.contains(text)) out[text] = stage.runner.step().collected(id, stage.weights[at(layer + 1)]);
  });
  if (transport_ && shape().stages > 1) add_other_stages(out);
  return out;
}

int TrainingSession::updated(int weight) const {
  for (const program::Step& step : program_.steps)
    if (step.op == program::Op::update && step.in[1] == weight) return step.out[0];
  return -1;
}

NamedArrays TrainingSession::moments() {
  NamedArrays out;
  each_weight([&](Stage& stage, std::int64_t layer, int id, const std::string& text) {
    const auto found = stage.moments[at(layer + 1)].find(id);
    if (found == stage.moments[at(layer + 1)].end() || out.contains("first." + text)) return;
    const int made = updated(id);
    ProgramMemory memory(program_.tensors.size());
    memory[at(made)] = found->second.first;
    out["first." + text] = stage.runner.step().collected(made, memory);
    memory[at(made)] = found->second.second;
    out["second." + text] = stage.runner.step().collected(made, memory);
  });
  if (transport_ && shape().stages > 1) add_other_stages(out);
  return out;
}

void TrainingSession::resume(const NamedArrays& moments, std::int64_t steps) {
  updates_ = steps;
  each_weight([&](Stage& stage, std::int64_t layer, int id, const std::string& text) {
    const auto first = moments.find("first." + text), second = moments.find("second." + text);
    if (first == moments.end() || second == moments.end() || updated(id) < 0) return;
    const StepRunner& step = stage.runner.step();
    stage.moments[at(layer + 1)][id] = {step.distributed(first->second, updated(id)),
                                        step.distributed(second->second, updated(id))};
  });
}

void TrainingSession::add_other_stages(NamedArrays& arrays) const {
  const auto devices = at(program_.mesh.devices());
  const std::size_t mine = transport_->rank() / devices, device = transport_->rank() % devices;
  const NamedArrays own = arrays;
  const auto others = [&](auto&& visit) {
    for (std::size_t stage = 0; stage < at(shape().stages); ++stage)
      if (stage != mine) visit(stage * devices + device);
  };
  others([&](std::size_t rank) {
    for (const auto& [name, array] : own) {
      const auto* text = reinterpret_cast<const std::byte*>(name.data());
      transport_->send(rank, control_tag, {text, text + name.size()});
      send_array(*transport_, rank, control_tag, array);
    }
    transport_->send(rank, control_tag, {});
  });
  others([&](std::size_t rank) {
    for (auto text = transport_->receive(rank, control_tag); !text.empty();
         text = transport_->receive(rank, control_tag)) {
      std::string name(reinterpret_cast<const char*>(text.data()), text.size());
      arrays[std::move(name)] = receive_array(*transport_, rank, control_tag);
    }
  });
}

RunFacts TrainingSession::facts() const {
  RunFacts all;
  for (const Stage& stage : stages_) {
    const RunFacts one = stage.runner.facts();
    all.disagreement = std::max(all.disagreement, one.disagreement);
    all.byte_error = std::max(all.byte_error, one.byte_error);
    all.moved += one.moved;
    all.stated += one.stated;
  }
  return all;
}

std::vector<Activity> TrainingSession::take_activities() {
  std::vector<Activity> out = handover_.take_activities();
  for (Stage& stage : stages_)
    for (const Activity& one : stage.runner.step().take_activities()) out.push_back(one);
  return out;
}

TrainingSession::Hidden TrainingSession::hidden() const {
  Hidden all;
  for (const Stage& stage : stages_) {
    all.background += stage.runner.step().background_time();
    all.waited += stage.runner.step().waited_time();
  }
  return all;
}

std::vector<StepClock> TrainingSession::clocks() const {
  std::vector<StepClock> out(program_.steps.size());
  for (const Stage& stage : stages_) {
    const auto devices = static_cast<double>(stage.runner.step().devices().here().size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].time += stage.runner.step().clocks()[i].time / devices;
      out[i].runs += stage.runner.step().clocks()[i].runs;
    }
  }
  return out;
}

}  // namespace assay::engine
