// Moving bytes: which links they cross, when the first byte arrives, and how long all of them take.
// Stages that stream (PCIe, chip to chip, HBM, the data-centre network) bound the time from below by the slowest one
// when they overlap perfectly, and from above by their sum.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/roofline/operation.h"

namespace assay::roofline {

/// An endpoint of a transfer.
///   hbm, vmem    the memory of every chip, bytes spread evenly
///   host         the DRAM of every host, bytes spread evenly
///   chip(x,y)    the HBM of one chip: torus coordinates, or its index in a switched network
///   slice(i)     every chip of one slice
struct Place {
  enum class Kind { hbm, vmem, host, chip, slice };
  Kind kind = Kind::hbm;
  std::int64_t index = 0;
};

Result<Place> parse_place(std::string_view text, const hardware::Cluster& cluster, std::string_view where);

/// One group of parallel links that all bytes (or a share of them) cross.
struct Stage {
  std::string name;
  double share = 1.0;            ///< share of the bytes that cross; bytes already at the destination do not move
  double lanes = 1.0;            ///< links, ports or chips that work in parallel
  Sourced<BytesPerSecond> rate;  ///< bandwidth of one lane, one way
  std::int64_t hops = 0;
  Sourced<Seconds> hop_latency;
};

/// The stages between two places, in order.
struct Route {
  std::vector<Stage> stages;
  std::vector<std::string> notes;
};
Result<Route> plan_route(const hardware::Cluster& cluster, const Place& from, const Place& to);

template <class N>
struct TransferTimes {
  std::vector<typename N::template Number<Dim{.sec = 1}>> stages;  ///< bandwidth term of each stage
  typename N::template Number<Dim{.sec = 1}> first_byte, lower, upper;
};

/// `compute` is the time of work on the data at the destination, which counts as one more stage; empty if absent.
template <class N>
TransferTimes<N> transfer_times(const N& num, const Route& route, Bytes bytes,
                                const std::optional<typename N::template Number<Dim{.sec = 1}>>& compute);

/// The slowest stage, or the work at the destination where that takes longer.
struct TransferLimiter {
  std::string name;
  Seconds time;
};
TransferLimiter transfer_limiter(const Route& route, const TransferTimes<Plain>& times, std::optional<Seconds> compute);

/// The slowest stage at the share of its rate that is reached in practice, and the latency of the route.
Seconds expected_transfer_time(const hardware::Chip& chip, const Route& route, const TransferTimes<Plain>& times,
                               std::optional<Seconds> compute);

}  // namespace assay::roofline
