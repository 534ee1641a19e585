#include "assay/predict/design/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay::design {
namespace {

/// Adds up areas, powers and costs of a chip under a policy.
template <class N>
class Formulas {
 public:
  Formulas(const N& num, const Designed& of, const Varied& varied) : num_(num), of_(of), varied_(varied) {}

  ChipFigures<N> all() const {
    ChipFigures<N> out;
    for (const Die& die : of_.design.dies) {
      out.dies.push_back(area(die));
      out.area = out.area + copies(die, out.dies.back().all);
    }
    out.area = num_.named("area", out.area);
    out.power = power(out);
    out.cost = cost(out);
    return out;
  }

 private:
  using Number = NumberOf<N, double>;
  template <class Q>
  auto figure(std::string_view name, const Spread<Q>& spread) const {
    return num_.given(name, varied_.of(spread));
  }
  template <class Q>
  Q copies(const Die& die, Q one) const {
    return num_.times("dies", die.count, of_.design.id, one);
  }
  Number parts(std::string_view name, double count, const Spread<double>& each) const {
    if (count == 0.0) return {};
    return num_.given(name, count, "of a core") * figure("transistors each", each);
  }

  NumberOf<N, Area> logic(const Die& die) const {
    const Technology& t = of_.technology;
    const Number core = parts("multiply-adds", die.matrix_units * die.multiply_adds, t.multiply_add) +
                        parts("vector lanes", die.lanes, t.lane) +
                        parts("double-precision lanes", die.double_lanes, t.double_lane) +
                        parts("integer lanes", die.integer_lanes, t.integer_lane);
    if (plain(core) == 0.0) return {};
    return num_.given("cores", die.cores.count, "made") * core / figure("transistors per area", die.node->logic);
  }
  NumberOf<N, Area> memory(std::string_view name, Bytes bytes, const Spread<AreaPerByte>& each,
                           const Number& scale) const {
    if (!(bytes > Bytes())) return {};
    return num_.given(name, bytes, of_.design.id) * figure("area of a byte", each) * scale;
  }
  Number cell_scale(const Die& die) const {
    const Technology& t = of_.technology;
    const auto then =
        std::find_if(t.nodes.begin(), t.nodes.end(), [&](const Node& n) { return n.name == t.sram_node; });
    return num_.named(
        "cell over that of " + t.sram_node,
        figure("SRAM cell", die.node->cell) / num_.given("SRAM cell, " + t.sram_node, then->cell.typical));
  }

  DieArea<N> area(const Die& die) const {
    const Technology& t = of_.technology;
    DieArea<N> out;
    out.logic = num_.named("logic", logic(die));
    const Number scale = cell_scale(die);
    out.memory = num_.named("on-chip memory", memory("memory of cores", die.cores.count * die.local, t.local, scale) +
                                                  memory("cache", die.cache, t.cache, scale) +
                                                  memory("scratchpad", die.scratchpad, t.scratchpad, scale));
    if (die.stacks > 0.0)
      out.stacks = num_.named("interfaces of memory", num_.given("stacks", die.stacks, "made") *
                                                          figure("PHY and controller", of_.design.memory->area));
    for (const DieLinks& links : die.links)
      if (links.count > 0.0)
        out.links =
            out.links + num_.given("links", links.count, links.kind->name) *
                            (figure("PHY", links.kind->area) + figure("controller", links.kind->controller) /
                                                                   figure("transistors per area", die.node->logic));
    out.links = num_.named("interfaces of links", out.links);
    if (die.other.value > Area()) out.other = num_.given("other parts", die.other);
    out.listed = num_.named("listed parts", out.logic + out.memory + out.stacks + out.links + out.other);
    const Spread<double>* layout = of_.calibration.layout(die.style);
    out.all = num_.named("die", layout ? out.listed * figure("die over its listed parts", *layout) : out.listed);
    return out;
  }

  ChipPower<N> power(const ChipFigures<N>& figures) const {
    const ChipDesign& design = of_.design;
    ChipPower<N> out;
    for (std::size_t i = 0; i < design.dies.size(); ++i) {
      const Die& die = design.dies[i];
      out.leakage = out.leakage + copies(die, figures.dies[i].all * figure("leakage", die.node->leakage));
      const double each = die.cores.used * die.matrix_units * die.multiply_adds;
      if (each == 0.0) continue;
      const auto rate = num_.given("multiply-adds in a cycle", each, "16 bits") * multiply_and_add(num_) *
                        num_.given("clock", design.clock, design.id);
      auto energy = figure("energy of a FLOP", die.node->arithmetic);
      if (const Spread<double>* than = of_.calibration.energy(die.node->name))
        energy = energy * figure("chips over arithmetic alone", *than);
      out.arithmetic = out.arithmetic + copies(die, rate * energy);
      for (const DieLinks& links : die.links) out.links = out.links + copies(die, link_power(links));
    }
    for (const Die& die : design.dies)
      if (die.cores.used * die.matrix_units * die.multiply_adds == 0.0)
        for (const DieLinks& links : die.links) out.links = out.links + copies(die, link_power(links));
    if (design.stacks > 0.0)
      out.memory = num_.given("bandwidth of memory", design.memory_bandwidth(), design.id) *
                   figure("energy of a byte", design.memory->energy);
    out.arithmetic = num_.named("arithmetic", out.arithmetic);
    out.memory = num_.named("memory", out.memory);
    out.links = num_.named("links", out.links);
    out.leakage = num_.named("leakage", out.leakage);
    out.all = num_.named("power", out.arithmetic + out.memory + out.links + out.leakage);
    return out;
  }
  NumberOf<N, Watts> link_power(const DieLinks& links) const {
    return num_.given("links", links.count, links.kind->name) * num_.given("both ways", 2.0, "at once") *
           num_.given("bandwidth of a link", links.kind->bandwidth, links.kind->name) *
           figure("energy of a byte", links.kind->energy);
  }

  NumberOf<N, Dollars> good_die(const Die& die, const DieArea<N>& area) const {
    const Technology& t = of_.technology;
    const Area size = plain(area.all);
    const double fit = dies_per_wafer(size, varied_.of(t.diameter), varied_.of(t.edge), varied_.of(t.scribe));
    const Area cores = plain(area.listed) > Area() ? (plain(area.logic) / plain(area.listed)) * size : Area();
    const double yield =
        yield_of(size, cores, die.cores, varied_.of(die.node->defects), varied_.of(t.clustering)).with_spares;
    return num_.named("good die", figure("wafer", die.node->wafer) /
                                      (num_.given("dies of a wafer", fit, "pi r2 / A - pi d / sqrt(2 A)") *
                                       num_.given("share that works", yield, "defects in clusters, cores to spare")));
  }

  ChipCost<N> cost(const ChipFigures<N>& figures) const {
    const ChipDesign& design = of_.design;
    ChipCost<N> out;
    double bonded = design.stacks;
    for (std::size_t i = 0; i < design.dies.size(); ++i) {
      out.dies = out.dies + copies(design.dies[i], good_die(design.dies[i], figures.dies[i]));
      bonded += design.dies[i].count;
    }
    auto carried = figures.area;
    if (design.stacks > 0.0) {
      const auto stacks = num_.given("stacks", design.stacks, design.id);
      out.memory = stacks * num_.given("capacity of a stack", design.stack_capacity, design.id) *
                   figure("price of a byte", design.memory->price);
      carried = carried + stacks * figure("footprint of a stack", design.memory->footprint);
    }
    const double survive = std::pow(varied_.of(design.package->bonding).value, bonded);
    out.dies = num_.named("dies", out.dies);
    out.memory = num_.named("memory", out.memory);
    out.package = num_.named("package", carried * figure("price of an area", design.package->price));
    out.test = num_.named("test and assembly", figure("test and assembly of a chip", design.package->test));
    auto made = (out.dies + out.memory + out.package + out.test) /
                num_.given("packages that work", survive, "bonding of each die and stack");
    if (design.volume) {
      for (const Die& die : design.dies) out.once = out.once + figure("masks", die.node->masks);
      const Die& largest = design.dies.front();
      out.once =
          num_.named("masks and design",
                     (out.once + figure("design of a chip", largest.node->design) *
                                     (figures.dies.front().all / num_.given("of an area", of_.technology.designed))) /
                         num_.given("chips", *design.volume, "volume"));
      made = made + out.once;
    }
    out.all = num_.named("cost", made);
    return out;
  }

  const N& num_;
  const Designed& of_;
  const Varied& varied_;
};

const Spread<double>* found(const std::vector<std::pair<std::string, Spread<double>>>& all, std::string_view name) {
  for (const auto& [key, spread] : all)
    if (key == name) return &spread;
  return nullptr;
}

}  // namespace

const Spread<double>* Calibration::layout(std::string_view style) const { return found(layouts, style); }
const Spread<double>* Calibration::energy(std::string_view node) const { return found(energies, node); }

template <class N>
ChipFigures<N> chip_figures(const N& num, const Designed& of, const Varied& varied) {
  return Formulas<N>(num, of, varied).all();
}
template ChipFigures<Plain> chip_figures(const Plain&, const Designed&, const Varied&);
template ChipFigures<Traced> chip_figures(const Traced&, const Designed&, const Varied&);

double dies_per_wafer(Area die, double diameter, double edge, double scribe) {
  const double side = std::sqrt(die.value()) + scribe, area = side * side, across = diameter - 2.0 * edge;
  const double fit = std::numbers::pi * (across * across / (4.0 * area) - across / std::sqrt(2.0 * area));
  return std::max(fit, 0.0);
}

Yield yield_of(Area die, Area cores, const Made& made, PerArea defects, double clustering) {
  Yield out;
  const double all = die * defects;
  out.with_spares = out.without_spares = std::pow(1.0 + all / clustering, -clustering);
  const double spare = std::floor(made.count - made.used);
  if (spare < 1.0 || !(cores > Area())) return out;
  // Each die has a density of its own, which is gamma-distributed: of each density, the chance that nothing but cores
  // is broken, and no more of them than are spare.
  constexpr int pieces = 400;
  constexpr double widest = 12.0;
  const double in_cores = cores * defects, rest = all - in_cores;
  double good = 0.0, weights = 0.0;
  for (int i = 0; i < pieces; ++i) {
    const double density = widest * (i + 0.5) / pieces;
    const double weight = std::exp((clustering - 1.0) * std::log(density) - clustering * density);
    const double broken = -std::expm1(-density * in_cores / made.count);
    double chance = std::pow(1.0 - broken, made.count), few = chance;
    for (double k = 1.0; k <= std::min(spare, made.count); ++k)
      few += chance *= (made.count - k + 1.0) / k * broken / (1.0 - broken);
    good += weight * std::exp(-density * rest) * few;
    weights += weight;
  }
  out.with_spares = std::max(out.without_spares, good / weights);
  return out;
}

Yield yield_of(const Designed& of, const Die& die, const DieArea<Plain>& area) {
  const Area cores = area.listed > Area() ? (area.logic / area.listed) * area.all : Area();
  return yield_of(area.all, cores, die.cores, die.node->defects.typical, of.technology.clustering.typical);
}

std::optional<Hertz> clock_within(const Designed& of, const ChipPower<Plain>& power, Watts limit) {
  if (power.all <= limit) return of.design.clock;
  const Watts left = limit - (power.all - power.arithmetic);
  if (!(left > Watts())) return std::nullopt;
  return std::pow(left / power.arithmetic, 1.0 / of.technology.exponent.typical.value) * of.design.clock;
}

namespace {

/// Calls f for every figure that a chip depends on.
template <class F>
void each_figure(const Designed& of, F f) {
  const Technology& t = of.technology;
  for (const Spread<double>* one : {&t.multiply_add, &t.lane, &t.double_lane, &t.integer_lane, &t.edge, &t.scribe,
                                    &t.clustering, &of.design.package->bonding})
    f(*one);
  for (const Spread<AreaPerByte>* one : {&t.local, &t.cache, &t.scratchpad}) f(*one);
  f(of.design.package->price);
  f(of.design.package->test);
  for (const auto& [name, spread] : of.calibration.layouts) f(spread);
  for (const auto& [name, spread] : of.calibration.energies) f(spread);
  if (of.design.memory) {
    f(of.design.memory->area);
    f(of.design.memory->footprint);
    f(of.design.memory->energy);
    f(of.design.memory->price);
  }
  std::vector<const void*> seen;
  const auto is_new = [&](const void* one) {
    const bool known = std::find(seen.begin(), seen.end(), one) != seen.end();
    if (!known) seen.push_back(one);
    return !known;
  };
  for (const Die& die : of.design.dies) {
    if (is_new(die.node)) {
      const Node& node = *die.node;
      f(node.logic);
      f(node.cell);
      f(node.arithmetic);
      f(node.leakage);
      f(node.defects);
      for (const Spread<Dollars>* one : {&node.wafer, &node.masks, &node.design}) f(*one);
    }
    for (const DieLinks& links : die.links)
      if (is_new(links.kind)) {
        f(links.kind->area);
        f(links.kind->controller);
        f(links.kind->energy);
      }
  }
}

}  // namespace

std::vector<Ranged> ranges_of(const Designed& of,
                              const std::function<std::vector<double>(const ChipFigures<Plain>&)>& get) {
  std::vector<Ranged> out;
  for (const double value : get(chip_figures(Plain{}, of))) out.push_back({0.0, value, 0.0});
  each_figure(of, [&](const auto& spread) {
    if (spread.low.value == spread.high.value) return;
    for (const bool is_high : {false, true}) {
      const std::vector<double> values = get(chip_figures(Plain{}, of, {&spread, is_high}));
      for (std::size_t i = 0; i < out.size(); ++i) {
        const double off = values[i] - out[i].typical;
        (off < 0.0 ? out[i].low : out[i].high) += off * off;
      }
    }
  });
  // Figures err independently of each other.
  for (Ranged& one : out) {
    one.low = std::max(0.0, one.typical - std::sqrt(one.low));
    one.high = one.typical + std::sqrt(one.high);
  }
  return out;
}

}  // namespace assay::design
