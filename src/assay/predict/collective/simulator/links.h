// One-way links and the transfers that cross them, in flat arrays: the engine of the simulator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/base/units.h"

namespace assay::collective {

/// One-way links. A link carries one chunk at a time, first come first served; a chunk that has left the link arrives
/// `latency` later, while the link already carries the next one.
struct LinkNetwork {
  std::vector<SecondsPerByte> per_byte;
  std::vector<Seconds> latency;
  std::vector<std::int32_t> receiver;  ///< the device at the end; -1 for a switch
  std::int64_t devices = 0;

  std::int32_t add(BytesPerSecond bandwidth, Seconds hop_latency, std::int64_t to);
  std::size_t size() const { return per_byte.size(); }
};

/// Chunks on links, each released when all its dependencies have arrived. A transfer without a link is a join: it
/// takes no time, and stands for a reduction that needs all its inputs or for data that several transfers depend on.
class TransferGraph {
 public:
  static constexpr std::int32_t no_link = -1;

  /// `last` marks the hop that delivers the bytes to their destination.
  std::int32_t add(std::int32_t link, Bytes bytes, bool last);
  std::int32_t add_meeting() { return add(no_link, Bytes(), false); }
  void order(std::int32_t before, std::int32_t after);
  std::int32_t size() const { return static_cast<std::int32_t>(link.size()); }

  std::vector<std::int32_t> link, waits_for;
  std::vector<Bytes> bytes;
  std::vector<std::uint8_t> last;
  std::vector<std::int32_t> before, after;  ///< pairs: after[i] waits for before[i]
};

struct NetworkOutcome {
  Seconds time;                    ///< time of the last arrival
  std::vector<Bytes> link_bytes;   ///< bytes carried, by link
  std::vector<Seconds> link_busy;  ///< time that each link was busy
  std::vector<Bytes> delivered;    ///< bytes that last hops deliver to each device
  std::vector<Bytes> received;     ///< bytes that each device receives, whether forwarded or kept
  std::int64_t transfers = 0;
};

/// Runs all transfers. Among chunks that become ready for a link at the same time, the one that arrived over the lower
/// link goes first, so equal input gives equal output. Throws InternalError if some transfer is never released.
NetworkOutcome run_transfers(const LinkNetwork& network, const TransferGraph& graph);

}  // namespace assay::collective
