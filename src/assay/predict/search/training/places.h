// Placements of the meshes of a search for training strategies: those that differ only for collectives of weights are
// kept together, and links that take the same time are priced once.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "assay/predict/search/training/bound.h"
#include "assay/predict/search/training/space.h"

namespace assay::search {

struct PlacedMesh {
  collective::AxisLayout layout;
  training::PlacedLinks* laid = nullptr;  ///< set once the links are requested
};

/// Layouts that are equivalent for tensor, context and expert axes.
struct AlikePlaces {
  /// Times of weight traffic at each of the layouts, and a lower bound over all.
  struct Weights {
    std::vector<WeightsTimes> each;
    WeightsTimes least;
    void add(WeightsTimes times) {
      least.lower_to(times);
      each.push_back(std::move(times));
    }
  };
  std::size_t inner = 0;  ///< index into InnerLinks
  std::vector<PlacedMesh> placements;
  std::vector<Weights> weights;  ///< by sharing and residual scheme, filled on demand
  bool is_known(std::size_t way) const { return !weights.empty() && weights[way].least.is_known(); }
};

/// Numbered links of tensor, context and expert axes: placements that take the same time for collectives that do not
/// carry weights share one. Refers to the linker.
class InnerLinks {
 public:
  explicit InnerLinks(training::StageLinker& linker) : linker_(linker) {}

  const training::StageLinks& operator[](std::size_t number) const { return inner_[number]; }
  std::size_t number_of(const lower::Parallelism& p, const collective::AxisLayout& layout,
                        const training::AxisNumbers& axes);
  /// The number of a lower bound on collectives that do not carry weights, over all placements of the mesh.
  std::size_t least(const lower::Parallelism& p);
  training::StageLinker& linker() { return linker_; }

 private:
  static constexpr training::RoleSet inner_roles = training::role_bit(training::Role::expert) |
                                                   training::role_bit(training::Role::context) |
                                                   training::role_bit(training::Role::tensor);
  static constexpr std::size_t inner_count = 7;  ///< non-empty sets of these roles
  static constexpr training::RoleSets inner_sets() {
    training::RoleSets sets = 0;
    for (training::RoleSet set = inner_roles; set != 0; set = static_cast<training::RoleSet>((set - 1) & inner_roles))
      sets |= training::RoleSets{1} << set;
    return sets;
  }

  training::StageLinker& linker_;
  std::deque<training::StageLinks> inner_;
  std::map<std::array<std::uint32_t, 4>, std::size_t> by_axes_;           ///< numbers of links by their axes
  std::map<std::array<std::uint32_t, inner_count>, std::size_t> inners_;  ///< numbers of links by their GroupCosts
  std::map<std::array<std::int64_t, 4>, std::size_t> least_inners_;
};

/// Refers to the space and the links.
class TrainingPlaces {
 public:
  TrainingPlaces(const TrainingSpace& space, InnerLinks& inner, bool is_given)
      : space_(space), inner_(inner), linker_(inner.linker()), is_given_(is_given) {}

  std::vector<AlikePlaces> all(const lower::Parallelism& p);
  /// Number of distinct placements: it depends only on the sizes, not on which axes have them.
  std::size_t count(const lower::Parallelism& p);
  /// Places the links of some sets of roles, unless they are placed already.
  void lay(const lower::Parallelism& p, PlacedMesh& placed, training::RoleSets sets) {
    if (!placed.laid) placed.laid = &laid_.emplace_back();
    if (sets & ~placed.laid->sets) *placed.laid = *linker_.place_links(p, placed.layout, sets | placed.laid->sets);
  }
  /// Links of a placement; valid until the next one is asked for.
  const training::StageLinks& links(const lower::Parallelism& p, const PlacedMesh& placed) {
    linker_.fill(p, *placed.laid, links_);
    return links_;
  }
  const training::StageLinks& inner(std::size_t number) const { return inner_[number]; }
  std::size_t least_inner(const lower::Parallelism& p) { return inner_.least(p); }

 private:
  const TrainingSpace& space_;
  InnerLinks& inner_;
  training::StageLinker& linker_;
  bool is_given_;               ///< the user or the software named the layouts
  training::StageLinks links_;  ///< links of the placement at work
  std::deque<training::PlacedLinks> laid_;
  std::map<std::array<std::int64_t, 1 + training::roles>, std::size_t> counts_;
};

}  // namespace assay::search
