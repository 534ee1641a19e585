#include "assay/predict/design/owning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"
#include "assay/predict/design/read_spread.h"

namespace assay::design {
namespace {

constexpr double hours_of_a_year = 8766.0;

void read_grams(RecordReader& in, std::string_view key, std::vector<std::pair<std::string, double>>& out) {
  in.each_key(key, [&](const std::string& name, RecordReader& one) {
    const auto known = std::find_if(out.begin(), out.end(), [&](const auto& of) { return of.first == name; });
    double& grams = known == out.end() ? out.emplace_back(name, 0.0).second : known->second;
    one.number(name, grams);
  });
}

/// Every table may be left out by a user's file, and so may every key.
class OwningReader {
 public:
  OwningReader(OwningFigures& out, bool is_whole) : out_(out), is_whole_(is_whole) {}

  void read(RecordReader& in) {
    if (is_whole_ || in.has("source")) in.sources();
    table(in, "chip", [&](RecordReader& one) {
      spread(one, "margin", out_.margin);
      spread(one, "spares", out_.spares);
      spread(one, "years", out_.years);
    });
    table(in, "server", [&](RecordReader& one) { spread(one, "price", out_.server); });
    table(in, "network", [&](RecordReader& one) {
      number(one, "port", out_.port);
      number(one, "radix", out_.radix);
      number(one, "copper", out_.copper);
      spread(one, "port_price", out_.port_price);
      spread(one, "port_power", out_.port_power);
      spread(one, "optics_price", out_.optics_price);
      spread(one, "optics_power", out_.optics_power);
      spread(one, "scale_up", out_.scale_up);
    });
    table(in, "building", [&](RecordReader& one) {
      spread(one, "price", out_.building);
      spread(one, "years", out_.building_years);
      spread(one, "overhead", out_.overhead);
    });
    table(in, "energy", [&](RecordReader& one) { spread(one, "price", out_.energy); });
    table(in, "use", [&](RecordReader& one) {
      spread(one, "share", out_.share);
      spread(one, "interest", out_.interest);
      if (is_whole_ || one.has("grid")) one.text("grid", out_.grid);
    });
    table(in, "carbon", [&](RecordReader& one) {
      number(one, "package", out_.package_carbon);
      number(one, "memory", out_.memory_carbon);
      read_grams(one, "grids", out_.grids);
      read_grams(one, "dies", out_.carbons);
    });
    in.each_key("prices", [&](const std::string& name, RecordReader& one) {
      one.number(name, out_.prices.emplace_back(name, Dollars()).second);
      if (!(out_.prices.back().second > Dollars())) one.fault(name, "a chip costs more than nothing");
    });
    check(in);
  }

 private:
  template <class Read>
  void table(RecordReader& in, std::string_view key, Read read) const {
    if (is_whole_ || in.has(key)) in.table(key, read);
  }
  template <class T>
  void number(RecordReader& in, std::string_view key, T& out) const {
    if (is_whole_ || in.has(key)) in.number(key, out);
  }
  template <class Q>
  void spread(RecordReader& in, std::string_view key, Spread<Q>& out) const {
    if (is_whole_ || in.has(key)) read_spread(in, key, out);
  }
  void check(RecordReader& in) const {
    std::vector<std::string> known;
    for (const auto& [name, grams] : out_.grids) known.push_back(name);
    if (std::find(known.begin(), known.end(), out_.grid) == known.end())
      in.fault("use", fmt::format("unknown grid {}", in_quotes(out_.grid)),
               "one of " + join(known, ", ") + ", or add it to [carbon.grids]");
    if (!(out_.share.low.value > 0.0) || out_.share.high.value > 1.0)
      in.fault("use", "the share of hours in use lies between 0 and 1");
    if (out_.overhead.low.value < 1.0) in.fault("building", "overhead is what the meter shows over what chips draw");
    if (!(out_.years.low.value > 0.0) || !(out_.building_years.low.value > 0.0))
      in.fault("chip", "things last longer than no years");
    if (!(out_.radix >= 2.0) || !(out_.port > BytesPerSecond())) in.fault("network", "a switch has ports");
  }

  OwningFigures& out_;
  bool is_whole_;
};

double grams_of(const std::vector<std::pair<std::string, double>>& all, std::string_view name) {
  for (const auto& [key, grams] : all)
    if (key == name) return grams;
  return 0.0;
}

/// The share of a price that is paid each year, with interest.
double yearly(double years, double interest) {
  return interest > 0.0 ? interest / (1.0 - std::pow(1.0 + interest, -years)) : 1.0 / years;
}

}  // namespace

Result<OwningFigures> owning_figures(const hardware::Catalogue& catalogue, const std::optional<std::string>& own,
                                     const std::string& file) {
  OwningFigures out;
  for (const auto& [path, text] : catalogue.files("technology/owning.toml")) {
    RecordFile record{.name = path, .keys_hint = "docs/design.md describes the keys"};
    ASSAY_CHECK(read_record(text, record, [&](RecordReader& in) { OwningReader(out, true).read(in); }));
  }
  if (!own) return out;
  RecordFile record{
      .name = file, .keys_hint = "docs/design.md describes the keys", .sourced_tables = false, .own = true};
  ASSAY_CHECK(read_record(*own, record, [&](RecordReader& in) { OwningReader(out, false).read(in); }));
  return out;
}

double tiers_of(double chips, double radix) {
  double tiers = 1.0, reach = radix;
  for (; reach < chips; reach *= 0.5 * radix) tiers += 1.0;
  return tiers;
}

Installed with_networks_of(const hardware::Chip& chip) {
  Installed out;
  out.name = chip.id;
  if (const auto& up = chip.network.scale_up) {
    out.scale_up = static_cast<double>(up->links.value) * up->link_bandwidth.value;
    out.is_switched = up->kind == "switched";
    out.is_torus = up->kind == "torus";
    out.domain = up->domain ? static_cast<double>(up->domain->value) : 1.0;
    if (up->pod) {
      out.domain = 1.0;
      for (const std::int64_t side : up->pod->value) out.domain *= static_cast<double>(side);
    }
  }
  if (const auto& network = chip.network.scale_out) out.scale_out = network->bandwidth.value;
  return out;
}

template <class N>
Owning<N> owning(const N& num, const OwningFigures& of, const Installed& chip) {
  Owning<N> out;
  const auto figure = [&](std::string_view name, const auto& spread) { return num.given(name, spread.typical); };
  const auto a_second = [&](double years, std::string_view what) {
    return num.given(what, Hertz(yearly(years, of.interest.typical.value) / (hours_of_a_year * 3600.0)),
                     fmt::format("{} years at {} % interest", years, 100.0 * of.interest.typical.value)) /
           figure("share of hours in use", of.share);
  };
  const auto price = chip.price ? num.given("price", *chip.price, chip.name)
                                : num.given("made for", chip.made, chip.name) * figure("margin", of.margin);
  const auto chips = num.named("chip", price * (num.given("one", 1.0, "chip in use") + figure("spares", of.spares)));
  const auto server = num.named("server", figure("server beside a chip", of.server));
  // Ports of the tiers: one of each link, two below the top; a transceiver at each end.
  const double tiers = chip.scale_out > BytesPerSecond() ? tiers_of(chip.chips / chip.domain, of.radix) : 0.0;
  const auto speeds = num.given("bandwidth", chip.scale_out, chip.name) / num.given("of a port", of.port, "network");
  const double above = std::max(tiers - 1.0, 0.0);
  const auto ports = speeds * num.given("ports for each", tiers > 0.0 ? 1.0 + 2.0 * above : 0.0,
                                        fmt::format("{} tiers of switches", tiers));
  const auto optics =
      speeds * num.given("transceivers for each", tiers > 0.0 ? 2.0 + 2.0 * above : 0.0, "one at each end");
  const auto inner =
      num.given("bandwidth inside", chip.scale_up, chip.name) / num.given("of a port", of.port, "network");
  const auto inner_ports = inner * num.given("switched", chip.is_switched && chip.domain > 1.0 ? 1.0 : 0.0, chip.name);
  // Beyond what copper joins, both ends of a link have one; of a torus those through the faces of its cubes.
  const double ends = chip.domain <= of.copper ? 0.0 : chip.is_torus ? 1.0 / std::cbrt(of.copper) : 2.0;
  const auto inner_optics =
      inner * num.given("transceivers for each", ends, fmt::format("copper joins {} chips", of.copper));
  const auto network = num.named("network", (ports + inner_ports * figure("inside over outside", of.scale_up)) *
                                                    figure("port of a switch", of.port_price) +
                                                (optics + inner_optics) * figure("transceiver", of.optics_price));
  const auto drawn = num.given("chip", chip.power, chip.name) + num.given("server beside it", chip.beside, chip.name) +
                     ports * figure("port of a switch", of.port_power) +
                     (optics + inner_optics) * figure("transceiver", of.optics_power);
  out.power = num.named("power", drawn * figure("overhead of the building", of.overhead));
  const auto building = num.named("building", drawn * figure("building", of.building));
  out.capital = num.named("capital", chips + server + network + building);
  const auto years = a_second(of.years.typical.value, "share of the price a second");
  out.chip = num.named("chip", chips * years);
  out.server = num.named("server", server * years);
  out.network = num.named("network", network * years);
  out.building =
      num.named("building", building * a_second(of.building_years.typical.value, "share of the building a second"));
  out.energy = num.named("energy", out.power * figure("price of energy", of.energy));
  out.all = num.named("owning", out.chip + out.server + out.network + out.building + out.energy);
  const double kilowatts = plain(out.power).value() / 1000.0;
  out.carbon = kilowatts * grams_of(of.grids, of.grid);
  out.made_carbon = chip.carbon / (of.years.typical.value * hours_of_a_year * of.share.typical.value);
  return out;
}
template Owning<Plain> owning(const Plain&, const OwningFigures&, const Installed&);
template Owning<Traced> owning(const Traced&, const OwningFigures&, const Installed&);

}  // namespace assay::design
