// What chips are made of: processes, memories, links and packages with their areas, energies and prices, as ranges
// where published figures differ. Read from catalogue/technology/; docs/design.md says what each figure means.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay::hardware {
class Catalogue;
}

namespace assay::design {

using PerArea = Quantity<Dim{.area = -1}>;
using AreaPerByte = Quantity<Dim{.byte = -1, .area = 1}>;
using JoulesPerByte = Quantity<Dim{.byte = -1, .joule = 1}>;
using JoulesPerFlop = Quantity<Dim{.flop = -1, .joule = 1}>;
using WattsPerArea = Quantity<Dim{.sec = -1, .joule = 1, .area = -1}>;
using DollarsPerByte = Quantity<Dim{.byte = -1, .usd = 1}>;
using DollarsPerArea = Quantity<Dim{.usd = 1, .area = -1}>;

/// A figure that sources give differently.
template <class Q>
struct Spread {
  Given<Q> low, typical, high;
};

/// A process of a foundry.
struct Node {
  std::string name;
  Spread<PerArea> logic;  ///< transistors, as whole dies reach it
  Spread<Area> cell;      ///< of an SRAM bit: memories scale with it
  Spread<JoulesPerFlop> arithmetic;
  Spread<Dollars> wafer;
  Spread<PerArea> defects;
  Spread<WattsPerArea> leakage;
  Spread<Dollars> masks, design;  ///< once: a set of masks, and the work on a chip of `designed`
};

/// Memory beside the dies of a package, by the stack.
struct StackKind {
  std::string name;
  Spread<Area> area, footprint;  ///< of its PHY and controller on a die, and of itself
  Spread<double> edge;           ///< of a die, in millimetres
  Bytes capacity;                ///< the most that it comes with, as is its bandwidth
  BytesPerSecond bandwidth;
  Spread<JoulesPerByte> energy;
  Spread<DollarsPerByte> price;
};

struct LinkKind {
  std::string name;
  Spread<Area> area;
  Spread<double> controller;  ///< transistors
  BytesPerSecond bandwidth;   ///< one way
  Spread<JoulesPerByte> energy;
};

struct PackageKind {
  std::string name;
  Spread<DollarsPerArea> price;  ///< per area of dies and stacks
  Spread<Dollars> test;
  Spread<double> bonding;  ///< share of dies that survive it
};

struct Technology {
  std::vector<Node> nodes;
  std::vector<StackKind> stacks;
  std::vector<LinkKind> links;
  std::vector<PackageKind> packages;
  Spread<double> multiply_add, lane, double_lane, integer_lane;  ///< transistors of one each cycle
  Spread<AreaPerByte> local, cache, scratchpad;                  ///< in the process `sram_node`
  std::string sram_node;
  Spread<double> diameter, edge, scribe;  ///< of a wafer, in millimetres
  Spread<double> clustering;              ///< of defects: the larger, the more evenly they lie
  Spread<Area> reticle;
  Given<Area> designed;
  Spread<double> exponent;  ///< of the power in the clock
  Spread<WattsPerArea> density;
};

/// The technology of the catalogue; reports every fault at once.
Result<const Technology*> technology_of(const hardware::Catalogue& catalogue);

/// The member of a list with that name; an error names those that are known.
template <class T>
Result<const T*> named(const std::vector<T>& all, std::string_view name, std::string where, std::string_view what);

}  // namespace assay::design
