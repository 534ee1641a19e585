// What a chip costs its owner for an hour, from what it takes to make: servers, network, building, energy, and the
// carbon of both. Written once over a number policy; figures from catalogue/technology/owning.toml.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/hardware/chip.h"
#include "assay/predict/design/technology.h"

namespace assay::design {

using DollarsPerWatt = Quantity<Dim{.sec = 1, .usd = 1, .joule = -1}>;
using DollarsPerJoule = Quantity<Dim{.usd = 1, .joule = -1}>;

struct OwningFigures {
  Spread<double> margin, spares, years;
  Spread<Dollars> server;
  BytesPerSecond port;
  double radix = 0, copper = 0;
  Spread<Dollars> port_price, optics_price;
  Spread<Watts> port_power, optics_power;
  Spread<double> scale_up;  ///< price of a switch inside a domain over one outside, by bandwidth
  Spread<DollarsPerWatt> building;
  Spread<double> building_years, overhead;
  Spread<DollarsPerJoule> energy;
  Spread<double> share, interest;
  std::string grid;                                     ///< whose energy it is
  std::vector<std::pair<std::string, double>> grids;    ///< grams of CO2 for a kWh
  double package_carbon = 0, memory_carbon = 0;         ///< grams of a package and of a GB
  std::vector<std::pair<std::string, double>> carbons;  ///< of a cm2 of good dies, by process
  std::vector<std::pair<std::string, Dollars>> prices;  ///< of chips that are bought, by id
};

/// The figures of the catalogue, and what a user's file says instead; `file` names that in errors.
Result<OwningFigures> owning_figures(const hardware::Catalogue& catalogue, const std::optional<std::string>& own,
                                     const std::string& file);

/// Chips that share a network where nothing else is said.
inline constexpr std::int64_t usual_chips = 1024;
/// A chip where it stands.
struct Installed {
  std::string name;
  Dollars made;                    ///< what it takes to make it
  std::optional<Dollars> price{};  ///< what it is bought for; instead of what it takes to make it, and a margin
  Watts power, beside;             ///< of the chip, and of its share of the server
  BytesPerSecond scale_up;         ///< one way, all links together; none: nothing
  bool is_switched = false, is_torus = false;
  double domain = 1;         ///< chips that scale-up links join
  BytesPerSecond scale_out;  ///< one way
  double chips = 1;          ///< of the whole cluster
  double carbon = 0;         ///< grams to make it
};

/// What a chip's file says of its networks.
Installed with_networks_of(const hardware::Chip& chip);

/// For an hour in which the chip is used.
template <class N>
struct Owning {
  NumberOf<N, DollarsPerSecond> chip{}, server{}, network{}, building{}, energy{}, all{};
  NumberOf<N, Dollars> capital{};
  NumberOf<N, Watts> power{};          ///< from the grid
  double carbon = 0, made_carbon = 0;  ///< grams in an hour, of energy and of making
};

template <class N>
Owning<N> owning(const N& num, const OwningFigures& figures, const Installed& chip);

/// Tiers of switches that join that many chips without narrowing.
double tiers_of(double chips, double radix);

}  // namespace assay::design
