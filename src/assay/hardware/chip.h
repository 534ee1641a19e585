// A chip: its rates, memories, networks and prices, all with a source. docs/catalogue.md describes the file.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/base/toml.h"
#include "assay/base/units.h"

namespace assay::hardware {

using Count = Sourced<std::int64_t>;
template <class T>
using Maybe = std::optional<Sourced<T>>;
using Shape = std::vector<std::int64_t>;

/// Where figures come from: a key of the file's [source.*] tables.
struct SourceEntry {
  std::string key, title, url, command, accessed;
};

/// Peak rates by dtype; an absent entry means that the unit does not support that format.
using Peaks = std::array<Maybe<FlopsPerSecond>, 12>;

struct Cores {
  std::string kind;
  Count count;
  Maybe<Hertz> base_clock, boost_clock;
  Maybe<std::int64_t> warps, registers_per_thread;
};

/// The matrix units of one core: a systolic array of rows x columns, or a tensor core of `flops_per_cycle`.
struct MatrixUnit {
  Count count;
  Maybe<std::int64_t> rows, columns;
  Maybe<Flops> flops_per_cycle;
  Maybe<Hertz> clock;
  Maybe<std::int64_t> tile_m, tile_k, tile_n, cores_per_matmul;
};

/// The vector unit of one core: partitions x lanes x alus.
struct VectorUnit {
  Count partitions, lanes, alus;
  Sourced<bool> fma;
  Sourced<Hertz> clock;
  Maybe<std::int64_t> registers, register_loads, register_stores, latency, cross_lane_units;
};

/// One level of the memory hierarchy; figures are per chip or per core, as `per` says.
struct MemoryLevel {
  std::string name;
  Sourced<Bytes> capacity;
  Maybe<BytesPerSecond> bandwidth;
  std::optional<std::string> per;
};

/// The network that joins chips directly: a torus, switches, or a link between every pair of chips.
struct ScaleUp {
  std::string kind;
  std::optional<std::string> technology;
  Count links;
  Sourced<BytesPerSecond> link_bandwidth;
  Maybe<Seconds> hop_latency;
  Maybe<Shape> pod;
  Maybe<std::vector<Shape>> shapes;
  std::optional<std::string> wrap_rule;
  Maybe<std::int64_t> wrap_length;
  Maybe<bool> twisted;
  Maybe<std::int64_t> domain, switches, switch_ports;
  Maybe<bool> in_network_reduction;
};

struct Host {
  Count chips;
  Sourced<BytesPerSecond> pcie;
  Maybe<BytesPerSecond> peer;              ///< what packets leave of `pcie` for data between two chips of the host
  Maybe<Bytes> memory;                     ///< memory of the whole host
  Maybe<BytesPerSecond> memory_bandwidth;  ///< bandwidth of the whole host, reads plus writes
  Maybe<Shape> shape;
  Maybe<std::int64_t> trays;
};

/// One level of the fat tree above the node: `degree` children per unit (any number if absent).
struct FabricLevel {
  std::string name;
  Maybe<std::int64_t> degree, switches;
  Sourced<BytesPerSecond> bandwidth;
};

struct ScaleOut {
  Sourced<BytesPerSecond> bandwidth;
  std::optional<std::string> technology;
  Maybe<std::int64_t> nics_per_host;
  Maybe<BytesPerSecond> nic_bandwidth;
  Maybe<std::int64_t> switch_ports;
  Maybe<bool> in_network_reduction;
  std::vector<FabricLevel> levels;
};

struct Networks {
  std::optional<ScaleUp> scale_up;
  std::optional<ScaleOut> scale_out;
};

struct Power {
  Sourced<Watts> chip;
  Maybe<Watts> system;
};

/// The share of each peak that good kernels reach; the estimate uses it until the chip is calibrated.
struct Efficiency {
  Sourced<double> matrix, memory;
  Maybe<double> network;
  Maybe<Seconds> latency;  ///< fixed time of a collective
};

struct Price {
  Sourced<DollarsPerSecond> value;
  std::string date, provider, kind;
  std::optional<std::string> region;
};

struct Chip {
  std::string id, name, vendor, family, architecture;
  std::string base;  ///< the id of the chip that its file started from, whose calibration it has; mostly empty
  std::vector<SourceEntry> sources;
  Peaks peak, peak_sparse;
  Cores cores;
  MatrixUnit matrix_unit;
  VectorUnit vector_unit;
  std::vector<MemoryLevel> memory;  ///< hbm first
  Networks network;
  Host host;
  std::optional<Power> power;
  Efficiency efficiency;
  std::vector<Price> prices;
  std::string price_provider;      ///< whose prices count, where a request says so
  std::optional<Price> own_price;  ///< price of the request; counts instead of all others

  const MemoryLevel& hbm() const { return memory.front(); }
};

inline constexpr std::string_view memory_level_names[] = {"hbm", "vmem", "cmem", "smem",      "l1",
                                                          "l2",  "l3",   "tmem", "registers", "sbuf"};

/// Calls the visitor for every field of each section of a chip file.
struct ChipSections {
  static constexpr auto peaks = [](auto& table, auto& v) {
    for (const DtypeFacts& dtype : all_dtypes()) v.number(dtype.name, table[static_cast<std::size_t>(dtype.dtype)]);
  };
  static constexpr auto cores = [](auto& x, auto& v) {
    v.text("kind", x.kind);
    v.number("count", x.count);
    v.number("base_clock", x.base_clock);
    v.number("boost_clock", x.boost_clock);
    v.number("warps", x.warps);
    v.number("registers_per_thread", x.registers_per_thread);
  };
  static constexpr auto matrix_unit = [](auto& x, auto& v) {
    v.number("count", x.count);
    v.number("rows", x.rows);
    v.number("columns", x.columns);
    v.number("flops_per_cycle", x.flops_per_cycle);
    v.number("clock", x.clock);
    v.number("tile_m", x.tile_m);
    v.number("tile_k", x.tile_k);
    v.number("tile_n", x.tile_n);
    v.number("cores_per_matmul", x.cores_per_matmul);
  };
  static constexpr auto vector_unit = [](auto& x, auto& v) {
    v.number("partitions", x.partitions);
    v.number("lanes", x.lanes);
    v.number("alus", x.alus);
    v.number("fma", x.fma);
    v.number("clock", x.clock);
    v.number("registers", x.registers);
    v.number("register_loads", x.register_loads);
    v.number("register_stores", x.register_stores);
    v.number("latency", x.latency);
    v.number("cross_lane_units", x.cross_lane_units);
  };
  static constexpr auto memory_level = [](auto& x, auto& v) {
    v.number("capacity", x.capacity);
    v.number("bandwidth", x.bandwidth);
    v.text("per", x.per);
  };
  static constexpr auto scale_up = [](auto& x, auto& v) {
    v.text("kind", x.kind);
    v.text("technology", x.technology);
    v.number("links", x.links);
    v.number("link_bandwidth", x.link_bandwidth);
    v.number("hop_latency", x.hop_latency);
    v.number("pod", x.pod);
    v.number("shapes", x.shapes);
    v.text("wrap_rule", x.wrap_rule);
    v.number("wrap_length", x.wrap_length);
    v.number("twisted", x.twisted);
    v.number("domain", x.domain);
    v.number("switches", x.switches);
    v.number("switch_ports", x.switch_ports);
    v.number("in_network_reduction", x.in_network_reduction);
  };
  static constexpr auto fabric_level = [](auto& x, auto& v) {
    v.text("name", x.name);
    v.number("degree", x.degree);
    v.number("switches", x.switches);
    v.number("bandwidth", x.bandwidth);
  };
  static constexpr auto scale_out = [](auto& x, auto& v) {
    v.number("bandwidth", x.bandwidth);
    v.text("technology", x.technology);
    v.number("nics_per_host", x.nics_per_host);
    v.number("nic_bandwidth", x.nic_bandwidth);
    v.number("switch_ports", x.switch_ports);
    v.number("in_network_reduction", x.in_network_reduction);
    v.items("level", x.levels, fabric_level);
  };
  static constexpr auto network = [](auto& x, auto& v) {
    v.optional_table("scale_up", x.scale_up, scale_up);
    v.optional_table("scale_out", x.scale_out, scale_out);
  };
  static constexpr auto host = [](auto& x, auto& v) {
    v.number("chips", x.chips);
    v.number("pcie", x.pcie);
    v.number("peer", x.peer);
    v.number("memory", x.memory);
    v.number("memory_bandwidth", x.memory_bandwidth);
    v.number("shape", x.shape);
    v.number("trays", x.trays);
  };
  static constexpr auto power = [](auto& x, auto& v) {
    v.number("chip", x.chip);
    v.number("system", x.system);
  };
  static constexpr auto efficiency = [](auto& x, auto& v) {
    v.number("matrix", x.matrix);
    v.number("memory", x.memory);
    v.number("network", x.network);
    v.number("latency", x.latency);
  };
  static constexpr auto price = [](auto& x, auto& v) {
    v.number("value", x.value);
    v.date("date", x.date);
    v.text("provider", x.provider);
    v.text("kind", x.kind);
    v.text("region", x.region);
  };
};

/// Calls the visitor for every field of a chip with its key. The reader, the printer and the schema test share this
/// list.
template <class C, class V>
void visit_chip(C& chip, V& v) {
  v.text("id", chip.id);
  v.text("name", chip.name);
  v.text("vendor", chip.vendor);
  v.text("family", chip.family);
  v.text("architecture", chip.architecture);
  v.table("peak", chip.peak, ChipSections::peaks);
  v.optional_table("peak_sparse", chip.peak_sparse, ChipSections::peaks);
  v.table("cores", chip.cores, ChipSections::cores);
  v.table("matrix_unit", chip.matrix_unit, ChipSections::matrix_unit);
  v.table("vector_unit", chip.vector_unit, ChipSections::vector_unit);
  v.named_tables("memory", chip.memory, memory_level_names, ChipSections::memory_level);
  v.optional_table("network", chip.network, ChipSections::network);
  v.table("host", chip.host, ChipSections::host);
  v.optional_table("power", chip.power, ChipSections::power);
  v.table("efficiency", chip.efficiency, ChipSections::efficiency);
  v.items("price", chip.prices, ChipSections::price);
}

/// A value that replaces one in a chip file before it is read: "memory.hbm.bandwidth" = "1.23 TB/s".
struct Override {
  std::string path, value;
  std::string source = {};  ///< source of the value; empty: --set
};

/// A chip file as a tree that has its base's values, if it has a base.
struct ChipRecord {
  Toml root;
  std::string file;                 ///< names it in errors and sources
  bool own = false;                 ///< a user's own file: its numbers may have no source
  std::optional<Chip> before = {};  ///< the base
};

/// Reads and checks a chip file; reports every fault at once.
Result<Chip> read_chip(const ChipRecord& record, const std::vector<Override>& overrides = {});
Result<Chip> read_chip(std::string_view document, std::string_view file, const std::vector<Override>& overrides = {});

/// Derived figures, each one formula over catalogue numbers.
/// Vector ALUs of the whole chip.
std::int64_t vector_alus(const Chip& chip);
/// Rate of one operation per ALU and cycle on the whole chip: the peak for additions.
Sourced<FlopsPerSecond> vector_rate(const Chip& chip);
/// Rate of the whole chip with a fused multiply-add per cycle if the unit has one: the peak for dot products.
Sourced<FlopsPerSecond> vector_fma_rate(const Chip& chip);
/// bf16 or fp16 FLOP per cycle of one matrix unit, if the file says enough.
std::optional<Sourced<Flops>> matrix_flops_per_cycle(const Chip& chip);
/// The dense peak of a dtype, or an error that names the formats the chip has.
Result<Sourced<FlopsPerSecond>> peak_rate(const Chip& chip, Dtype dtype, std::string_view where);
/// One-way bandwidth from one chip into its scale-up network: links x bandwidth of one.
std::optional<Sourced<BytesPerSecond>> scale_up_egress(const Chip& chip);

/// Size of the scale-up domain: chips joined by links of their own, or else a host. Links that join no two chips do not
/// count, as for cards whose bridges are an accessory.
std::int64_t node_size(const Chip& chip);
/// Chips below one full child of each level of the scale-out fabric, from the node upwards; the top level takes any
/// number of children. The chip must have a scale-out network.
std::vector<double> chips_below_levels(const Chip& chip);

/// The price that counts: the request's own, or the newest on-demand price of its provider or of any; null: none.
const Price* newest_price(const Chip& chip);

/// The share of the network's bandwidth that good collectives reach; 1 if the file has none.
double network_efficiency(const Chip& chip);
/// Fixed time of a collective in addition to bytes and hops, until the chip is calibrated; 0 if the file has none.
Seconds collective_latency(const Chip& chip);

/// A source of bytes in a roofline: a memory level, pcie, ici (one link one way), nvlink (all links one way)
/// or dcn.
struct MemoryRoof {
  std::string name;
  Sourced<BytesPerSecond> bandwidth;  ///< bandwidth of the whole chip
};
std::vector<MemoryRoof> memory_roofs(const Chip& chip);
Result<MemoryRoof> memory_roof(const Chip& chip, std::string_view name, std::string_view where);

}  // namespace assay::hardware
