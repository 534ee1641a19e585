// The backward pass: each forward step in reverse, by its operation's gradient rule. A gradient is sharded like its
// tensor, so a collective's gradient is the reverse resharding; partial sums of gradients end where a step needs the
// whole value.
#include <algorithm>

#include "assay/base/index.h"
#include "assay/program/lower/backward_pass.h"

namespace assay::lower {

program::Sharding BackwardPass::reduced_sharding(const program::ProgramTensor& tensor) {
  program::Sharding sharding = tensor.sharding;
  sharding.unreduced = 0;
  return sharding;
}

BackwardPass::BackwardPass(Builder& builder, std::int32_t first, std::int32_t last)
    : build_(builder), program_(builder.program_), first_(first), last_(last), weights_(builder.weights_) {
  weights_.clear();
}

void BackwardPass::run(std::span<const Builder::Seed> seeds) {
  take_seeds(seeds);
  recompute_all();
  transpose(first_, last_);
  finish_weights(last_tensor());
}

void BackwardPass::run(std::span<const Builder::Seed> seeds, Branches& branches, int first, int last) {
  take_seeds(seeds);
  if (!copied(branches, first, last))
    for (int i = last; i-- > first;)
      if (!is_pure() || !copied(branches, i, i + 1)) transpose(branches, i, i + 1 == last);
  for (int i = first; i < last; ++i) {
    LoweredBranch& branch = branches[i];
    if (branches.copy_reduced(i)) {
      for (int g = branch.first_gradient; g < branch.last_gradient; ++g)
        slot(branches.gradients[at(g)].of) = branches.gradients[at(g)].is;
      continue;
    }
    branch.reduced = Stretch::begin(program_);
    finish_weights(branch.forward.last_tensor);
    branch.reduced.end(program_);
    if (branch.same == i) continue;  // no other branch will ask
    branches.gradients.reserve(64);
    branch.first_gradient = static_cast<int>(branches.gradients.size());
    for (int id = branch.forward.first_tensor; id < branch.forward.last_tensor; ++id)
      if (program_.tensor(id).is_given && slot(id) >= 0) branches.gradients.push_back({id, slot(id)});
    branch.last_gradient = static_cast<int>(branches.gradients.size());
  }
}

void BackwardPass::take_seeds(std::span<const Builder::Seed> seeds) {
  for (const Builder::Seed& seed : seeds) slot(seed.result) = seed.gradient;
}

bool BackwardPass::is_pure() const {
  return !build_.recompute_.covers(ForwardPart::residual) && !build_.recompute_.covers(ForwardPart::second_products);
}

bool BackwardPass::copied(Branches& branches, int first, int last) {
  if (!branches.copy_backward(first, last, slot(branches[last - 1].output))) return false;
  slot(branches[first].input) = branches[first].leaving;
  return true;
}

void BackwardPass::recompute_all() {
  if (!build_.recompute_.covers(ForwardPart::unread) || program_.blocks.back().kind < 0) return;
  for (std::int32_t i = first_; i < last_; ++i)
    for (const int id : std::array(program_.steps[at(i)].out)) forward_value(id);
}

void BackwardPass::transpose(Branches& branches, int number, bool is_last) {
  LoweredBranch& branch = branches[number];
  branch.like = branch.transposed = number;
  branch.arriving = slot(branch.output);
  branch.backward = Stretch::begin(program_);
  if (is_last) recompute_all();
  transpose(branch.forward.first_step, branch.forward.last_step);
  branch.backward.end(program_);
  branch.leaving = slot(branch.input);
  branch.needs_input = program_.tensor(branch.input).is_needed;
  branch.keeps_input = program_.tensor(branch.input).is_kept;
}

void BackwardPass::transpose(std::int32_t first, std::int32_t last) {
  for (std::int32_t i = last - 1; i >= first; --i) {
    const program::Op op = program_.steps[at(i)].op;  // read first: the copy takes longer
    const program::Step step = program_.steps[at(i)];
    transpose_step(program::facts(op).gradient.rule, step);
  }
}

int BackwardPass::forward_value(int id, bool by_own_gradient) {
  if (id < 0) return id;
  program::ProgramTensor& tensor = program_.tensors[at(id)];
  if (!by_own_gradient) tensor.is_needed = true;
  if (tensor.is_given) {
    if (tensor.tensor_class == program::TensorClass::residual) tensor.is_kept = true;
    return id;
  }
  const std::int32_t producer = tensor.producer;
  if (producer < first_ || producer >= last_) return id;  // computed in this pass
  if (const int recomputed = build_.notes(id).recomputed; recomputed >= 0) return recomputed;
  // The head's backward pass directly follows its forward pass, so nothing there is recomputed.
  const bool in_layer = program_.blocks.back().kind >= 0;
  if (!in_layer || !is_recomputed(producer, id)) {
    tensor.is_kept = true;
    return id;
  }
  program::Step repeat = program_.steps[at(producer)];
  repeat.is_recomputed = true;
  repeat.repeated = producer;
  for (std::int16_t& in : repeat.in)
    if (in >= 0) in = static_cast<std::int16_t>(forward_value(in));
  for (std::int16_t& out : repeat.out) {
    if (out < 0) continue;
    const int copy = build_.copy_of(out, {});
    build_.notes(out).recomputed = copy;
    out = static_cast<std::int16_t>(copy);
  }
  program_.steps.push_back(repeat);
  return build_.notes(id).recomputed;
}

bool BackwardPass::is_recomputed(std::int32_t index, int id) const {
  const program::Step& step = program_.steps[at(index)];
  if (is_gathered(program_, step, id)) return true;
  if (build_.recompute_ == Recompute::none()) return false;
  const auto before = build_.recompute_.covers(ForwardPart::second_products)
                          ? std::count_if(&program_.steps[at(first_)], &program_.steps[at(index)],
                                          [](const program::Step& other) { return other.op == program::Op::product; })
                          : 0;
  return build_.recompute_.meets(parts_of(program_, step, id, before));
}

int BackwardPass::make_gradient(int of, program::AxisSet unreduced) {
  const int id = build_.copy_of(of, {});
  program::ProgramTensor& made = program_.tensors[at(id)];
  made.is_gradient = true;
  made.store_as(is_weight(of) ? build_.formats_.gradients : build_.formats_.activations);
  made.sharding.unreduced = unreduced;
  return id;
}

bool BackwardPass::is_weight(int id) const {
  const program::TensorClass c = program_.tensor(id).tensor_class;
  return c == program::TensorClass::weight || c == program::TensorClass::used_weight;
}

bool BackwardPass::wants_gradient(int id) const {
  if (id < 0) return false;
  const program::ProgramTensor& tensor = program_.tensor(id);
  if (tensor.is_frozen) return false;
  return !tensor.is_given || tensor.is_cross_layer || is_weight(id) ||
         tensor.tensor_class == program::TensorClass::residual;
}

void BackwardPass::note_weight(int id, bool first) {
  if (program_.tensor(id).tensor_class != program::TensorClass::weight) return;
  if (first || std::find(weights_.begin(), weights_.end(), id) == weights_.end()) weights_.push_back(id);
}

void BackwardPass::accumulate(int id, int gradient) {
  if (!wants_gradient(id)) return;
  int& held = slot(id);
  note_weight(id, held < 0);
  if (held < 0) {
    held = gradient;
    return;
  }
  int a = held, b = gradient;
  if (program_.tensor(a).sharding != program_.tensor(b).sharding) {
    a = build_.reshard(a, reduced_sharding(program_.tensor(id)), program::Urgency::critical);
    b = build_.reshard(b, reduced_sharding(program_.tensor(id)), program::Urgency::critical);
  }
  const int sum = build_.copy_of(a, program_.tensor(id).name);
  build_.emit(program::Op::add, {a, b}, {sum});
  slot(id) = sum;
}

program::Sharding BackwardPass::settled_sharding(int id, int held) const {
  program::Sharding target = reduced_sharding(program_.tensor(id));
  target.unreduced = build_.late_axes(program_.tensor(held));
  return target;
}

int BackwardPass::gradient(int id, program::AxisSet staying) {
  const int held = id < 0 ? -1 : slot(id);
  if (held < 0) return -1;
  program::Sharding target = settled_sharding(id, held);
  target.unreduced |= staying;
  const int reduced = build_.reshard(held, target, program::Urgency::critical);
  slot(id) = reduced;
  return reduced;
}

program::AxisSet BackwardPass::partial_over(int id, int activation) const {
  return program_.tensor(activation).sharding.split_axes() & ~program_.tensor(id).sharding.split_axes();
}

void BackwardPass::finish_weights(int limit) {
  if (finished_ == 0) std::sort(weights_.begin(), weights_.end());
  for (; finished_ < weights_.size() && weights_[finished_] < limit; ++finished_) {
    const int w = weights_[finished_];
    if (slot(w) < 0 || w == build_.postponed) continue;
    int held = slot(w);
    const program::Sharding last = build_.beside(w, program::TensorClass::gradient);
    if (const program::AxisSet waiting = program_.tensor(held).sharding.unreduced & build_.rules_.deferred) {
      // Axes whose sum is deferred split nothing yet.
      program::Sharding target = last;
      target.unreduced = waiting;
      for (program::AxisList& list : target.dims) list = remaining(list, waiting);
      held = build_.reshard(held, target, program::Urgency::afterwards);
      if (!program_.tensor(w).is_shared)
        held = build_.reshard_once(held, last);  // otherwise later: other layers still add to it
    } else {
      held = build_.reshard(held, last, program::Urgency::afterwards);
    }
    slot(w) = held;
  }
}

int Builder::reshard_once(int from, const program::Sharding& target) {
  const std::size_t before = program_.steps.size();
  const int to = reshard(from, target, program::Urgency::afterwards);
  for (std::size_t i = before; i < program_.steps.size(); ++i) program_.steps[i].once = true;
  return to;
}

void Builder::reduce_shared(int first, int last) {
  for (int w = first; w < last; ++w)
    if (program_.tensor(w).is_shared && program_.tensor(w).tensor_class == program::TensorClass::weight)
      if (const int held = gradient(w); held >= 0) {
        const int summed = reshard_once(held, beside(w, program::TensorClass::gradient));
        notes(w).gradient = summed;
      }
}

void Builder::backward(std::int32_t first, std::int32_t last, std::span<const Seed> seeds) {
  BackwardPass(*this, first, last).run(seeds);
}

void Builder::backward(std::int32_t first, std::int32_t last, std::span<const Seed> seeds, Branches& branches,
                       int first_branch, int last_branch) {
  BackwardPass(*this, first, last).run(seeds, branches, first_branch, last_branch);
}

}  // namespace assay::lower
