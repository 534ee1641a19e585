// What the chip costs its owner.
#include <fmt/format.h>

#include "assay/ask/verbs/design/design.h"

namespace assay::verbs::design_verb {

Result<design::OwningFigures> owning_of(const Request& request, const Context& context) {
  const auto file = request.value("owning");
  if (!file) return design::owning_figures(context.catalogue, std::nullopt, "");
  ASSAY_TRY(text, attached_text(*file, "--owning", context));
  return design::owning_figures(context.catalogue, text, *file);
}

design::Installed installed(const DesignQuery& query, const design::ChipFigures<Plain>& figures, Watts power,
                            const hardware::Chip& chip, const design::OwningFigures& owning, double chips) {
  design::Installed out = design::with_networks_of(chip);
  out.name = query.chip.id;
  out.made = figures.cost.all;
  out.power = power;
  out.chips = chips;
  out.beside = query.beside;
  for (std::size_t i = 0; i < query.chip.dies.size(); ++i) {
    constexpr double mm2_of_a_cm2 = 100.0;
    const design::Die& die = query.chip.dies[i];
    for (const auto& [node, grams] : owning.carbons)
      if (node == die.node->name) out.carbon += die.count * figures.dies[i].all.value() / mm2_of_a_cm2 * grams;
  }
  out.carbon += owning.package_carbon + (query.chip.stacks * query.chip.stack_capacity).in(1_GB) * owning.memory_carbon;
  return out;
}

report::Members owning_members(const design::OwningFigures& figures, const design::Owning<Plain>& owning) {
  return {{"per_hour", owning.all * 1_h},
          {"chip", owning.chip * 1_h},
          {"server", owning.server * 1_h},
          {"network", owning.network * 1_h},
          {"building", owning.building * 1_h},
          {"energy", owning.energy * 1_h},
          {"capital", owning.capital},
          {"power", owning.power},
          {"grid", figures.grid},
          {"co2_grams", owning.carbon},
          {"co2_grams_of_making", owning.made_carbon}};
}

}  // namespace assay::verbs::design_verb
