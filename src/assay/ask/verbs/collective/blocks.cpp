#include "assay/ask/verbs/collective/collective.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::verbs::collective_verb {
namespace {

constexpr std::int64_t most_devices = 16;

/// One ring or line that data moves along by a neighbour a hop.
struct HopLine {
  std::int64_t devices = 1, hops = 0;
  bool ring = false, one_way = false;

  /// Hops from `from` to `to`, negative where it goes down. On a ring the shorter way; up where both are as long.
  std::int64_t offset(std::int64_t from, std::int64_t to) const {
    if (!ring) return to - from;
    const std::int64_t up = (to - from + devices) % devices;
    return one_way || 2 * up <= devices ? up : up - devices;
  }
  std::int64_t place(std::int64_t from, std::int64_t offset) const { return (from + offset + devices) % devices; }
};

std::vector<std::int64_t> every(std::int64_t devices) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(devices));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

HeldBlocks nothing(const HopLine& line) { return HeldBlocks(static_cast<std::size_t>(line.devices)); }

std::vector<HeldBlock>& of_device(HeldBlocks& held, std::int64_t device) {
  return held[static_cast<std::size_t>(device)];
}

/// Every block has come as far from its device as there were hops. `whole`: it is a sum over all devices.
HeldBlocks gathered(const HopLine& line, std::int64_t hop, bool whole) {
  HeldBlocks held = nothing(line);
  for (std::int64_t device = 0; device < line.devices; ++device)
    for (std::int64_t block = 0; block < line.devices; ++block)
      if (std::abs(line.offset(block, device)) <= hop)
        of_device(held, device).push_back({block, whole ? every(line.devices) : std::vector{block}});
  return held;
}

/// The same backwards: partial sums of a block wait at the distance that is left, with those from beyond in them.
HeldBlocks reduced(const HopLine& line, std::int64_t hop) {
  HeldBlocks held = nothing(line);
  const std::int64_t left = line.hops - hop;
  for (std::int64_t block = 0; block < line.devices; ++block)
    for (std::int64_t device = 0; device < line.devices; ++device) {
      const std::int64_t away = line.offset(block, device);
      if (std::abs(away) > left) continue;
      HeldBlock sum{block, {}};
      for (std::int64_t other = 0; other < line.devices; ++other) {
        const std::int64_t beyond = line.offset(block, other);
        const bool same_side = away == 0 || (away > 0) == (beyond > 0);
        if (other == device || (std::abs(away) == left && same_side && std::abs(beyond) > left))
          sum.from.push_back(other);
      }
      of_device(held, device).push_back(std::move(sum));
    }
  return held;
}

/// What `from` sends to `to` is as far on its way as there were hops.
HeldBlocks exchanged(const HopLine& line, std::int64_t hop) {
  HeldBlocks held = nothing(line);
  for (std::int64_t from = 0; from < line.devices; ++from)
    for (std::int64_t to = 0; to < line.devices; ++to) {
      const std::int64_t offset = line.offset(from, to);
      of_device(held, line.place(from, std::clamp(offset, -hop, hop))).push_back({to, {from}});
    }
  return held;
}

/// Every device sends to the next one.
HeldBlocks shifted(const HopLine& line, std::int64_t hop) {
  HeldBlocks held = nothing(line);
  for (std::int64_t device = 0; device < line.devices; ++device)
    of_device(held, line.place(device, hop)).push_back({device, {device}});
  return held;
}

std::int64_t count_of(double devices) { return static_cast<std::int64_t>(std::llround(devices)); }

}  // namespace

std::vector<HeldBlocks> collective_states(program::Collective kind, const collective::CollectiveGroup& group) {
  using program::Collective;
  if (count_of(group.devices) > most_devices) return {};
  const bool one_line = group.torus() && group.axes.size() == 1;
  HopLine line{count_of(group.devices), 0, true, false};  // of other groups only the ends are told, of which all agree
  if (one_line) line = {line.devices, 0, group.axes[0].ring, group.one_way};
  line.hops = line.ring && !line.one_way ? line.devices / 2 : line.devices - 1;
  std::vector<HeldBlocks> states;
  for (std::int64_t hop = 0; hop <= line.hops; ++hop) {
    if (kind == Collective::all_gather)
      states.push_back(gathered(line, hop, false));
    else if (kind == Collective::reduce_scatter || kind == Collective::all_reduce)
      states.push_back(reduced(line, hop));
    else if (kind == Collective::all_to_all || kind == Collective::ragged_all_to_all)
      states.push_back(exchanged(line, hop));
    else if (kind == Collective::permute && line.ring && hop <= 1)
      states.push_back(shifted(line, hop));
  }
  if (kind == Collective::all_reduce)
    for (std::int64_t hop = 1; hop <= line.hops; ++hop) states.push_back(gathered(line, hop, true));
  if (!one_line && states.size() > 2) states.erase(states.begin() + 1, states.end() - 1);
  return states;
}

}  // namespace assay::verbs::collective_verb
