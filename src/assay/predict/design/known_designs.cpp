// Designs of chips that exist, and what they say about the parts that nobody lists.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"
#include "assay/predict/design/figures.h"

namespace assay::design {
namespace {

/// Ratios of what is published to what is predicted, by name.
class Ratios {
 public:
  void add(const std::string& name, double ratio, const std::string& id) {
    auto at = std::find_if(all_.begin(), all_.end(), [&](const Group& group) { return group.name == name; });
    if (at == all_.end()) at = all_.insert(all_.end(), Group{name, {}, {}});
    at->ratios.push_back(ratio);
    at->ids.push_back(id);
  }
  /// The geometric mean of each name's, and the smallest and the largest.
  std::vector<std::pair<std::string, Spread<double>>> spreads() const {
    std::vector<std::pair<std::string, Spread<double>>> out;
    for (const Group& group : all_) {
      double logs = 0.0;
      for (const double ratio : group.ratios) logs += std::log(ratio);
      const auto [least, most] = std::minmax_element(group.ratios.begin(), group.ratios.end());
      const std::string source = "catalogue/designs: " + join(group.ids, ", ");
      out.emplace_back(group.name, Spread<double>{{*least, source},
                                                  {std::exp(logs / static_cast<double>(group.ratios.size())), source},
                                                  {*most, source}});
    }
    return out;
  }

 private:
  struct Group {
    std::string name;
    std::vector<double> ratios;
    std::vector<std::string> ids;
  };
  std::vector<Group> all_;
};

}  // namespace

Calibration calibrate(const std::vector<ChipDesign>& known, const Technology& technology, std::string_view without) {
  Calibration out;
  Ratios layouts, energies;
  for (const ChipDesign& design : known) {
    if (design.id == without) continue;
    const ChipFigures<Plain> figures = chip_figures(Plain{}, {design, technology, out});
    for (std::size_t i = 0; i < design.dies.size(); ++i)
      if (const auto& published = design.dies[i].published)
        layouts.add(design.dies[i].style, published->value / figures.dies[i].listed, design.id);
  }
  out.layouts = layouts.spreads();
  for (const ChipDesign& design : known) {
    if (design.id == without || !design.published) continue;
    const ChipPower<Plain> power = chip_figures(Plain{}, {design, technology, out}).power;
    const Watts left = design.published->value - (power.all - power.arithmetic);
    const auto computes = std::find_if(design.dies.begin(), design.dies.end(),
                                       [](const Die& die) { return die.cores.used * die.multiply_adds > 0.0; });
    if (left > Watts() && computes != design.dies.end())
      energies.add(computes->node->name, left / power.arithmetic, design.id);
  }
  out.energies = energies.spreads();
  // A process without chips is like the last one before it that has some.
  for (std::size_t i = 1; i < technology.nodes.size(); ++i)
    if (const Spread<double>* before = out.energy(technology.nodes[i - 1].name);
        before && !out.energy(technology.nodes[i].name)) {
      const Spread<double> same = *before;
      out.energies.emplace_back(technology.nodes[i].name, same);
    }
  return out;
}

Result<const std::vector<ChipDesign>*> known_designs(const hardware::Catalogue& catalogue) {
  return catalogue.kept<std::vector<ChipDesign>>("designs", [&]() -> Result<std::vector<ChipDesign>> {
    ASSAY_TRY(technology, technology_of(catalogue));
    std::vector<ChipDesign> out;
    for (const auto& [path, text] : catalogue.files("designs/")) {
      ASSAY_TRY(root, parse_toml(text, path));
      ASSAY_TRY(design, read_design(root, path, *technology));
      out.push_back(std::move(design));
    }
    return out;
  });
}

}  // namespace assay::design
