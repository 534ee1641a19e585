#include "assay/training/pass_time.h"

#include <algorithm>

#include "assay/training/waiting.h"

namespace assay::training {
namespace {

/// A copy reads and writes each byte.
constexpr double copied_passes = 2.0;

/// Adds up the traffic of one pass: what is waited for, what runs in the background.
class PassClock {
 public:
  PassClock(const PassProfile& pass, const StageLinks& links, bool overlap, const TrainingSetup& setup)
      : pass_(pass), links_(links), setup_(setup), lanes_(setup.effects.overlap), overlap_(overlap) {
    time_.compute = pass.estimate.value();
    time_.ideal_compute = pass.compute.value();
    time_.ideal_memory = pass.memory.value();
    time_.recompute = pass.recomputed.value();
    time_.weight_gradients = pass.weight_gradients.value();
    time_.flops = pass.flops.value();
    time_.recomputed_flops = pass.recomputed_flops.value();
    if (pass.product_flops > Flops()) product_rate_ = pass.products.value() / pass.product_flops.value();
  }

  void add(const Traffic& traffic) {
    const network::CollectiveLine& line = links_.lines[traffic.over][StageLinks::line_of(traffic.kind)];
    const double ideal = line.rate.value() * bytes_of(traffic), seconds = seconds_of(traffic);
    (traffic.once ? time_.all_once : time_.all_network) += std::max(ideal, traffic.count * line.floor.value());
    for (std::size_t r = 0; r < roles; ++r)
      if (traffic.over >> r & 1u) {
        (traffic.once ? time_.ideal_once : time_.ideal_network)[r] += ideal;
        break;
      }
    if (traffic.once) {
      (traffic.urgency == program::Urgency::ahead ? time_.new_weights : time_.gradients) += seconds;
      return;
    }
    time_.copies += copies_of(traffic);
    if (is_waited_for(traffic)) {
      wait_for(traffic, seconds);
    } else {
      background_ += seconds;
      background_links_ |= links_.resources[traffic.over];
    }
  }

  PassWaits waits() const {
    PassTime time = time_;
    set_waits(time, 1.0, false);
    return {Seconds(time.tensor), Seconds(time.context), Seconds(time.expert)};
  }

  PassTime result() const {
    PassTime time = finished(false);
    if (!hides_behind_gradients_) return time;
    const PassTime deferred = finished(true);
    if (!(deferred.tensor > time.tensor)) return time;
    time.deferral_chain = deferred.chain() - time.chain();
    time.deferral_cost = time.deferral_chain + deferred.exposed - time.exposed;
    time.deferral_weight_gradients = deferred.weight_gradients - time.weight_gradients;
    return time;
  }

  /// What an entry adds to the pass `time`; entries in the order in which they were added, `next` of them waited for.
  TrafficTime reading(const Traffic& traffic, const PassTime& time, std::size_t& next) const {
    TrafficTime read;
    read.seconds = seconds_of(traffic);
    if (traffic.once) return read;
    read.copies = copies_of(traffic);
    if (is_waited_for(traffic)) {
      const double kernels = pass_.estimate.value();
      read.exposed = exposed(waits_[next++], kernels > 0.0 ? (time.compute - time.copies) / kernels : 1.0);
    } else {
      read.is_background = true;
      if (background_ > 0.0) read.exposed = read.seconds / background_ * (time.exposed - time_.exposed);
    }
    return read;
  }

 private:
  double bytes_of(const Traffic& traffic) const { return traffic.bytes / links_.ways(traffic.divided); }
  double seconds_of(const Traffic& traffic) const {
    return links_.forms[traffic.over][StageLinks::line_of(traffic.kind)].seconds(bytes_of(traffic), traffic.count);
  }
  bool is_waited_for(const Traffic& traffic) const {
    return traffic.urgency == program::Urgency::critical || !overlap_;
  }
  double copies_of(const Traffic& traffic) const {
    if (traffic.urgency == program::Urgency::critical || !lanes_.copies_weights ||
        !(traffic.over & role_bit(Role::fsdp)) || links_.ways(traffic.over) <= 1.0)
      return 0.0;
    return copied_passes * streamed(setup_.rates, Bytes(bytes_of(traffic))).value();
  }

  /// A collective that the pass waits for, or that runs next to the compute that needs it.
  struct Wait {
    std::uint32_t links = 0;
    double seconds = 0;
    double count = 1;    ///< equal collectives
    double beside = 0;   ///< seconds of products next to it
    double devices = 1;  ///< that share it
    bool is_tensor = false, is_ring = false, is_sum = false;
    bool overlaps_weight_gradients = false;
  };

  void wait_for(const Traffic& traffic, double seconds) {
    const RoleSet over = traffic.urgency == program::Urgency::critical ? traffic.over : RoleSet(0);
    Wait& wait = waits_[wait_count_++];
    wait = {links_.resources[traffic.over], seconds};
    if (over & role_bit(Role::expert)) {
      time_.expert += seconds;
    } else if (over & role_bit(Role::tensor)) {
      wait.is_tensor = true;
      wait.is_sum = traffic.kind == program::Collective::all_reduce;
      wait.count = traffic.count;
      wait.beside = product_rate_ * traffic.beside;
      wait.devices = links_.ways(traffic.over);
      wait.overlaps_weight_gradients =
          traffic.overlaps_weight_gradients && lanes_.tensor != estimate::TensorOverlap::none;
      hides_behind_gradients_ |= wait.overlaps_weight_gradients;
    } else if (over & role_bit(Role::context)) {
      wait.is_ring = lanes_.ring_context && traffic.kind != program::Collective::all_to_all;
      if (wait.is_ring) {
        ring_ += seconds;
        ring_devices_ = links_.ways(traffic.over);
      } else {
        time_.context += seconds;
      }
    } else {
      time_.exposed += seconds;
    }
  }

  /// The pass; with `deferred`, weight gradients are deferred and hide no collectives.
  PassTime finished(bool deferred) const {
    PassTime time = time_;
    set_waits(time, 1.0, deferred);
    if (const double compute = time.compute; compute > 0.0) {
      time.compute = cooled(Plain{}, {Seconds(compute), Seconds(time.tensor), Seconds(time.context),
                                      Seconds(time.expert), pass_.busy, pass_.slowed, pass_.launching})
                         .value();
      const double faster = time.compute / compute;
      time.recompute *= faster;
      time.weight_gradients *= faster;
      if (faster < 1.0) set_waits(time, faster, deferred);  // there is less to hide behind
    }
    time.compute += time.copies;
    // Background traffic does not hide behind collectives on the same links.
    double shared = 0.0;
    for (std::size_t i = 0; i < wait_count_; ++i)
      if (waits_[i].links & background_links_) shared += waits_[i].seconds;
    time.exposed += waited(background_, time.chain() - shared, lanes_.chip_share);
    return time;
  }

  /// With kernels `faster` times as long as in the profile.
  void set_waits(PassTime& time, double faster, bool deferred) const {
    time.tensor = 0.0;
    for (std::size_t i = 0; i < wait_count_; ++i)
      if (waits_[i].is_tensor) time.tensor += tensor_wait(waits_[i], faster, deferred);
    time.context = time_.context + ring_wait(faster);
  }

  double exposed(const Wait& wait, double faster) const {
    if (wait.is_tensor) return tensor_wait(wait, faster, false);
    if (wait.is_ring) return ring_ > 0.0 ? wait.seconds / ring_ * ring_wait(faster) : 0.0;
    return wait.seconds;
  }

  double tensor_wait(const Wait& wait, double faster, bool deferred) const {
    if (wait.overlaps_weight_gradients && !deferred) {
      const double beside = faster * std::min(wait.beside, pass_.weight_gradients.value());
      return waited(wait.seconds, beside, lanes_.chip_share);
    }
    if (lanes_.tensor != estimate::TensorOverlap::all || wait.beside == 0.0) return wait.seconds;
    // Of a sum, the half that scatters is cut; all devices wait for the half that gathers.
    const double cut = (wait.is_sum ? 0.5 : 1.0) * wait.seconds / wait.count;
    const double each = waited_in_pieces(cut, faster * wait.beside / wait.count, wait.devices, lanes_);
    return wait.seconds - wait.count * (cut - each);
  }

  double ring_wait(double faster) const {
    const double beside = (ring_devices_ - 1.0) / ring_devices_ * faster * pass_.attention.value();
    return waited(ring_, beside, lanes_.chip_share);
  }

  const PassProfile& pass_;
  const StageLinks& links_;
  const TrainingSetup& setup_;
  const estimate::CollectiveOverlap& lanes_;
  bool overlap_;
  bool hides_behind_gradients_ = false;
  PassTime time_;
  double product_rate_ = 0;  ///< seconds of a FLOP
  double background_ = 0;
  std::uint32_t background_links_ = 0;
  double ring_ = 0, ring_devices_ = 1;
  std::array<Wait, 2 * max_traffic> waits_;
  std::size_t wait_count_ = 0;
};

}  // namespace

PassWaits pass_waits(const PassProfile& pass, const StageLinks& links, bool overlap, const TrainingSetup& setup) {
  PassClock clock(pass, links, overlap, setup);
  for (const Traffic& traffic : pass.traffic) clock.add(traffic);
  return clock.waits();
}

PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const TrainingSetup& setup) {
  PassClock clock(pass, links, overlap, setup);
  for (const Traffic& traffic : pass.traffic) clock.add(traffic);
  for (const Traffic& traffic : weights) clock.add(traffic);
  return clock.result();
}

PassReading read_pass(const PassProfile& pass, const StageLinks& links, bool overlap, const TrainingSetup& setup) {
  PassClock clock(pass, links, overlap, setup);
  for (const Traffic& traffic : pass.traffic) clock.add(traffic);
  PassReading read{clock.result(), {}};
  std::size_t next = 0;
  for (const Traffic& traffic : pass.traffic) read.traffic.push_back(clock.reading(traffic, read.time, next));
  return read;
}

}  // namespace assay::training
