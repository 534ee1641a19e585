// The clock of everything whose order is known: kernels on the chip, collectives on networks, launches of the host and
// copies, each on a lane that does one thing at a time. A collective may take a share of the chip while it lasts, and
// whoever needs its result waits for what is left of it.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/base/units.h"

namespace assay::clock {

struct Item {
  /// `block`: items that were run by themselves, such as the body of a loop.
  enum class Kind : std::uint8_t { kernel, collective, copy, launch, block };
  Kind kind = Kind::kernel;
  std::int32_t lane = 0;
  Seconds time;                          ///< by itself
  std::vector<std::int32_t> after = {};  ///< earlier items of the list that must have ended
  double share = 0;                      ///< that it takes of the chip while it lasts; items of the chip take none
};
/// The lane of kernels; each network, the host's queue of launches and each direction of copies has another.
inline constexpr std::int32_t chip_lane = 0;
inline constexpr std::int32_t network_lane = 1;

struct ItemSpan {
  Seconds start, end;
};

/// When each item runs: those of a lane in the order of the list, each as soon as its lane is free and what it waits
/// for has ended. Items of the chip progress at 1 - the shares of what runs at the same time.
std::vector<ItemSpan> run(const std::vector<Item>& items);

/// Calls sink(item, lane, start, end) for each item, in the order of the list.
template <class Sink>
void run(const std::vector<Item>& items, Sink&& sink) {
  const std::vector<ItemSpan> spans = run(items);
  for (std::size_t i = 0; i < items.size(); ++i) sink(i, items[i].lane, spans[i].start, spans[i].end);
}

struct Totals {
  Seconds whole, computation, communication;
  Seconds exposed;  ///< what the chip waits, and by how much its items are slowed
};
/// Without what blocks have inside.
Totals totals(const std::vector<Item>& items);

}  // namespace assay::clock
