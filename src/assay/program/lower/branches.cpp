#include "assay/program/lower/branches.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "assay/base/index.h"
#include "assay/model/layer_parts.h"

namespace assay::lower {
namespace {

/// Windows and chunks change the amount of attention work, not its steps, except for the cache size.
bool same_steps(const std::optional<model::Attention>& a, const std::optional<model::Attention>& b, bool cached) {
  if (!a || !b) return !a && !b;
  if (a->shares_kv_with_later || b->shares_kv_with_later) return false;  // later layers use its keys
  if (cached) return *a == *b;
  model::Attention other = *a;
  other.window = b->window;
  other.chunk = b->chunk;
  return other == *b;
}

bool same_content(const model::Layer& a, const model::Layer& b, Branch branch, bool cached) {
  switch (branch) {
    case Branch::parallel:
      return same_steps(a.attention, b.attention, cached) && a.feed_forward == b.feed_forward;
    case Branch::mixer:
      return same_steps(a.attention, b.attention, cached) && a.state_space == b.state_space &&
             !(a.state_space && a.state_space->lends_values);
    case Branch::cross_attention:
      return false;  // reads the encoder's output, each layer its own copy
    case Branch::feed_forward:
      return a.feed_forward == b.feed_forward;
    default:
      return a.token_input == b.token_input;
  }
}

/// Whether both share weights in the same way, with any layer. A block aside is the whole of its layer.
bool same_sharing(const model::Layer& a, const model::Layer& b) {
  if (!a.shared || !b.shared) return !a.shared && !b.shared;
  model::SharedBlock other = *a.shared;
  other.number = b.shared->number;
  return other == *b.shared && (!other.aside || a.feed_forward == b.feed_forward);
}

bool same_steps(const model::Layer& a, const model::Layer& b, Branch branch, bool cached) {
  if (!same_sharing(a, b) || !same_content(a, b, branch, cached)) return false;
  const BranchSet all = branches_of(a);
  return a.norms == b.norms && model::has_sandwich_norms(a) == model::has_sandwich_norms(b) && all == branches_of(b) &&
         // Otherwise some branch has no norm, and which one depends on the others.
         (a.norms == 0 || a.norms >= std::popcount(all));
}

bool alike(const program::ProgramTensor& a, const program::ProgramTensor& b) {
  if (a.name != b.name || a.tensor_class != b.tensor_class || a.dtype != b.dtype || a.bits != b.bits ||
      a.rank != b.rank || a.sharding != b.sharding || a.is_given != b.is_given)
    return false;
  for (std::size_t i = 0; i < a.rank; ++i)
    if (a.dims[i].dim != b.dims[i].dim || a.dims[i].size != b.dims[i].size) return false;
  return true;
}

}  // namespace

bool Branches::begin(const model::Layer& layer, Branch branch, const Workload& work, int input) {
  const int number = size();
  LoweredBranch& to = all_.emplace_back();
  to.layer = &layer;
  to.work = &work;
  to.branch = branch;
  to.input = input;
  to.forward = Stretch::begin(program_);
  to.attention = static_cast<int>(program_.attentions.size());
  to.same = number;
  for (int i = 0; i < number && to.same == number; ++i) {
    const LoweredBranch& other = (*this)[i];
    if (other.same == i && other.branch == branch && other.work == &work &&
        same_steps(*other.layer, layer, branch, work.cached) &&
        alike(program_.tensor(other.input), program_.tensor(input)))
      to.same = i;
  }
  if (to.same == number) return false;
  const LoweredBranch& from = (*this)[to.same];
  if (from.attention >= 0) {
    program::AttentionShape shape = program_.attentions[at(from.attention)];
    shape.window = layer.attention->window;
    shape.chunk = layer.attention->chunk;
    program_.attentions.push_back(shape);
  }
  rename(from.input, input);
  copied(from.forward, to.attention);
  end(renamed(from.output));
  return true;
}

void Branches::end(int output) {
  LoweredBranch& branch = all_.back();
  branch.output = output;
  branch.forward.end(program_);
  if (at(branch.attention) == program_.attentions.size()) branch.attention = -1;
}

void Branches::rename(int from, int to) {
  if (renamed_.size() <= program_.tensors.size()) renamed_.resize(program_.tensors.size() + 256, -1);
  renamed_[at(from + 1)] = static_cast<std::int16_t>(to);
}

void Branches::rename(const Stretch& from, const Stretch& to) {
  rename(from.first_tensor, to.first_tensor);
  std::iota(&renamed_[at(from.first_tensor + 1)], &renamed_[at(from.last_tensor + 1)],
            static_cast<std::int16_t>(to.first_tensor));
}

Stretch Branches::copied(const Stretch& from, int attention) {
  Stretch to = Stretch::begin(program_);
  const int steps_on = to.first_step - from.first_step;
  // Reads fields of the original, not of the new copy: loading what was just stored would stall.
  for (int i = from.first_tensor; i < from.last_tensor; ++i) {
    program_.tensors.push_back(program_.tensors[at(i)]);
    const int producer = program_.tensors[at(i)].producer;
    if (producer >= 0) program_.tensors.back().producer = static_cast<std::int16_t>(producer + steps_on);
  }
  rename(from, to);
  const std::int16_t* const name = &renamed_[1];
  for (int i = from.first_step; i < from.last_step; ++i) {
    program_.steps.push_back(program_.steps[at(i)]);
    const program::Step& before = program_.steps[at(i)];
    program::Step& step = program_.steps.back();
    for (std::size_t k = 0; k < 4; ++k) {
      step.in[k] = name[before.in[k]];
      step.out[k] = name[before.out[k]];
    }
    if ((before.in[4] & before.in[5] & before.in[6] & before.in[7]) != -1)  // few steps have that many inputs
      for (std::size_t k = 4; k < step.in.size(); ++k) step.in[k] = name[before.in[k]];
    if ((before.out[4] & before.out[5] & before.out[6]) != -1)
      for (std::size_t k = 4; k < step.out.size(); ++k) step.out[k] = name[before.out[k]];
    const bool attends = program::is_attention(before.op);
    if (!attends || before.detail < 0) continue;
    const program::AttentionShape& then = program_.attentions[at(before.detail)];
    const program::AttentionShape& now = program_.attentions[at(attention)];
    step.detail = static_cast<std::int16_t>(attention);
    if (now.window != then.window || now.chunk != then.chunk) step.flops = attention_flops(Plain{}, program_, step);
  }
  to.end(program_);
  return to;
}

bool Branches::begins_layer(int number) const {
  if (number == 0 || number == size()) return true;
  const LoweredBranch &here = (*this)[number], &before = (*this)[number - 1];
  return here.layer != before.layer || here.work != before.work;
}

int Branches::transposed_like(int first, int last, int arriving) const {
  const int count = last - first;
  const bool whole = begins_layer(first) && begins_layer(last);
  for (int i = last; i + count <= size(); ++i) {  // kinds of layers are transposed starting from the last
    if (whole && !(begins_layer(i) && begins_layer(i + count))) continue;
    bool equal = true;
    for (int j = 0; j < count && equal; ++j)
      equal = (*this)[i + j].same == (*this)[first + j].same && (*this)[i + j].like >= 0;
    if (equal && alike(program_.tensor((*this)[i + count - 1].arriving), program_.tensor(arriving))) return i;
  }
  return -1;
}

bool Branches::copy_backward(int first, int last, int arriving) {
  const int like = transposed_like(first, last, arriving), count = last - first;
  if (like < 0) return false;
  rename((*this)[like].input, (*this)[first].input);
  rename((*this)[like + count - 1].arriving, arriving);
  int attention = -1;  // any of the branches may recompute it
  for (int i = 0; i < count; ++i) {
    rename((*this)[like + i].forward, (*this)[first + i].forward);
    attention = std::max(attention, (*this)[first + i].attention);
  }
  for (int i = count; i-- > 0;) {
    const LoweredBranch& from = (*this)[like + i];
    LoweredBranch& to = (*this)[first + i];
    to.like = like + i;
    to.transposed = from.transposed;
    to.backward = copied(from.backward, attention);
    for (std::int32_t s = to.backward.first_step; s < to.backward.last_step; ++s)
      if (program::Step& step = program_.steps[at(s)]; step.is_recomputed)
        for (int other = 0; other < count; ++other) {  // what is recomputed is in one of these branches
          const Stretch &there = (*this)[like + other].forward, &here = (*this)[first + other].forward;
          if (there.first_step > step.repeated || step.repeated >= there.last_step) continue;
          step.repeated += here.first_step - there.first_step;
          break;
        }
    to.arriving = renamed(from.arriving);
    to.leaving = renamed(from.leaving);
    const auto need = [this](int id, bool needed, bool kept) {
      program::ProgramTensor& tensor = program_.tensors[at(id)];
      tensor.is_needed |= needed;
      tensor.is_kept |= kept;
    };
    for (int id = from.forward.first_tensor; id < from.forward.last_tensor; ++id)
      need(renamed(id), program_.tensor(id).is_needed, program_.tensor(id).is_kept);
    to.needs_input = from.needs_input;
    to.keeps_input = from.keeps_input;
    need(to.input, to.needs_input, to.keeps_input);
  }
  return true;
}

bool Branches::copy_reduced(int number) {
  LoweredBranch& to = (*this)[number];
  if (to.like == number) return false;
  const LoweredBranch& from = (*this)[to.like];
  to.reduced = copied(from.reduced, -1);
  to.first_gradient = static_cast<int>(gradients.size());
  for (int i = from.first_gradient; i < from.last_gradient; ++i)
    gradients.push_back({renamed(gradients[at(i)].of), renamed(gradients[at(i)].is)});
  to.last_gradient = static_cast<int>(gradients.size());
  return true;
}

bool Branches::copy_updated(int number) {
  LoweredBranch& to = (*this)[number];
  for (int i = 0; i < number; ++i) {
    const LoweredBranch& from = (*this)[i];
    if (from.transposed != to.transposed) continue;
    rename(from.forward, to.forward);
    rename(from.backward, to.backward);
    rename(from.reduced, to.reduced);
    to.updated = copied(from.updated, -1);
    return true;
  }
  return false;
}

}  // namespace assay::lower
