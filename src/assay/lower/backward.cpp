// The backward pass: each forward step in reverse, by its transpose rule. A gradient lies where its tensor lies, so a
// collective's gradient is the resharding back; partial sums of gradients end where a step needs the whole value.
#include <algorithm>

#include "assay/base/index.h"
#include "assay/lower/branches.h"

namespace assay::lower {
namespace {

program::Sharding whole(const program::ProgramTensor& tensor) {
  program::Sharding sharding = tensor.sharding;
  sharding.unreduced = 0;
  return sharding;
}

}  // namespace

class BackwardPass {
 public:
  BackwardPass(Builder& builder, std::int32_t first, std::int32_t last)
      : build_(builder), program_(builder.program_), first_(first), last_(last), weights_(builder.weights_) {
    weights_.clear();
  }

  void run(std::span<const Builder::Seed> seeds) {
    take(seeds);
    run_again();
    transpose(first_, last_);
    finish_weights(last_tensor());
  }

  /// The same for a layer of some branches.
  void run(std::span<const Builder::Seed> seeds, Branches& branches, int first, int last) {
    take(seeds);
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

 private:
  int last_tensor() const { return static_cast<int>(program_.tensors.size()); }

  void take(std::span<const Builder::Seed> seeds) {
    for (const Builder::Seed& seed : seeds) slot(seed.result) = seed.gradient;
  }

  /// Whether the gradient of a branch is a function of the branch alone: no value of the residual stream is made again
  /// from the branches before it, and products are not counted from the first one.
  bool is_pure() const {
    return !build_.recompute_.covers(ForwardPart::residual) && !build_.recompute_.covers(ForwardPart::second_products);
  }

  bool copied(Branches& branches, int first, int last) {
    if (!branches.copy_backward(first, last, slot(branches[last - 1].output))) return false;
    slot(branches[first].input) = branches[first].leaving;
    return true;
  }

  /// All forward steps of a layer, where software does not stop at the last result that a gradient reads.
  void run_again() {
    if (!build_.recompute_.covers(ForwardPart::unread) || program_.blocks.back().kind < 0) return;
    for (std::int32_t i = first_; i < last_; ++i)
      for (const int id : std::array(program_.steps[at(i)].out)) need(id);
  }

  void transpose(Branches& branches, int number, bool is_last) {
    LoweredBranch& branch = branches[number];
    branch.like = branch.transposed = number;
    branch.arriving = slot(branch.output);
    branch.backward = Stretch::begin(program_);
    if (is_last) run_again();
    transpose(branch.forward.first_step, branch.forward.last_step);
    branch.backward.end(program_);
    branch.leaving = slot(branch.input);
    branch.needs_input = program_.tensor(branch.input).is_needed;
    branch.keeps_input = program_.tensor(branch.input).is_kept;
  }

  void transpose(std::int32_t first, std::int32_t last) {
    for (std::int32_t i = last - 1; i >= first; --i) {
      const program::Op op = program_.steps[at(i)].op;  // is there before the copy
      const program::Step step = program_.steps[at(i)];
      transpose(op, step);
    }
  }

  int& slot(int id) { return build_.notes(id).gradient; }

  /// A forward value in the backward pass: kept, or made again. The gradient of the step that made it takes it as it
  /// is.
  int need(int id, bool by_own_gradient = false) {
    if (id < 0) return id;
    program::ProgramTensor& tensor = program_.tensors[at(id)];
    if (!by_own_gradient) tensor.is_needed = true;
    if (tensor.is_given) {
      if (tensor.tensor_class == program::TensorClass::residual) tensor.is_kept = true;
      return id;
    }
    const std::int32_t producer = tensor.producer;
    if (producer < first_ || producer >= last_) return id;  // made in this pass
    if (const int again = build_.notes(id).again; again >= 0) return again;
    // The backward pass of the head follows its forward pass at once, so nothing there is made twice.
    const bool in_layer = program_.blocks.back().kind >= 0;
    if (!in_layer || !is_made_again(producer, id)) {
      tensor.is_kept = true;
      return id;
    }
    program::Step repeat = program_.steps[at(producer)];
    repeat.is_repeated = true;
    for (std::int16_t& in : repeat.in)
      if (in >= 0) in = static_cast<std::int16_t>(need(in));
    for (std::int16_t& out : repeat.out) {
      if (out < 0) continue;
      const int copy = build_.copy_of(out, {});
      build_.notes(out).again = copy;
      out = static_cast<std::int16_t>(copy);
    }
    program_.steps.push_back(repeat);
    return build_.notes(id).again;
  }

  /// Whether the result `id` of a forward step is made again.
  bool is_made_again(std::int32_t index, int id) const {
    const program::Step& step = program_.steps[at(index)];
    if (is_gathered(program_, step, id)) return true;
    if (build_.recompute_ == Recompute::none()) return false;
    const auto before = build_.recompute_.covers(ForwardPart::second_products)
                            ? std::count_if(&program_.steps[at(first_)], &program_.steps[at(index)],
                                            [](const program::Step& other) { return other.op == program::Op::product; })
                            : 0;
    return build_.recompute_.meets(parts_of(program_, step, id, before));
  }

  /// A new gradient tensor with the shape and sharding of `of`, partial over `unreduced`.
  int make(int of, program::AxisSet unreduced = 0) {
    const int id = build_.copy_of(of, {});
    program::ProgramTensor& made = program_.tensors[at(id)];
    made.is_gradient = true;
    made.store_as(is_weight(of) ? build_.formats_.gradients : build_.formats_.activations);
    made.sharding.unreduced = unreduced;
    return id;
  }

  bool is_weight(int id) const {
    const program::TensorClass c = program_.tensor(id).tensor_class;
    return c == program::TensorClass::weight || c == program::TensorClass::used_weight;
  }

  /// Whether anybody wants the gradient of a tensor: not of tokens, targets, caches or weights that are not trained.
  bool differentiable(int id) const {
    if (id < 0) return false;
    const program::ProgramTensor& tensor = program_.tensor(id);
    if (tensor.is_frozen) return false;
    return !tensor.is_given || tensor.is_lent || is_weight(id) || tensor.tensor_class == program::TensorClass::residual;
  }

  /// A weight that the block's gradients are of, with its first gradient or a further one.
  void note(int id, bool first) {
    if (program_.tensor(id).tensor_class != program::TensorClass::weight) return;
    if (first || std::find(weights_.begin(), weights_.end(), id) == weights_.end()) weights_.push_back(id);
  }

  void accumulate(int id, int gradient) {
    if (!differentiable(id)) return;
    int& held = slot(id);
    note(id, held < 0);
    if (held < 0) {
      held = gradient;
      return;
    }
    int a = held, b = gradient;
    if (program_.tensor(a).sharding != program_.tensor(b).sharding) {
      a = build_.reshard(a, whole(program_.tensor(id)), program::Urgency::critical);
      b = build_.reshard(b, whole(program_.tensor(id)), program::Urgency::critical);
    }
    const int sum = build_.copy_of(a, program_.tensor(id).name);
    build_.emit(program::Op::add, {a, b}, {sum});
    slot(id) = sum;
  }

  /// Where the gradient `held` of a tensor belongs: where the tensor lies, its sums ended but for those of copied keys.
  program::Sharding settled(int id, int held) const {
    program::Sharding target = whole(program_.tensor(id));
    target.unreduced = build_.late_axes(program_.tensor(held));
    return target;
  }

  /// The gradient of a tensor with its sums ended, but for those that may stay; below 0: none.
  int gradient(int id, program::AxisSet staying = 0) {
    const int held = id < 0 ? -1 : slot(id);
    if (held < 0) return -1;
    program::Sharding target = settled(id, held);
    target.unreduced |= staying;
    const int settled_one = build_.reshard(held, target, program::Urgency::critical);
    slot(id) = settled_one;
    return settled_one;
  }

  /// Axes that split the activations of a step but not this operand: its gradient is a partial sum over them.
  program::AxisSet partial_over(int id, int activation) const {
    return program_.tensor(activation).sharding.split_axes() & ~program_.tensor(id).sharding.split_axes();
  }

  void transpose_product(const program::Step& step) {
    const int a = step.in[0], b = step.in[1];
    const bool narrow = build_.multiplies_narrow(b);
    int d_out = narrow && step.in[3] < 0 ? slot(step.out[0]) : gradient(step.out[0]);
    if (d_out < 0) return;
    if (step.in[2] >= 0) accumulate(step.in[2], d_out);
    if (step.in[3] >= 0) transpose_bias(step.in[3], d_out);
    if (narrow) d_out = build_.quantised_at(d_out, settled(step.out[0], d_out));
    if (differentiable(a)) add_product(a, d_out, need(b));
    if (differentiable(b)) add_product(b, need(a), d_out);
  }

  bool is_bias(const program::Step& step, int id) const { return step.op == program::Op::add && is_weight(id); }

  /// A bias has the sum of the gradients of all that it was added to.
  void transpose_bias(int bias, int dy) {
    if (!differentiable(bias)) return;
    const int made = make(bias, partial_over(bias, dy) | program_.tensor(dy).sharding.unreduced);
    build_.emit(program::Op::bias_grad, {dy}, {made});
    accumulate(bias, made);
  }

  /// gradient(of) += x · y
  void add_product(int of, int x, int y) {
    std::array<model::LogicalDim, 5> dims{};
    const program::ProgramTensor& target = program_.tensor(of);  // until others are made
    for (int i = 0; i < target.rank; ++i) dims[at(i)] = target.dims[at(i)].dim;
    const int held = slot(of);
    const int made = build_.product(target.name, x, y, std::span<const model::LogicalDim>(dims.data(), target.rank));
    program::ProgramTensor& result = program_.tensors[at(made)];
    result.is_gradient = true;
    if (is_weight(of)) {
      program::Step& step = program_.steps.back();
      step.bytes -= build_.bytes(made);
      result.store_as(build_.formats_.gradients);
      step.bytes += build_.bytes(made);
    }
    if (held >= 0 && program_.tensor(held).sharding == result.sharding) {  // sums in place
      program::Step& step = program_.steps.back();
      step.in[2] = static_cast<std::int16_t>(held);
      step.bytes += build_.bytes(made);
      note(of, false);
      slot(of) = made;
    } else {
      accumulate(of, made);
    }
  }

  void transpose_norm(const program::Step& step) {
    int dy = gradient(step.out[0]);
    if (dy < 0) return;
    const int x = step.in[0], scale = step.in[1];
    int sums = -1;
    if (step.in[2] >= 0) dy = build_.settle_sums(dy);
    if (step.in[2] >= 0) {  // rows lie on several devices: so do the two dot products that their gradient needs
      sums = make(step.in[2],
                  program_.tensor(x).sharding.split_axes() & ~program_.tensor(step.in[2]).sharding.split_axes());
      program_.tensors[at(sums)].store_as(Dtype::fp32);
      build_.emit(program::Op::norm_grad, {dy, need(x), need(scale), need(step.in[2])}, {sums}).is_centred =
          step.is_centred;
      sums = build_.settle_sums(sums);
    }
    const int dx = make(x);
    const program::AxisSet late = program_.tensor(dy).sharding.unreduced;
    program_.tensors[at(dx)].sharding.unreduced = late;
    const auto of_weight = [&](int id) { return differentiable(id) ? make(id, partial_over(id, x) | late) : -1; };
    const int bias = step.in[3], d_scale = of_weight(scale), d_bias = of_weight(bias);
    program::Step& back =
        build_.emit(program::Op::norm_grad, {dy, need(x), need(scale), need(step.in[2]), sums}, {dx, d_scale, d_bias});
    back.detail = step.detail, back.is_centred = step.is_centred;
    accumulate(scale, d_scale), accumulate(bias, d_bias);
    accumulate(x, dx);
  }

  void transpose_attention(const program::Step& step) {
    const int d_out = gradient(step.out[0]);
    if (d_out < 0) return;
    const int q = step.in[0], k = step.in[1], v = step.in[2], terms = step.in[3], picked = step.in[4];
    const int dq = make(q), dk = make(k, partial_over(k, q)), dv = make(v, partial_over(v, q));
    const int d_terms = differentiable(terms) ? make(terms, partial_over(terms, q)) : -1;
    const program::AttentionShape& shape = program_.attentions[at(step.detail)];
    const int rest = need(step.out[1]);  // the sums of flash attention, or the probabilities
    program::Step& back =
        build_.emit(program::Op::attention_grad,
                    {d_out, need(q), need(k), need(v), need(step.out[0], true), rest, need(terms), need(picked)},
                    {dq, dk, dv, d_terms});
    back.detail = step.detail;
    back.flops = attention_flops(program_, back);
    if (!shape.flash)  // probabilities and their gradients pass through memory: read P; write, read dP; write, read,
                       // read dS
      back.bytes += 5.0 * build_.bytes(step.out[1]);
    accumulate(q, dq), accumulate(k, dk), accumulate(v, dv), accumulate(terms, d_terms);
  }

  /// The axes over which the gradients of all results of a step are partial sums.
  program::AxisSet common_sums(const program::Step& step) {
    program::AxisSet common = ~program::AxisSet{0};
    for (int id : step.out)
      if (id >= 0) {
        if (slot(id) < 0) return 0;
        const program::ProgramTensor& held = program_.tensor(slot(id));
        common &= held.sharding.unreduced & ~program_.tensor(id).sharding.split_axes();
        if (held.sharding.unreduced != common) return 0;  // the others would have to end first
      }
    return common;
  }

  /// Ops whose gradient takes the gradient of the result and the inputs and yields those of all inputs. That of a
  /// linear one may be a partial sum, as are those of its inputs then.
  void transpose_plain(const program::Step& step, program::Op op, bool needs_inputs, bool is_linear = false) {
    program::Step back;
    back.op = op;
    std::size_t n = 0;
    bool any = false;
    program::AxisSet late = 0;
    const program::AxisSet kept = is_linear ? common_sums(step) : 0;
    for (int id : step.out)
      if (id >= 0) {
        const int g = gradient(id, kept);
        any |= g >= 0;
        if (g < 0) continue;
        late |= program_.tensor(g).sharding.unreduced;
        back.in[n++] = static_cast<std::int16_t>(g);
      }
    if (!any) return;
    if (needs_inputs)
      for (int id : step.in)
        if (id >= 0 && n < back.in.size()) back.in[n++] = static_cast<std::int16_t>(need(id));
    // What is multiplied by a partial sum has a partial gradient, and so have the weights of experts' results that lie
    // on several devices.
    program::AxisSet partial = 0;
    for (int id : step.in)
      if (id >= 0) partial |= program_.tensor(id).sharding.unreduced;
    const auto of_others = [&](int id) {
      program::AxisSet axes = 0;
      if (partial == 0 && op != program::Op::combine_grad) return axes;
      for (int other : step.in)
        if (other >= 0 && other != id)
          axes |= program_.tensor(other).sharding.unreduced |
                  (op == program::Op::combine_grad ? partial_over(id, other) : 0);
      return axes;
    };
    // Every input has its place among the results, wanted or not.
    const auto has_gradient = [&](int id) { return differentiable(id) || (id >= 0 && program_.tensor(id).is_frozen); };
    n = 0;
    for (int id : step.in)
      if (has_gradient(id)) {
        const program::AxisSet unreduced = partial_over(id, step.out[0]) | of_others(id) | late;
        back.out[n++] = static_cast<std::int16_t>(differentiable(id) ? make(id, unreduced) : -1);
      }
    back.bytes = build_.traffic(back);
    back.flops = 2.0 * step.flops;
    back.detail = step.detail;
    program_.steps.push_back(back);
    n = 0;
    for (int id : step.in)
      if (has_gradient(id)) accumulate(id, back.out[n++]);
  }

  void transpose(program::Op op, const program::Step& step) {
    switch (op) {
      case program::Op::product:
        return transpose_product(step);
      case program::Op::norm:
        return transpose_norm(step);
      case program::Op::attention:
        return transpose_attention(step);
      case program::Op::rotate:
        return transpose_plain(step, program::Op::rotate_grad, false);
      case program::Op::activate:
        return transpose_plain(step, program::Op::activate_grad, true);
      case program::Op::split:
        return transpose_plain(step, program::Op::split_grad, false);
      case program::Op::route:
        return transpose_plain(step, program::Op::route_grad, true);
      case program::Op::combine:
        return transpose_plain(step, program::Op::combine_grad, true);
      case program::Op::scan:
        return transpose_plain(step, program::Op::scan_grad, true);
      case program::Op::convolve:
        return transpose_plain(step, program::Op::convolve_grad, true);
      case program::Op::edge:
        return transpose_plain(step, program::Op::edge_grad, false, true);
      case program::Op::shift:
        return transpose_plain(step, program::Op::shift_grad, false, true);
      case program::Op::mix:
        return transpose_plain(step, program::Op::mix_grad, true, true);
      case program::Op::dispatch: {  // tokens only: the choice of experts has no gradient through their positions
        int dy = slot(step.out[0]);
        if (dy < 0) return;
        // A token's copies are added up before partial sums end.
        program::Sharding target = program_.tensor(step.out[0]).sharding;
        target.unreduced = program_.tensor(dy).sharding.unreduced & ~target.split_axes();
        dy = build_.reshard(dy, target, program::Urgency::critical);
        const int dx = make(step.in[0], target.unreduced | partial_over(step.in[0], step.out[0]));
        build_.emit(program::Op::dispatch_grad, {dy, need(step.in[1])}, {dx});
        return accumulate(step.in[0], dx);
      }
      case program::Op::embed: {
        const int dy = gradient(step.out[0]);
        const int table = step.in[1];
        if (dy < 0 || !differentiable(table)) return;
        const int d_table = make(table, partial_over(table, step.out[0]));
        build_.emit(program::Op::embed_grad, {dy, step.in[0]}, {d_table});
        return accumulate(table, d_table);
      }
      case program::Op::loss_sums: {
        const int logits = step.in[0], d_logits = make(logits);
        build_.emit(program::Op::loss_grad, {need(logits), step.in[1], need(sums_)}, {d_logits});
        return accumulate(logits, d_logits);
      }
      case program::Op::loss:
        sums_ = step.in[0];
        return;
      case program::Op::add:
      case program::Op::cast: {
        int dy = slot(step.out[0]);
        if (dy < 0) return;
        for (int id : step.in)
          if (id >= 0 && is_bias(step, id)) transpose_bias(id, dy = gradient(step.out[0]));
        for (int id : step.in)
          if (id >= 0 && !is_bias(step, id)) accumulate(id, dy);
        return;
      }
      case program::Op::place: {
        const int dy = gradient(step.out[0]);
        if (dy < 0) return;
        if (const int table = step.in[1]; differentiable(table)) {
          const int d_table = make(table, partial_over(table, dy));
          build_.emit(program::Op::place_grad, {dy}, {d_table});
          accumulate(table, d_table);
        }
        return accumulate(step.in[0], dy);
      }
      case program::Op::gate:
        return transpose_plain(step, program::Op::gate_grad, true);
      case program::Op::slice:
      case program::Op::all_gather:
      case program::Op::reduce_scatter:
      case program::Op::all_reduce:
      case program::Op::all_to_all: {
        const int x = step.in[0], dy = slot(step.out[0]);
        if (dy < 0 || step.out[0] == sums_) return;
        if (is_weight(x)) return accumulate(x, dy);  // reduced when the block's gradients are complete
        // A narrow product that made partial sums gathers their gradient in its own format.
        if (build_.narrow_products_ && step.op == program::Op::reduce_scatter &&
            program_.steps[at(program_.tensor(x).producer)].op == program::Op::product)
          return accumulate(x, dy);
        program::Sharding target = settled(x, dy);
        // An exchange carries partial sums as it would whole ones.
        if (step.op == program::Op::all_to_all)
          target.unreduced |= program_.tensor(dy).sharding.unreduced & ~target.split_axes();
        return accumulate(x, build_.reshard(dy, target, program::Urgency::critical));
      }
      default:
        return;
    }
  }

  /// Gradients of weights are summed over devices: over some axes in every microbatch, over the others once.
  /// Those with lower numbers than `limit`.
  void finish_weights(int limit) {
    if (finished_ == 0) std::sort(weights_.begin(), weights_.end());
    for (; finished_ < weights_.size() && weights_[finished_] < limit; ++finished_) {
      const int w = weights_[finished_];
      if (slot(w) < 0 || w == build_.postponed) continue;
      int held = slot(w);
      const program::Sharding last = build_.beside(w, program::TensorClass::gradient);
      if (const program::AxisSet waiting = program_.tensor(held).sharding.unreduced & build_.rules_.deferred) {
        // Axes whose sum waits split nothing yet.
        program::Sharding target = last;
        target.unreduced = waiting;
        for (program::AxisList& list : target.dims) list = remaining(list, waiting);
        held = build_.reshard(held, target, program::Urgency::afterwards);
        if (!program_.tensor(w).is_shared)
          held = build_.reshard_once(held, last);  // else not yet: other layers add to it
      } else {
        held = build_.reshard(held, last, program::Urgency::afterwards);
      }
      slot(w) = held;
    }
  }

  Builder& build_;
  program::Program& program_;
  std::int32_t first_, last_;
  std::vector<int>& weights_;
  std::size_t finished_ = 0;  ///< as many of them
  int sums_ = -1;
};

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
