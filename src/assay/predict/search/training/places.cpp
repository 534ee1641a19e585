#include "assay/predict/search/training/places.h"

#include <algorithm>
#include <bit>

namespace assay::search {

std::vector<AlikePlaces> TrainingPlaces::all(const lower::Parallelism& p) {
  std::vector<AlikePlaces> places;
  for (const collective::AxisLayout& layout : space_.layouts(p)) {
    const Result<training::AxisNumbers> axes = linker_.axis_numbers(p, layout);
    if (!axes) continue;
    const std::size_t inner = inner_.number_of(p, layout, *axes);
    auto known = std::find_if(places.begin(), places.end(), [&](const AlikePlaces& at) { return at.inner == inner; });
    if (known == places.end()) known = places.insert(known, {inner, {}, {}});
    known->placements.push_back({layout, nullptr});
  }
  return places;
}

std::size_t TrainingPlaces::count(const lower::Parallelism& p) {
  if (is_given_) return space_.layouts(p).size();
  auto sizes = training::whole_mesh_sizes(p);
  std::sort(sizes.begin(), sizes.end());
  const auto [known, is_new] = counts_.try_emplace(sizes);
  if (is_new) known->second = space_.layouts(p).size();
  return known->second;
}

std::size_t InnerLinks::least(const lower::Parallelism& p) {
  const auto [known, is_new] =
      least_inners_.try_emplace({p.tensor, p.context, p.expert, p.expert_over.tensor + 2 * p.expert_over.context});
  if (is_new) {
    known->second = inner_.size();
    linker_.least_links(p, inner_sets(), inner_.emplace_back());
  }
  return known->second;
}

std::size_t InnerLinks::number_of(const lower::Parallelism& p, const collective::AxisLayout& layout,
                                  const training::AxisNumbers& axes) {
  const auto number = [&](training::Role role) { return axes[1 + static_cast<std::size_t>(role)]; };
  const auto [by_axes, is_new_axes] =
      by_axes_.try_emplace({number(training::Role::expert), number(training::Role::context),
                            number(training::Role::tensor), p.expert_others() > 1 ? 1u : 0u});
  if (!is_new_axes) return by_axes->second;
  const training::PlacedLinks laid = *linker_.place_links(p, layout, inner_sets());
  std::array<std::uint32_t, inner_count> like{};
  std::size_t at = 0;
  for (training::RoleSets rest = inner_sets(); rest != 0; rest &= rest - 1, ++at)
    if (const training::GroupCosts* group = laid.groups[static_cast<std::size_t>(std::countr_zero(rest))])
      like[at] = group->like;
  const auto [known, is_new] = inners_.try_emplace(like);
  if (is_new) {
    known->second = inner_.size();
    linker_.fill(p, laid, inner_.emplace_back());
  }
  return by_axes->second = known->second;
}

}  // namespace assay::search
