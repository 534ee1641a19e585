#include "assay/training/traffic_derivation.h"

#include <algorithm>

#include "assay/base/index.h"
#include "assay/estimate/origins.h"

namespace assay::training {
namespace {

/// Collectives of a program that a profile counts together.
struct DerivedGroup {
  Traffic sum;
  NumberOf<Traced, Bytes> bytes;
  NumberOf<Traced, Flops> beside;
};

void add_collective(const Traced& num, const program::Program& program, const program::Block& block, std::int32_t step,
                    std::vector<DerivedGroup>& groups) {
  const Traffic traffic = step_traffic(program, block, step);
  const auto known = std::find_if(groups.begin(), groups.end(),
                                  [&](const DerivedGroup& group) { return group.sum.goes_with(traffic); });
  const bool is_new = known == groups.end();
  DerivedGroup& group = is_new ? groups.emplace_back() : *known;
  if (is_new) {
    group.sum = traffic;
  } else {
    group.sum.bytes += traffic.bytes;
    group.sum.beside += traffic.beside;
    group.sum.count += traffic.count;
  }
  group.bytes = group.bytes + traffic_bytes(num, program, program.steps[at(step)]);
  if (!(traffic.beside > Flops())) return;
  for (const std::int32_t product : neighbour_products(program, block, step))
    group.beside = group.beside + num.named(program::step_text(program, program.steps[at(product)]),
                                            estimate::derive_flops(num, program, program.steps[at(product)]));
}

}  // namespace

std::vector<DerivedTraffic> derive_traffic(const Traced& num, const program::Program& program,
                                           std::span<const program::Block> blocks,
                                           std::span<const Traffic* const> entries) {
  std::vector<DerivedGroup> groups;
  for (const program::Block& block : blocks)
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (program::is_collective(program.steps[at(i)].op)) add_collective(num, program, block, i, groups);
  std::vector<DerivedTraffic> out;
  for (const Traffic* entry : entries) {
    DerivedTraffic& derived = out.emplace_back();
    derived.entry = entry;
    for (const DerivedGroup& group : groups) {
      const bool is_it = group.sum.kind == entry->kind && group.sum.over == entry->over &&
                         plain(group.bytes) == entry->bytes &&
                         (derived.bytes.is_nothing() || group.sum.beside == entry->beside);
      if (!is_it) continue;
      derived.bytes = group.bytes;
      derived.beside = group.beside;
    }
  }
  return out;
}

}  // namespace assay::training
