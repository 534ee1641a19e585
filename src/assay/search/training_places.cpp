#include "assay/search/training_places.h"

#include <algorithm>

namespace assay {

std::vector<AlikePlaces> TrainingPlaces::all(const Parallelism& p) {
  std::vector<AlikePlaces> places;
  for (const AxisLayout& layout : space_.layouts(p)) {
    const Result<LaidLinks> laid = linker_.lay(p, layout, inner_roles);
    if (!laid) continue;
    const std::size_t inner = inner_of(p, *laid);
    auto known = std::find_if(places.begin(), places.end(), [&](const AlikePlaces& at) { return at.inner == inner; });
    if (known == places.end()) known = places.insert(known, {inner, {}, {}});
    known->placements.push_back({layout, {}, {}});
  }
  return places;
}

std::size_t TrainingPlaces::count(const Parallelism& p) {
  if (is_given_) return space_.layouts(p).size();
  auto sizes = whole_mesh_sizes(p);
  std::sort(sizes.begin(), sizes.end());
  const auto [known, is_new] = counts_.try_emplace(sizes);
  if (is_new) known->second = space_.layouts(p).size();
  return known->second;
}

std::size_t TrainingPlaces::least_inner(const Parallelism& p) {
  const auto [known, is_new] =
      least_inners_.try_emplace({p.tensor, p.context, p.expert, p.expert_over.tensor + 2 * p.expert_over.context});
  if (is_new) known->second = inner_.size(), inner_.push_back(linker_.least_links(p));
  return known->second;
}

std::size_t TrainingPlaces::inner_of(const Parallelism& p, const LaidLinks& laid) {
  std::array<std::uint32_t, 1 + inner_roles> like{};
  for (std::size_t set = 1; set < like.size(); ++set)
    if (laid.groups[set]) like[set] = laid.groups[set]->like;
  const auto [known, is_new] = inners_.try_emplace(like);
  if (is_new) known->second = inner_.size(), linker_.fill(p, laid, inner_.emplace_back());
  return known->second;
}

}  // namespace assay
