#include "assay/predict/training/traffic_derivation.h"

#include <algorithm>
#include <optional>

#include "assay/base/index.h"
#include "assay/predict/kernel/origins.h"

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
                                            kernel::derive_flops(num, program, program.steps[at(product)]));
}

std::vector<DerivedGroup> groups_of(const Traced& num, const PassBlocks& pass) {
  std::vector<DerivedGroup> groups;
  for (const program::Block& block : pass.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (program::is_collective(pass.program.steps[at(i)].op)) add_collective(num, pass.program, block, i, groups);
  return groups;
}

/// The last group with the bytes of an entry, and with the products beside it, if there is one.
const DerivedGroup* group_of(const std::vector<DerivedGroup>& groups, RoleSet split, const Traffic& entry) {
  const DerivedGroup* found = nullptr;
  for (const DerivedGroup& group : groups)
    if (group.sum.kind == entry.kind && (group.sum.over & split) == (entry.over & split) &&
        plain(group.bytes) == entry.bytes && (!found || group.sum.beside == entry.beside))
      found = &group;
  return found;
}

}  // namespace

std::vector<DerivedTraffic> derive_traffic(const Traced& num, const PassBlocks& pass, const PassBlocks& counted,
                                           RoleSet split, std::span<const Traffic> entries) {
  const std::vector<DerivedGroup> groups = groups_of(num, pass);
  std::optional<std::vector<DerivedGroup>> of_profile;
  std::vector<DerivedTraffic> out;
  for (const Traffic& entry : entries) {
    DerivedTraffic& derived = out.emplace_back();
    derived.entry = &entry;
    const DerivedGroup* group = group_of(groups, split, entry);
    const bool is_own = group;
    if (!group) {
      if (!of_profile) of_profile = groups_of(num, counted);
      group = group_of(*of_profile, split, entry);
    }
    if (!group) continue;
    derived.bytes =
        is_own ? group->bytes : num.named("arrays that two data-parallel devices share evenly", group->bytes);
    derived.beside = group->beside;
  }
  return out;
}

}  // namespace assay::training
