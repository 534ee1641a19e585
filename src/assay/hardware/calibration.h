// Calibration: the few fitted numbers that turn a chip's ideal rates into times of real kernels and collectives.
// The formulas that use them are in predict/kernel/kernel_models.h and predict/collective/collective_models.h;
// docs/calibration.md describes the file and how it is made.
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
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/collective_protocols.h"

namespace assay::hardware {

/// Matrix products. Shares are of the chip's dense peak and of its main memory's bandwidth.
struct MatmulCalibration {
  std::array<double, 12> share{};  ///< by compute format, at the clock of a short burst; 0: not measured
  double droop = 0;                ///< how much longer arithmetic takes at the clock that sustained power allows
  double memory_share = 1;
  bool fine_tiles = false;  ///< tile sides are multiples of 16 instead of powers of two
  double small_tile = 0;    ///< elements: loss at the edges of a tile, relative to 128 x 256
  double fill = 0;          ///< prologue and epilogue of a tile, as elements of k in bf16
  Seconds split_cost;       ///< time of the kernel that adds partial sums when k is split over cores
  /// Time to read the scales of operands, in formats that have them; 0 if absent.
  std::optional<Seconds> scales;
  /// Least time of one stage of a tile's loop over k, a cache line of each row, whatever the tile: until its buffer is
  /// free and filled again; 0 if absent.
  std::optional<Seconds> stage;
  /// Rate at which one core gets operands from the shared cache; unbounded if absent.
  std::optional<BytesPerSecond> port;
  /// The port of kernels that load rows in parts of 4 or 8 bytes, and of 2: bulk copies need rows of whole 16 bytes.
  /// Absent: not known. Where rows of the result are odd too, parts of 2 bytes may have another.
  std::optional<BytesPerSecond> narrow_port, scattered_port, scattered_result_port;
  /// The port of kernels over experts, and what starts and ends their tiles, as elements of k in bf16. Absent: priced
  /// as a batch of products.
  std::optional<BytesPerSecond> grouped_port;
  std::optional<double> grouped_fill;
  /// How much longer loads take if every row of the operands begins inside a cache line.
  std::optional<double> straddle;
  /// CPU: time to start the other cores and wait for them. A product uses as many cores as pay off, and its operands
  /// are first copied into panels, so memory time adds to arithmetic instead of overlapping with it.
  std::optional<Seconds> fork;
};

/// How kernels follow each other. Kernels measured one at a time have their own regime.
struct Regime {
  Seconds launch;  ///< fixed time of each kernel on the device
  Seconds gap;     ///< idle time between kernels, during which the chip cools; 0: sustained
  Seconds ramp;    ///< time until memory requests reach their full rate
};

/// Fixed times of kernels that are measured one at a time; products have that of their regime.
struct LaunchCalibration {
  Seconds attention_forward, attention_backward, decode, stream, norm, softmax, optimizer;
};
/// What a cache that was overwritten before the measurement adds: its lines have to be written back first.
struct FlushCalibration {
  Bytes dirty;        ///< bytes that flushing leaves in the cache
  double evicts = 1;  ///< share of a kernel's reads that evict, until no such bytes are left
};

/// Kernels that stream memory: shares of its bandwidth.
struct PointwiseCalibration {
  double stream = 1, norm = 1, softmax = 1, optimizer = 1;
  Seconds ramp;
};

/// Wider heads (256, say) use smaller tiles; latent attention's 192 and 128 do not.
inline constexpr double wide_head = 160;
/// Tiled attention, forward or backward.
struct AttentionPass {
  double share = 1;    ///< share of the peak while a tile is multiplied
  double wide = 1;     ///< factor on `share` for heads wider than wide_head
  double softmax = 0;  ///< cost of a tile's softmax, in elements of head size
  double passes = 0;   ///< passes over queries, keys, values and results, not overlapped with the arithmetic
  /// Time before and after a row of tiles: until its first queries and keys have arrived and its result is written; 0
  /// if absent.
  std::optional<Seconds> start{};
  /// How much of the longest row is still to do when cores run out of rows; 1 if absent. 0: the longest start first.
  std::optional<double> tail{};
  /// Factor on the time of a tile if a head fills its kernel's in part, which then checks every load; 1 if absent.
  std::optional<double> uneven{};
  /// Factor on the time of a tile in kernels whose heads are no multiples of whole_row; 1 if absent.
  std::optional<double> part_row{};
};
/// Elements of a head in a row of shared memory without bank conflicts: 128 bytes of 16 bits.
inline constexpr double whole_row = 64;
/// Decoding: one query token per sequence against a cache.
struct DecodeCalibration {
  double share = 1;    ///< share of the bandwidth, reading keys and values
  double crowded = 1;  ///< factor on `share` when there are too many sequences and key-value heads to split
  double wide = 1;     ///< share of the bandwidth for heads wider than wide_head
  Seconds item;        ///< time per sequence and key-value head, on one core
};
struct AttentionKernelCalibration {
  std::optional<double> head_step;  ///< kernels exist for heads of its multiples; 32 if absent
  bool full_power = false;          ///< matrix units take as much power as in products, so that the clock drops alike
  AttentionPass forward, backward;
  DecodeCalibration decode;
};
/// The attention kernel, chosen by the user; `automatic` is the best measured one.
enum class AttentionKernel : std::uint8_t { automatic, flash2, cudnn };
inline constexpr std::string_view attention_kernel_names[] = {"auto", "flash2", "cudnn"};
struct AttentionCalibration {
  std::optional<AttentionKernelCalibration> flash2, cudnn;
};

/// One kind of collective inside a node: latency + member (n - 1) + x / B + 2 sqrt(chunk x / B). Where members are
/// processes on cores, which copy every byte themselves, all of it takes n / cores times as long once they outnumber
/// the cores.
struct CollectiveCurve {
  Seconds latency, member;
  double share = 1;  ///< share of the link bandwidth that a large group reaches
  double pair = 0;   ///< how much slower small groups are: B = share link / (1 + pair / n)
  Seconds chunk;
};
/// Between nodes: what a fabric adds to a step of the library's own model. It depends on the fabric, not on the chip.
struct AcrossCurve {
  Seconds latency;
  FabricProtocols runs{};  ///< not in the file: what steps/collectives.toml says of the fabric and the chip
};
enum class Fabric : std::uint8_t { infiniband, roce, efa, tcpxo };
inline constexpr std::string_view fabric_keys[] = {"infiniband", "roce", "efa", "tcpxo"};
/// The fabric of a technology that a chip file or a user names; InfiniBand by default.
Fabric fabric_of(std::string_view technology);
struct CollectiveCalibration {
  CollectiveCurve all_gather, reduce_scatter, all_reduce, all_to_all;
  double in_network = 0;  ///< bytes of an all-reduce that the switches reduce, per link bandwidth; 0: they do not
  std::optional<AcrossCurve> infiniband, roce, efa, tcpxo;  ///< absent if only one node was measured
  std::optional<BytesPerSecond> tree{};  ///< upper bound for arrays reduced along chains of chips between nodes
  std::optional<Seconds> chunk{};        ///< time of a long array's first chunk at every hop of a tree
  std::optional<double> cores{};         ///< cores that the members of a node share, if they are processes
  CollectiveProtocols protocols{};       ///< not in the file

  /// The curve of a fabric; without latency if it was not measured.
  AcrossCurve across(Fabric fabric) const {
    return (this->*(across_curves[static_cast<std::size_t>(fabric)])).value_or(AcrossCurve{});
  }
  static const std::array<std::optional<AcrossCurve> CollectiveCalibration::*, 4> across_curves;  ///< by Fabric

  /// Takes over how the library runs collectives on chips of an architecture.
  void run(const CollectiveProtocols& library, std::string_view architecture);
};
inline constexpr std::array<std::optional<AcrossCurve> CollectiveCalibration::*, 4>
    CollectiveCalibration::across_curves{&CollectiveCalibration::infiniband, &CollectiveCalibration::roce,
                                         &CollectiveCalibration::efa, &CollectiveCalibration::tcpxo};
/// The curves that are measured, in the order of program::Collective.
inline constexpr CollectiveCurve CollectiveCalibration::*collective_curves[] = {
    &CollectiveCalibration::all_gather, &CollectiveCalibration::reduce_scatter, &CollectiveCalibration::all_reduce,
    &CollectiveCalibration::all_to_all};

/// Host time to launch a kernel; a step takes at least as long as its launches.
struct HostCalibration {
  Seconds eager, compiled, graph;
};

/// Four of five measurements are within a factor of 1 + spread of the estimate, by class. 0: not known.
struct SpreadCalibration {
  double matmul = 0, attention = 0, decode = 0, pointwise = 0, collective = 0;
  std::optional<double> between_nodes{};  ///< for collectives on any fabric; as in a node if absent
};
inline constexpr double spread_coverage = 0.8;

struct CalibrationSource {
  std::string key, title, command, url, date, rows, error;
};

/// One file of catalogue/calibration, for a chip or a family of chips. Unmeasured sections are absent.
struct Calibration {
  std::string id, name;
  std::optional<std::string> chip;                        ///< set for a single chip
  std::optional<std::vector<std::string>> architectures;  ///< set for a family of chips
  std::vector<CalibrationSource> sources;
  std::optional<MatmulCalibration> matmul;
  std::optional<Regime> burst;              ///< kernels measured one at a time
  std::optional<Regime> sustained;          ///< kernels in a step
  std::optional<LaunchCalibration> launch;  ///< absent: every kernel starts like a product
  std::optional<FlushCalibration> flushed;
  std::optional<PointwiseCalibration> pointwise;
  std::optional<AttentionCalibration> attention;
  std::optional<CollectiveCalibration> collective;
  std::optional<HostCalibration> host;
  std::optional<SpreadCalibration> spread;
  SourceTable origins;  ///< by section and by key: "matmul.droop" is from "calibration/hopper.toml:12 (fit)"

  /// The source of a section's numbers.
  std::string origin(std::string_view section) const;
};

/// Calls the visitor for every field of each section of a calibration file.
struct CalibrationSections {
  static constexpr auto matmul = [](auto& x, auto& v) {
    v.formats("share", x.share);
    v.number("droop", x.droop);
    v.share("memory_share", x.memory_share);
    v.flag("fine_tiles", x.fine_tiles);
    v.number("small_tile", x.small_tile);
    v.number("fill", x.fill);
    v.number("split_cost", x.split_cost);
    v.number("scales", x.scales);
    v.number("stage", x.stage);
    v.number("port", x.port);
    v.number("narrow_port", x.narrow_port);
    v.number("scattered_port", x.scattered_port);
    v.number("scattered_result_port", x.scattered_result_port);
    v.number("grouped_port", x.grouped_port);
    v.number("grouped_fill", x.grouped_fill);
    v.number("straddle", x.straddle);
    v.number("fork", x.fork);
  };
  static constexpr auto regime = [](auto& x, auto& v) {
    v.number("launch", x.launch);
    v.number("gap", x.gap);
    v.number("ramp", x.ramp);
  };
  static constexpr auto launch = [](auto& x, auto& v) {
    v.number("attention_forward", x.attention_forward);
    v.number("attention_backward", x.attention_backward);
    v.number("decode", x.decode);
    v.number("stream", x.stream);
    v.number("norm", x.norm);
    v.number("softmax", x.softmax);
    v.number("optimizer", x.optimizer);
  };
  static constexpr auto flushed = [](auto& x, auto& v) {
    v.number("dirty", x.dirty);
    v.share("evicts", x.evicts);
  };
  static constexpr auto pointwise = [](auto& x, auto& v) {
    v.share("stream", x.stream);
    v.share("norm", x.norm);
    v.share("softmax", x.softmax);
    v.share("optimizer", x.optimizer);
    v.number("ramp", x.ramp);
  };
  static constexpr auto attention_pass = [](auto& x, auto& v) {
    v.share("share", x.share);
    v.share("wide", x.wide);
    v.number("softmax", x.softmax);
    v.number("passes", x.passes);
    v.number("start", x.start);
    v.number("tail", x.tail);
    v.number("uneven", x.uneven);
    v.number("part_row", x.part_row);
  };
  static constexpr auto decode = [](auto& x, auto& v) {
    v.share("share", x.share);
    v.share("crowded", x.crowded);
    v.share("wide", x.wide);
    v.number("item", x.item);
  };
  static constexpr auto attention_kernel = [](auto& x, auto& v) {
    v.number("head_step", x.head_step);
    v.flag("full_power", x.full_power);
    v.table("forward", x.forward, attention_pass);
    v.table("backward", x.backward, attention_pass);
    v.table("decode", x.decode, decode);
  };
  static constexpr auto attention = [](auto& x, auto& v) {
    v.optional_table("flash2", x.flash2, attention_kernel);
    v.optional_table("cudnn", x.cudnn, attention_kernel);
  };
  static constexpr auto collective_curve = [](auto& x, auto& v) {
    v.number("latency", x.latency);
    v.number("member", x.member);
    v.share("share", x.share);
    v.number("pair", x.pair);
    v.number("chunk", x.chunk);
  };
  static constexpr auto across_curve = [](auto& x, auto& v) { v.number("latency", x.latency); };
  static constexpr auto collective = [](auto& x, auto& v) {
    v.number("in_network", x.in_network);
    v.number("tree", x.tree);
    v.number("chunk", x.chunk);
    v.number("cores", x.cores);
    v.table("all_gather", x.all_gather, collective_curve);
    v.table("reduce_scatter", x.reduce_scatter, collective_curve);
    v.table("all_reduce", x.all_reduce, collective_curve);
    v.table("all_to_all", x.all_to_all, collective_curve);
    v.optional_table("infiniband", x.infiniband, across_curve);
    v.optional_table("roce", x.roce, across_curve);
    v.optional_table("efa", x.efa, across_curve);
    v.optional_table("tcpxo", x.tcpxo, across_curve);
  };
  static constexpr auto host = [](auto& x, auto& v) {
    v.number("eager", x.eager);
    v.number("compiled", x.compiled);
    v.number("graph", x.graph);
  };
  static constexpr auto spread = [](auto& x, auto& v) {
    v.number("matmul", x.matmul);
    v.number("attention", x.attention);
    v.number("decode", x.decode);
    v.number("pointwise", x.pointwise);
    v.number("collective", x.collective);
    v.number("between_nodes", x.between_nodes);
  };
};

/// Calls the visitor for every field with its key; reader and writer share this list.
template <class C, class V>
void visit_calibration(C& c, V& v) {
  v.text("id", c.id);
  v.text("name", c.name);
  v.text("chip", c.chip);
  v.texts("architectures", c.architectures);
  v.optional_table("matmul", c.matmul, CalibrationSections::matmul);
  v.optional_table("burst", c.burst, CalibrationSections::regime);
  v.optional_table("sustained", c.sustained, CalibrationSections::regime);
  v.optional_table("launch", c.launch, CalibrationSections::launch);
  v.optional_table("flushed", c.flushed, CalibrationSections::flushed);
  v.optional_table("pointwise", c.pointwise, CalibrationSections::pointwise);
  v.optional_table("attention", c.attention, CalibrationSections::attention);
  v.optional_table("collective", c.collective, CalibrationSections::collective);
  v.optional_table("host", c.host, CalibrationSections::host);
  v.optional_table("spread", c.spread, CalibrationSections::spread);
}

/// Reads and checks a calibration file; reports every fault at once.
Result<Calibration> read_calibration(std::string_view document, std::string_view file);
/// The file that reads back as this calibration.
std::string calibration_text(const Calibration& calibration);

/// The calibration of a chip: its own file, with its family's for missing sections.
struct ChipCalibration {
  Calibration values;
  bool own = false;   ///< the chip itself was measured
  std::string basis;  ///< "calibration/h200-sxm.toml", "calibration/hopper.toml, for the family Hopper"
};
/// The calibration of a chip; empty if neither the chip nor its family was measured.
Result<std::optional<ChipCalibration>> calibration_of(const Chip& chip, const Catalogue& catalogue);

}  // namespace assay::hardware
