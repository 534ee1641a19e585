// How long real collectives take: latency, bandwidth and pipelining, in a node and across nodes.
#pragma once
#include <array>
#include <cstdint>

#include "assay/hardware/calibration.h"
#include "assay/predict/collective/collectives.h"

namespace assay::collective {

/// The measured curve of a kind of collective, or of the kind that it behaves like.
template <class Calibration>
auto& curve_of(Calibration& fit, program::Collective kind) {
  return fit.*hardware::collective_curves[static_cast<std::size_t>(program::facts(kind).measured_as)];
}

/// Which algorithm a collective uses; `automatic` takes the fastest, as libraries do.
enum class CollectiveAlgorithm { automatic, ring };

/// One way to run a collective: latency + per_byte x + the rest of the time to fill its pipeline, x = the bytes of the
/// array as collective_cost() counts them.
template <class N>
struct CollectiveWay {
  NumberOf<N, Seconds> latency{};
  NumberOf<N, SecondsPerByte> per_byte{};
  NumberOf<N, Seconds> pipeline{};  ///< time until a long array has filled it
};
inline bool operator==(const CollectiveWay<Plain>& a, const CollectiveWay<Plain>& b) {
  return a.latency == b.latency && a.per_byte == b.per_byte && a.pipeline == b.pipeline;
}

/// The estimate of a kind of collective over a group: the fastest of its ways.
template <class N>
struct CollectiveForm : CollectiveWay<N> {
  NumberOf<N, Seconds> fill{};  ///< pipelining of one byte at the best chunk size; grows as the root of the bytes
  /// Algorithms and protocols with less latency and less bandwidth.
  std::array<CollectiveWay<N>, 3> quicker{};
  std::uint8_t quicker_ways = 0;

  CollectiveForm() = default;
  explicit CollectiveForm(const CollectiveWay<N>& way, NumberOf<N, Seconds> filling = {})
      : CollectiveWay<N>(way), fill(filling) {}

  /// The way for long arrays.
  CollectiveWay<N>& bulk() { return *this; }
  const CollectiveWay<N>& bulk() const { return *this; }
};
inline bool operator==(const CollectiveForm<Plain>& a, const CollectiveForm<Plain>& b) {
  return a.bulk() == b.bulk() && a.fill == b.fill && a.quicker_ways == b.quicker_ways && a.quicker == b.quicker;
}
/// Whether `a` takes at most as long as `b`, whatever the bytes; false where that is not obvious.
bool never_slower(const CollectiveForm<Plain>& a, const CollectiveForm<Plain>& b);
/// Makes `least` a lower bound of itself and of another form.
void lower_to(CollectiveForm<Plain>& least, const CollectiveForm<Plain>& other);

/// Time of `count` collectives of `bytes` altogether, in one way. Chunks of an array that is shorter than the pipeline
/// are smaller, so that filling it takes at most twice the time of the bytes.
template <class N>
NumberOf<N, Seconds> way_time(const N& num, const CollectiveWay<N>& way, NumberOf<N, Bytes> bytes, double count) {
  constexpr const char* source = "one after the other";
  const auto moved = way.per_byte * bytes;
  const auto time = num.times("collectives", count, source, way.latency) + moved;
  if (!(way.pipeline.value() > 0.0) || !(moved.value() > 0.0)) return time;
  const auto filling = num.times("collectives", count, source, way.pipeline);
  return time + filling / (num.constant(1.0) + filling / (num.constant(2.0) * moved));
}

/// Time of `count` collectives of `bytes` altogether.
template <class N>
NumberOf<N, Seconds> collective_time(const N& num, const CollectiveForm<N>& form, NumberOf<N, Bytes> bytes,
                                     double count = 1.0) {
  auto time = way_time(num, form.bulk(), bytes, count);
  if (form.fill.value() > 0.0)
    time = time + form.fill * sqrt(num.times("collectives", count, "one after the other", bytes / num.constant(1_B)));
  for (std::size_t i = 0; i < form.quicker_ways; ++i) {
    const CollectiveWay<N>& way = form.quicker[i];
    if constexpr (!N::traced)
      if (count * way.latency + way.per_byte * bytes >= time) continue;  // filling the pipeline only adds to it
    time = min(time, way_time(num, way, bytes, count));
  }
  return time;
}

/// The fabric and the algorithm that collectives run on, and sources for explanations.
struct CollectiveSoftware {
  hardware::Fabric fabric = hardware::Fabric::infiniband;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  const SourceTable* sources = nullptr;                  ///< sources of the calibration, for explanations
  const collective::CollectiveLabels* labels = nullptr;  ///< labels of the cluster, for explanations
};

/// Measured collectives. Inside a node: latency + member (n - 1) + x / B + 2 sqrt(chunk x / B), x = the bytes a device
/// receives; the square root is the pipelining cost at the best chunk size. Members that outnumber the cores they run
/// on take turns, and everything takes as many turns. Switches may reduce instead. Across nodes the interfaces of all
/// chips of a node work for the group, and the fastest four of what the library can run count: rings, trees, and
/// switches with a tree between nodes, each under its protocols, with the steps of the library's own model and what the
/// fabric adds to each. Exchanges take a step for every doubling of the nodes.
template <class N>
CollectiveForm<N> collective_form(const N& num, const hardware::CollectiveCalibration& fit, program::Collective kind,
                                  const collective::CollectiveGroup& group, const CollectiveSoftware& software = {});
/// Collectives of a chip without a calibration: the share of the network's bandwidth that the chip file says good
/// collectives reach, the hops, and the fixed time of a collective.
template <class N>
CollectiveForm<N> uncalibrated_form(const N& num, const hardware::Chip& chip, program::Collective kind,
                                    const collective::CollectiveGroup& group,
                                    const collective::CollectiveLabels* labels = nullptr);

/// An all-reduce by a kernel of a serving engine: every device reads the whole arrays of all others. `gathered` is the
/// time to gather the bytes of one array.
template <class N>
NumberOf<N, Seconds> one_shot_time(const N& num, const Given<Seconds>& latency, NumberOf<N, Seconds> gathered,
                                   double devices) {
  return num.given("latency in one shot", latency) +
         num.named("reading all arrays", num.given("arrays", devices, "one of each chip") * gathered);
}
/// A kernel of serving engines that exchanges experts' tokens, as measured on chips of one architecture.
struct MeasuredExchange {
  hardware::ExchangeKernel kernel;
  Given<Seconds> start;
  Given<double> share;  ///< of the links' bandwidth
};
/// Its time; `copies` are those of all devices, also the ones that stay.
template <class N>
NumberOf<N, Seconds> exchange_time(const N& num, const MeasuredExchange& exchange,
                                   const collective::CollectiveGroup& group, NumberOf<N, Bytes> copies,
                                   const collective::CollectiveLabels* labels = nullptr) {
  const auto line = collective::collective_line(num, program::Collective::ragged_all_to_all, group, labels);
  const auto links =
      num.named("over the links", line.rate * copies / num.given("share of the bandwidth", exchange.share));
  const auto memory = num.named("out of the memory", copies / num.given("devices", group.devices, "of the group") /
                                                         num.given("rate of the kernel", exchange.kernel.rate));
  return num.given("start of the kernel", exchange.start) + max(links, memory);
}

/// The measured estimate for an array of `bytes`.
inline Seconds collective_estimate(const hardware::CollectiveCalibration& fit, program::Collective kind, Bytes bytes,
                                   const collective::CollectiveGroup& group,
                                   hardware::Fabric fabric = hardware::Fabric::infiniband,
                                   CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic) {
  return collective_time(Plain{}, collective_form(Plain{}, fit, kind, group, {fabric, algorithm}), bytes);
}

}  // namespace assay::collective
