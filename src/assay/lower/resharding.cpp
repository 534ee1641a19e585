// Moves a tensor from one sharding to another: slices first, as they are free, then the collectives that end partial
// sums, exchange axes between dimensions and gather.
#include <algorithm>

#include "assay/lower/builder.h"

namespace assay::lower {

/// The steps from one sharding of a tensor to another.
class Resharding {
 public:
  Resharding(Builder& builder, int from, const program::Sharding& target, program::Urgency urgency,
             std::string_view name)
      : build_(builder),
        program_(builder.program_),
        target_(target),
        urgency_(urgency),
        name_(name),
        from_(from),
        current_(from),
        now_(program_.tensor(from).sharding),
        begin_(program_.tensor(from).rank) {
    for (std::size_t i = 0, rank = begin_; i < rank; ++i)
      if (const program::AxisList here = now_.dims[i]; here != target.dims[i]) {
        held_ |= here.set();
        wanted_ |= target.dims[i].set();
        begin_ = std::min(begin_, i);
        end_ = i + 1;
      }
  }

  /// The tensor in the target sharding.
  int run() {
    slice_missing();  // free: splits in the target over axes that hold copies
    reduce();
    exchange();
    gather();
    if (current_ != from_) slice_missing();
    return current_;
  }

 private:
  /// Reshards `current_` to `now_`.
  void move(std::optional<program::Collective> kind, program::AxisSet axes) {
    const Bytes before = build_.bytes(current_);
    const int next = build_.copy_of(current_, name_);
    program::ProgramTensor& made = program_.tensors[static_cast<std::size_t>(next)];
    for (std::size_t i = begin_; i < end_; ++i) made.sharding.dims[i] = now_.dims[i];
    made.sharding.unreduced = now_.unreduced;
    made.elements = program::local_elements(program_, made);
    made.producer = static_cast<std::int16_t>(program_.steps.size());
    program::Step& step = program_.steps.emplace_back();
    step = program::movement(kind, axes, current_, next);
    step.urgency = urgency_;
    step.bytes = program::received_bytes(step, program_.ways(axes), before);
    current_ = next;
  }

  /// Splits dimensions over axes that hold copies of the tensor.
  void slice_missing() {
    const program::AxisSet missing = wanted_ & ~(held_ | now_.unreduced);
    for (std::size_t i = begin_; missing != 0 && i < end_; ++i) {
      const program::AxisList fresh = remaining(target_.dims[i], ~missing);
      const program::AxisList grown = joined(now_.dims[i], fresh);
      if (fresh.empty() || !begins_with(target_.dims[i], grown)) continue;
      now_.dims[i] = grown;
      held_ |= fresh.set();
      move(std::nullopt, fresh.set());
    }
  }

  /// Ends partial sums: scattered if the target splits over their axes, else on every device.
  void reduce() {
    for (std::size_t i = begin_; (wanted_ & now_.unreduced) != 0 && i < end_; ++i)
      if (const program::AxisSet scattered = target_.dims[i].set() & now_.unreduced) {
        now_.unreduced &= ~scattered;
        held_ |= scattered;
        now_.dims[i] = joined(now_.dims[i], remaining(target_.dims[i], ~scattered));
        move(program::Collective::reduce_scatter, scattered);
      }
    if (const program::AxisSet rest = now_.unreduced & ~target_.unreduced) {
      now_.unreduced &= ~rest;
      move(program::Collective::all_reduce, rest);
    }
  }

  /// Moves axes to another dimension; only inner ones can move, because blocks stay contiguous. One that has moved may
  /// make way for another.
  void exchange() {
    while (exchange_some()) {
    }
  }

  bool exchange_some() {
    bool exchanged = false;
    program::AxisSet leaving = 0;
    for (std::size_t i = begin_; (held_ & wanted_) != 0 && i < end_; ++i)
      leaving |= now_.dims[i].set() & ~target_.dims[i].set();
    for (std::size_t i = begin_; (leaving & wanted_) != 0 && i < end_; ++i)
      for (std::size_t j = begin_; j < end_; ++j) {
        const program::AxisSet moved = i == j ? 0 : now_.dims[i].set() & target_.dims[j].set();
        if (moved == 0) continue;
        const program::AxisList left = remaining(now_.dims[i], moved);
        const program::AxisList grown = joined(now_.dims[j], remaining(target_.dims[j], ~moved));
        if (!begins_with(now_.dims[i], left) || !begins_with(target_.dims[j], grown)) continue;
        now_.dims[i] = left;
        now_.dims[j] = grown;
        exchanged = true;
        move(program::Collective::all_to_all, moved);
      }
    return exchanged;
  }

  /// Gathers axes that the target does not split by, or splits by in another order, in one collective.
  void gather() {
    program::AxisSet gathered = 0;
    for (std::size_t i = begin_; held_ != 0 && i < end_; ++i)
      gathered |= now_.dims[i].set() & ~common_prefix(now_.dims[i], target_.dims[i]).set();
    if (gathered == 0) return;
    for (std::size_t i = begin_; i < end_; ++i) now_.dims[i] = remaining(now_.dims[i], gathered);
    held_ &= ~gathered;
    move(program::Collective::all_gather, gathered);
  }

  Builder& build_;
  program::Program& program_;
  const program::Sharding& target_;
  program::Urgency urgency_;
  std::string_view name_;
  int from_, current_;
  program::Sharding now_;
  // Dimensions [begin_, end_) change: their current axes, and the target's.
  std::size_t begin_, end_ = 0;
  program::AxisSet held_ = 0, wanted_ = 0;
};

int Builder::moved(int from, const program::Sharding& target, program::Urgency urgency, std::string_view name) {
  return Resharding(*this, from, target, urgency, name).run();
}

}  // namespace assay::lower
