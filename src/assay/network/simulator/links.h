// One-way links and the transfers that cross them: the engine of the simulator.
// Bytes and seconds are plain doubles in base units, in flat arrays; the simulator's interface has typed quantities.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::network {

/// One-way links. A link carries one chunk at a time, first come first served; a chunk that has left the link arrives
/// `latency` later, while the link already carries the next one.
struct LinkNetwork {
  std::vector<double> seconds_per_byte, latency;
  std::vector<std::int32_t> receiver;  ///< the device at the end; -1 for a switch
  std::int64_t devices = 0;

  std::int32_t add(double bandwidth, double hop_latency, std::int64_t to);
  std::size_t size() const { return seconds_per_byte.size(); }
};

/// Chunks on links, each released when all its dependencies have arrived. A transfer without a link is a join: it
/// takes no time, and stands for a reduction that needs all its inputs or for data that several transfers depend on.
class TransferGraph {
 public:
  static constexpr std::int32_t no_link = -1;

  /// `last` marks the hop that delivers the bytes to their destination.
  std::int32_t add(std::int32_t link, double bytes, bool last);
  std::int32_t add_meeting() { return add(no_link, 0.0, false); }
  void order(std::int32_t before, std::int32_t after);
  std::int32_t size() const { return static_cast<std::int32_t>(link.size()); }

  std::vector<std::int32_t> link, waits_for;
  std::vector<double> bytes;
  std::vector<std::uint8_t> last;
  std::vector<std::int32_t> before, after;  ///< pairs
};

struct NetworkOutcome {
  double time = 0;                 ///< of the last arrival
  std::vector<double> link_bytes;  ///< carried, by link
  std::vector<double> link_busy;   ///< seconds, by link
  std::vector<double> delivered;   ///< to each device, by last hops
  std::vector<double> received;    ///< by each device, whether forwarded or kept
  std::int64_t transfers = 0;
};

/// Runs all transfers. Among chunks that become ready for a link at the same time, the one that arrived over the lower
/// link goes first, so equal input gives equal output. Throws InternalError if some transfer is never released.
NetworkOutcome run_transfers(const LinkNetwork& network, const TransferGraph& graph);

}  // namespace assay::network
