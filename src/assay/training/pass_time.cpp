#include "assay/training/pass_time.h"

#include <algorithm>

namespace assay::training {

double exposed_seconds(double background, double shared, double chain, const estimate::StepEffects& effects) {
  const double overlapped =
      std::max(0.0, background + shared - chain) + effects.contention * std::min(background, chain);
  return std::min(background, overlapped);
}

namespace {

/// Takes as much of `left` as there is, up to `most`.
double take(double most, double& left) {
  const double taken = std::min(most, left);
  left -= taken;
  return taken;
}

/// Adds up the traffic of one pass: what is waited for, what runs in the background.
class PassClock {
 public:
  PassClock(const PassProfile& pass, const StageLinks& links, bool overlap, const estimate::StepEffects& effects)
      : pass_(pass), links_(links), effects_(effects), overlap_(overlap) {
    time_.compute = pass.estimate.value();
    time_.ideal_compute = pass.compute.value();
    time_.ideal_memory = pass.memory.value();
    time_.recompute = pass.recomputed.value();
    time_.weight_gradients = pass.weight_gradients.value();
    time_.flops = pass.flops.value();
    time_.recomputed_flops = pass.recomputed_flops.value();
    reductions_room_ = gathers_room_ = pass.weight_gradients.value();
    compute_room_ = deferred_compute_room_ = pass.busy.value();
  }

  void add(const Traffic& traffic) {
    const network::CollectiveLine& line = links_.lines[traffic.over][StageLinks::line_of(traffic.kind)];
    const double bytes = traffic.bytes / links_.ways(traffic.divided), ideal = line.rate.value() * bytes;
    const double seconds = links_.forms[traffic.over][StageLinks::line_of(traffic.kind)].seconds(bytes, traffic.count);
    (traffic.once ? time_.all_once : time_.all_network) += std::max(ideal, traffic.count * line.floor.value());
    for (std::size_t r = 0; r < roles; ++r)
      if (traffic.over >> r & 1u) {
        (traffic.once ? time_.ideal_once : time_.ideal_network)[r] += ideal;
        break;
      }
    if (traffic.once) {
      (traffic.urgency == program::Urgency::ahead ? time_.new_weights : time_.gradients) += seconds;
    } else if (traffic.urgency == program::Urgency::critical || !overlap_) {
      wait_for(traffic, seconds);
    } else {
      background_ += seconds;
      background_links_ |= links_.resources[traffic.over];
    }
  }

  PassTime result() {
    if (!(deferred_tensor_ > time_.tensor)) {
      finish(time_, &Wait::seconds);
      return time_;
    }
    PassTime deferred = time_;
    deferred.tensor = deferred_tensor_;
    deferred.context = deferred_context_;
    finish(deferred, &Wait::deferred_seconds);
    finish(time_, &Wait::seconds);
    time_.deferral_chain = deferred.chain() - time_.chain();
    time_.deferral_cost = time_.deferral_chain + deferred.exposed - time_.exposed;
    time_.deferral_weight_gradients = deferred.weight_gradients - time_.weight_gradients;
    return time_;
  }

 private:
  /// A collective that the pass waits for; `deferred` where weight gradients are deferred and hide none of it.
  struct Wait {
    std::uint32_t links;
    double seconds, deferred_seconds;
  };

  void wait_for(const Traffic& traffic, double seconds) {
    const RoleSet over = traffic.urgency == program::Urgency::critical ? traffic.over : RoleSet(0);
    double deferred = seconds;
    if (over & role_bit(Role::expert)) {
      time_.expert += seconds;
    } else if (over & role_bit(Role::tensor)) {
      if (traffic.overlaps_weight_gradients) {
        const double hidden = take(seconds, program::gathers(traffic.kind) ? gathers_room_ : reductions_room_);
        seconds -= take((1.0 - effects_.tensor_backward_exposed) * hidden, compute_room_);
      }
      seconds -= take((1.0 - effects_.tensor_exposed) * seconds, compute_room_);
      deferred -= take((1.0 - effects_.tensor_exposed) * deferred, deferred_compute_room_);
      time_.tensor += seconds;
      deferred_tensor_ += deferred;
    } else if (over & role_bit(Role::context)) {
      seconds -= take((1.0 - effects_.context_exposed) * seconds, compute_room_);
      deferred -= take((1.0 - effects_.context_exposed) * deferred, deferred_compute_room_);
      time_.context += seconds;
      deferred_context_ += deferred;
    } else {
      time_.exposed += seconds;
    }
    waits_[wait_count_++] = {links_.resources[traffic.over], seconds, deferred};
  }

  void finish(PassTime& time, double Wait::*seconds) const {
    // Power is limited on average over many steps: the chip cools while it moves bytes or waits.
    if (const double compute = time.compute; compute > 0.0) {
      const double idle = std::max(0.0, 1.0 - pass_.busy.value() / time.chain());
      time.compute = std::max(compute - idle * pass_.slowed.value(), std::min(compute, pass_.launching.value()));
      time.recompute *= time.compute / compute;
      time.weight_gradients *= time.compute / compute;
    }
    // Background traffic does not hide behind collectives on the same links.
    double shared = 0.0;
    for (std::size_t i = 0; i < wait_count_; ++i)
      if (waits_[i].links & background_links_) shared += waits_[i].*seconds;
    time.exposed += exposed_seconds(background_, shared, time.chain(), effects_);
  }

  const PassProfile& pass_;
  const StageLinks& links_;
  const estimate::StepEffects& effects_;
  bool overlap_;
  PassTime time_;
  double background_ = 0;
  std::uint32_t background_links_ = 0;
  std::array<Wait, 2 * max_traffic> waits_;
  std::size_t wait_count_ = 0;
  // Seconds of weight-gradient products that are left to hide collectives. Input gradients take as long as weight
  // gradients, so that inputs that are gathered again have as much room as sums that are scattered.
  double reductions_room_ = 0, gathers_room_ = 0;
  // Seconds of products and attention that are left to hide collectives; the second if weight gradients are deferred.
  double compute_room_ = 0, deferred_compute_room_ = 0;
  double deferred_tensor_ = 0, deferred_context_ = 0;
};

}  // namespace

PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const estimate::StepEffects& effects) {
  PassClock clock(pass, links, overlap, effects);
  for (const Traffic& traffic : pass.traffic) clock.add(traffic);
  for (const Traffic& traffic : weights) clock.add(traffic);
  return clock.result();
}

}  // namespace assay::training
