#include "assay/predict/training/pass_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "assay/predict/training/waiting.h"

namespace assay::training {
namespace {

/// A copy reads and writes each byte.
constexpr double copied_passes = 2.0;

constexpr const char* in_a_row = "one after the other";

/// What one collective of an entry moves: whole arrays of one group, each device a part of them.
template <class N, class Links>
NumberOf<N, Bytes> moved_bytes(const N& num, const Links& links, const Traffic& traffic) {
  const auto all = num.given("bytes", traffic.bytes / traffic.count, "whole arrays of one group, in one pass");
  if constexpr (N::traced)
    if (links.ways(traffic.divided) == 1.0) return all;
  return all / num.given("shards", links.ways(traffic.divided), "of the arrays, over other devices");
}

/// "all-gather over 8 chips".
template <class Links>
std::string collective_text(const Links& links, const Traffic& traffic) {
  return fmt::format("{} over {} chips", program::name(traffic.kind), links.ways(traffic.over));
}

/// Adds up the traffic of one pass: what is waited for, what runs in the background. One formula prices and derives it.
template <class N, class Kernels, class Links>
class PassClock {
 public:
  using Time = NumberOf<N, Seconds>;
  using Parts = PassParts<N>;

  PassClock(const N& num, const Kernels& kernels, const Links& links, bool overlap, const TrainingSetup& setup)
      : num_(num),
        kernels_(kernels),
        links_(links),
        setup_(setup),
        lanes_(setup.effects.overlap),
        costs_(overlap_numbers(num, lanes_)),
        overlap_(overlap) {
    time_.compute = kernels.estimate;
    time_.weight_gradients = kernels.weight_gradients;
    time_.recompute = kernels.recomputed;
    if (kernels.product_flops.value() > 0.0) product_rate_ = kernels.products / kernels.product_flops;
  }

  void add(const Traffic& traffic) {
    const Time each = each_of(traffic);
    const Time seconds = num_.times("collectives", traffic.count, in_a_row, each);
    if (traffic.once) {
      Time& sum = traffic.urgency == program::Urgency::ahead ? time_.new_weights : time_.gradients;
      sum = sum + seconds;
      return;
    }
    time_.copies = time_.copies + copies_of(traffic);
    if (is_waited_for(traffic)) {
      wait_for(traffic, each, seconds);
    } else {
      background_ = background_ + seconds;
      background_links_ |= links_.resources_of(traffic.over);
    }
  }

  Parts result() const {
    Parts time = finished(false);
    if (!hides_behind_gradients_) return time;
    const Parts deferred = finished(true);
    if (!(deferred.tensor.value() > time.tensor.value())) return time;
    time.deferral_chain = deferred.chain() - time.chain();
    time.deferral_cost = time.deferral_chain + deferred.exposed - time.exposed;
    time.deferral_weight_gradients = deferred.weight_gradients - time.weight_gradients;
    return time;
  }

  /// What a collective of an entry adds to the pass `time`; entries in the order in which they were added, `next` of
  /// them waited for.
  TrafficTime reading(const Traffic& traffic, const Parts& time, std::size_t& next) const {
    TrafficTime read;
    read.each = each_of(traffic);
    if (traffic.once) return read;
    read.copies = copies_of(traffic) / traffic.count;
    if (is_waited_for(traffic)) {
      const Wait& wait = waits_[next++];
      const Faster faster = kernels_.estimate > Seconds() ? (time.compute - time.copies) / kernels_.estimate : 1.0;
      read.exposed = read.waited = exposed(wait, faster) / wait.count;
      if (wait.is_in_chain) read.exposed = beyond_host(chain_waits(faster)) * read.waited;
    } else {
      read.is_background = true;
      if (background_ > Seconds()) read.exposed = read.each / background_ * (time.exposed - time_.exposed);
      read.waited = read.exposed;
    }
    return read;
  }

  /// The share of the slowdown under power that the pass avoids.
  NumberOf<N, double> avoided() const {
    Parts time = time_;
    set_waits(time, std::nullopt, false);
    return avoided_by(time);
  }

 private:
  NumberOf<N, double> avoided_by(const Parts& time) const {
    if (!(kernels_.slowed.value() > 0.0)) return {};
    return slowdown_avoided(num_, kernels_, num_.named("pass with its collectives", time.chain()), setup_);
  }

  Time each_of(const Traffic& traffic) const {
    const Time time =
        collective::collective_time(num_, links_.form(traffic.over, traffic.kind), moved_bytes(num_, links_, traffic));
    if constexpr (N::traced)
      return num_.named(collective_text(links_, traffic), time);
    else
      return time;
  }
  bool is_waited_for(const Traffic& traffic) const {
    return traffic.urgency == program::Urgency::critical || !overlap_;
  }
  Time copies_of(const Traffic& traffic) const {
    if (traffic.urgency == program::Urgency::critical || !lanes_.copies_weights ||
        !(traffic.over & role_bit(Role::fsdp)) || links_.ways(traffic.over) <= 1.0)
      return Time();
    const Time each = num_.given("reads and writes", copied_passes, "of a copy") * moved_bytes(num_, links_, traffic) /
                      kernel::stream_rate(num_, setup_.rates);
    return num_.named("copies of weights", num_.times("collectives", traffic.count, in_a_row, each));
  }

  /// A collective that the pass waits for, or that runs next to the compute that needs it.
  struct Wait {
    std::uint32_t links = 0;
    Time each{}, seconds{};  ///< of one of `count` equal collectives, and of all
    double count = 1;
    Time beside{};       ///< products next to it
    double devices = 1;  ///< that share it
    bool is_in_chain = true, is_tensor = false, is_ring = false, is_sum = false;
    bool overlaps_weight_gradients = false;
  };

  void wait_for(const Traffic& traffic, const Time& each, const Time& seconds) {
    const RoleSet over = traffic.urgency == program::Urgency::critical ? traffic.over : RoleSet(0);
    Wait wait{links_.resources_of(traffic.over), each, seconds, traffic.count};
    if (over & role_bit(Role::expert)) {
      time_.expert = time_.expert + seconds;
    } else if (over & role_bit(Role::tensor)) {
      wait.is_tensor = true;
      wait.is_sum = traffic.kind == program::Collective::all_reduce;
      if (traffic.beside > Flops() && product_rate_.value() > 0.0)
        wait.beside =
            num_.named("products that hide it", product_rate_ * num_.given("FLOP that hide it", traffic.beside,
                                                                           "products that read or make what is moved"));
      wait.devices = links_.ways(traffic.over);
      wait.overlaps_weight_gradients =
          traffic.overlaps_weight_gradients && lanes_.tensor != numbers::TensorOverlap::none;
      hides_behind_gradients_ |= wait.overlaps_weight_gradients;
    } else if (over & role_bit(Role::context)) {
      wait.is_ring = lanes_.ring_context && traffic.kind != program::Collective::all_to_all;
      if (wait.is_ring) {
        ring_ = ring_ + seconds;
        ring_devices_ = links_.ways(traffic.over);
      } else {
        time_.context = time_.context + seconds;
      }
    } else {
      wait.is_in_chain = false;
      time_.exposed = time_.exposed + seconds;
    }
    waits_.push_back(wait);
  }

  /// The pass; with `deferred`, weight gradients are deferred and hide no collectives.
  Parts finished(bool deferred) const {
    Parts time = time_;
    set_waits(time, std::nullopt, deferred);
    if (kernels_.slowed.value() > 0.0) {
      const Time compute = time.compute;
      time.compute = num_.named("kernels at the clock that power allows", at_clock(num_, kernels_, avoided_by(time)));
      if (time.compute.value() < compute.value()) {  // there is less to hide behind
        const Scale faster = num_.named("faster by", time.compute / compute);
        time.recompute = faster * time.recompute;
        time.weight_gradients = faster * time.weight_gradients;
        set_waits(time, faster, deferred);
      }
    }
    hide_behind_host(time);
    time.compute = time.compute + time.copies;
    // Background traffic does not hide behind collectives on the same links.
    Time shared{};
    for (const Wait& wait : waits_)
      if (wait.links & background_links_) shared = shared + wait.seconds;
    const Time beside = num_.named("pass that hides it", time.chain() - shared);
    time.exposed = time.exposed + waited(background_, beside, costs_.chip_share);
    return time;
  }

  using Scale = NumberOf<N, double>;
  /// Kernels over those of the profile, if they are faster.
  using Faster = std::optional<Scale>;
  static Time scaled(const Faster& faster, const Time& time) { return faster ? *faster * time : time; }

  /// With kernels `faster` times as long as in the profile.
  void set_waits(Parts& time, const Faster& faster, bool deferred) const {
    time.tensor = Time();
    for (const Wait& wait : waits_)
      if (wait.is_tensor) time.tensor = time.tensor + tensor_wait(wait, faster, deferred);
    time.context = time_.context + ring_wait(faster);
  }

  /// Critical collectives run on while the chip waits for the host: what is left of them adds to the pass.
  void hide_behind_host(Parts& time) const {
    const Time waits = time.tensor + time.context + time.expert;
    if (!(kernels_.idle.value() > 0.0) || !(waits.value() > 0.0)) return;
    const Scale left = beyond_host(waits);
    time.tensor = left * time.tensor;
    time.context = left * time.context;
    time.expert = left * time.expert;
  }
  /// The share of `waits` that outlasts the launches of the host.
  Scale beyond_host(const Time& waits) const {
    if (!(waits.value() > kernels_.idle.value()))
      return num_.given("beyond the launches", 0.0, "the host takes longer");
    if (!(kernels_.idle.value() > 0.0))
      return num_.given("beyond the launches", 1.0, "the chip never waits for the host");
    return num_.named("beyond the launches", (waits - kernels_.idle) / waits);
  }
  Time chain_waits(const Faster& faster) const {
    Time sum{};
    for (const Wait& wait : waits_)
      if (wait.is_in_chain) sum = sum + exposed(wait, faster);
    return sum;
  }

  Time exposed(const Wait& wait, const Faster& faster) const {
    if (wait.is_tensor) return tensor_wait(wait, faster, false);
    if (wait.is_ring) return ring_ > Seconds() ? wait.seconds / ring_ * ring_wait(faster) : Time();
    return wait.seconds;
  }

  Time tensor_wait(const Wait& wait, const Faster& faster, bool deferred) const {
    if (wait.overlaps_weight_gradients && !deferred) {
      const Time beside = scaled(faster, min(wait.beside, kernels_.weight_gradients));
      return exposed_part(wait.each, waited(wait.seconds, beside, costs_.chip_share));
    }
    if (lanes_.tensor != numbers::TensorOverlap::all || wait.beside.value() == 0.0) return wait.seconds;
    const Scale devices = num_.given("pieces", wait.devices, "one for each device");
    const Time product = part_of(wait, scaled(faster, wait.beside));
    const auto all = [&](const Time& one) { return num_.times("collectives", wait.count, in_a_row, one); };
    if (!wait.is_sum) {
      const Time pieces = waited_in_pieces(wait.each, product, devices, costs_);
      return exposed_part(wait.each, all(wait.count == 1.0 ? pieces : num_.named("in pieces", pieces)));
    }
    // Of a sum, the half that scatters is cut; all devices wait for the half that gathers.
    const Time half = num_.given("half", 0.5, "of a sum scatters, the other gathers") * wait.each;
    return exposed_part(wait.each,
                        all(half + num_.named("in pieces", waited_in_pieces(half, product, devices, costs_))));
  }

  /// The part of a time for one of equal collectives.
  Time part_of(const Wait& wait, const Time& time) const {
    if constexpr (N::traced)
      if (wait.count == 1.0) return time;
    return time / num_.given("collectives", wait.count, in_a_row);
  }

  /// Names what is exposed of collectives.
  Time exposed_part(const Time& all, const Time& part) const {
    if constexpr (N::traced)
      return num_.named("exposed " + num_.ledger->at(all.id).name, part);
    else
      return part;
  }

  Time ring_wait(const Faster& faster) const {
    if (ring_.value() == 0.0) return Time();
    const Scale devices = num_.given("pieces", ring_devices_, "one for each device");
    const Time beside = (devices - 1.0) / devices * scaled(faster, kernels_.attention);
    return num_.named("exposed ring of keys and values", waited(ring_, beside, costs_.chip_share));
  }

  const N& num_;
  const Kernels& kernels_;
  const Links& links_;
  const TrainingSetup& setup_;
  const numbers::CollectiveOverlap& lanes_;
  decltype(overlap_numbers(std::declval<const N&>(), lanes_)) costs_;
  bool overlap_;
  bool hides_behind_gradients_ = false;
  Parts time_;
  decltype(std::declval<Time>() / std::declval<NumberOf<N, Flops>>()) product_rate_{};
  Time background_{};
  std::uint32_t background_links_ = 0;
  Time ring_{};
  double ring_devices_ = 1;
  collective::FixedList<Wait, 2 * max_traffic> waits_;
};

using PlainClock = PassClock<Plain, PassProfile, StageLinks>;
using DerivedClock = PassClock<Traced, DerivedKernels, DerivedLinks>;

/// Adds what an entry takes at full bandwidth, and returns it.
template <class N, class Links>
NumberOf<N, Seconds> add_ideal(const N& num, const Traffic& traffic, const Links& links, IdealPass<N>& pass) {
  auto time = num.times("collectives", traffic.count, in_a_row,
                        links.ideal_per_byte(traffic.over, traffic.kind) * moved_bytes(num, links, traffic));
  if constexpr (N::traced) time = num.named(collective_text(links, traffic) + " at full bandwidth", time);
  if (traffic.over == 0) return time;
  const auto first = static_cast<std::size_t>(std::countr_zero(traffic.over));
  auto& sum = (traffic.once ? pass.once : pass.network)[first];
  sum = sum + time;
  return time;
}

}  // namespace

PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const TrainingSetup& setup) {
  const Plain num;
  PlainClock clock(num, pass, links, overlap, setup);
  PassTime time;
  time.ideal.compute = pass.compute;
  time.ideal.memory = pass.memory;
  time.flops = pass.flops;
  time.recomputed_flops = pass.recomputed_flops;
  const auto add = [&](const Traffic& traffic) {
    clock.add(traffic);
    const Seconds floor = links.lines[traffic.over][StageLinks::line_of(traffic.kind)].floor;
    const Seconds ideal = add_ideal(num, traffic, links, time.ideal);
    (traffic.once ? time.all_once : time.all_network) += std::max(ideal, traffic.count * floor);
  };
  for (const Traffic& traffic : pass.traffic) add(traffic);
  for (const Traffic& traffic : weights) add(traffic);
  static_cast<PassParts<Plain>&>(time) = clock.result();
  return time;
}

PassReading read_pass(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                      const TrainingSetup& setup) {
  const Plain num;
  PlainClock clock(num, pass, links, overlap, setup);
  for (const Traffic& traffic : pass.traffic) clock.add(traffic);
  for (const Traffic& traffic : weights) clock.add(traffic);
  PassReading read{clock.result(), clock.avoided(), {}};
  std::size_t next = 0;
  for (const Traffic& traffic : pass.traffic) read.traffic.push_back(clock.reading(traffic, read.time, next));
  for (const Traffic& traffic : weights) read.traffic.push_back(clock.reading(traffic, read.time, next));
  return read;
}

NumberOf<Traced, Seconds> at_clock(const Traced& num, const DerivedKernels& kernels,
                                   const NumberOf<Traced, double>& avoided) {
  NumberOf<Traced, Seconds> sum;
  for (const DerivedKernels::Kernel& one : kernels.each)
    sum = sum + (one.slowed.value() > 0.0 ? num.named(one.name, one.duration - avoided * one.slowed) : one.duration);
  if (kernels.idle.value() > 0.0) sum = sum + kernels.idle;
  return kernels.launching.value() > 0.0 ? max(sum, kernels.launching) : sum;
}

DerivedPass derive_pass_time(const Traced& num, const DerivedKernels& kernels, std::span<const DerivedTraffic> traffic,
                             const DerivedLinks& links, bool overlap, const TrainingSetup& setup) {
  DerivedClock clock(num, kernels, links, overlap, setup);
  DerivedPass pass;
  pass.ideal.compute = kernels.compute;
  pass.ideal.memory = kernels.memory;
  for (const auto& [entry, bytes, beside] : traffic) {
    Origins origins(num);
    origins.add("bytes", bytes);
    origins.add("FLOP that hide it", beside);
    clock.add(*entry);
    if (links.ways(entry->over) > 1.0) add_ideal(num, *entry, links, pass.ideal);
  }
  static_cast<PassParts<Traced>&>(pass) = clock.result();
  return pass;
}

}  // namespace assay::training
