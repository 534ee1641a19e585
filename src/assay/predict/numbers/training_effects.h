// What whole training steps cost beyond the sum of their kernels and collectives: numbers by family of chips and by
// software. catalogue/steps/training.toml holds them; docs/validation.md reports their errors.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/cluster.h"
#include "assay/model/transformer.h"
#include "assay/predict/numbers/families.h"
#include "assay/predict/numbers/interval.h"
#include "assay/program/lower/recompute.h"

namespace assay {
struct RecordFile;
}  // namespace assay

namespace assay::numbers {

/// How the software launches kernels and fuses element-wise operations.
enum class Fusion : std::uint8_t {
  fused,     ///< hand-written fused kernels
  compiled,  ///< a compiler fuses what it can (torch.compile)
  eager,     ///< every operation is its own kernel
  xla        ///< the step is compiled as a whole (JAX); the only one on TPUs
};
inline constexpr std::string_view fusion_names[] = {"fused", "compiled", "eager", "xla"};

/// Kinds of steps that stream tensors through memory. Frameworks compose some of them of several kernels, each of which
/// reads its operands and writes its result.
enum class StreamKind : std::uint8_t {
  norm,          ///< without a mean
  centred_norm,  ///< with one
  rotation,
  gate,        ///< an activation function and a product
  activation,  ///< the function alone
  sum,         ///< and whatever else is one operation
  loss,
  expert_gate,  ///< of halves of one tensor
  dispatch,     ///< of tokens to experts
  combine       ///< of what experts made of them
};
inline constexpr std::string_view stream_kind_names[] = {
    "norm", "centred_norm", "rotation", "gate", "activation", "sum", "loss", "expert_gate", "dispatch", "combine"};
/// A number of the forward pass and one of the backward pass.
using Passes = std::array<double, 2>;
/// Bytes over the fewest, or kernels, by kind.
using KindTraffic = std::array<Given<Passes>, std::size(stream_kind_names)>;
/// What software has that runs each kind of step as one kernel.
inline KindTraffic fewest_bytes() {
  KindTraffic all;
  all.fill({Passes{1, 1}, "1: the software has a kernel for it"});
  return all;
}

/// What their rotations are known by in a file, by model::Rotation.
inline constexpr std::string_view rotation_keys[] = {"rotation", "wide_rotation", "wide_pairs_rotation"};
static_assert(std::size(rotation_keys) == std::size(model::rotation_names));

/// What eager code adds where a model's own code is composed of more operations than its kinds: forward and backward.
struct ComposedTraffic {
  /// In place of a kind's number, where operands are halves of one tensor: kernels compute an address for each number.
  Given<Passes> joined_gate;
  /// Of the part of each head that turns, and of joining it with the rest, over the whole.
  Given<Passes> rotated_part, rejoined_heads;
  /// In place of a kind's number, by model::Rotation; the first one is the kind itself.
  std::array<Given<Passes>, std::size(model::rotation_names)> rotations{};
  /// Tensors of scores of plain attention that pass through memory beyond those of one kernel, in 16 bits: with
  /// products in the format of the heads, and with all in fp32, whose products take `wide_products` times as long as
  /// those at the peak.
  Given<Passes> scores, wide_scores;
  Given<double> wide_products;
  Given<Passes> centred_norm;  ///< in place of a kind's number, where it is written as single operations
  /// Of the gradient of a joined projection, over queries, keys and values: by JoinedProjection.
  Given<std::array<double, std::size(model::projection_names)>> projections;
  /// Tensors of logits that pass through memory before the loss, by model::Logits.
  std::array<Given<Passes>, std::size(model::logits_names)> logits{};
  /// Tensors that pass through memory beyond those of a function of one kernel: by model::Activation.
  std::array<Given<Passes>, std::size(model::activation_names)> functions{};
};

/// Which tensor-parallel collectives run concurrently with products.
enum class TensorOverlap : std::uint8_t {
  none,      ///< none: each is exposed
  backward,  ///< collectives of input gradients, with the products of weight gradients
  all        ///< the others too, in pieces, with the products that need them
};

/// What the user says about the software.
struct StepSoftware {
  Fusion fusion = Fusion::fused;
  /// Of logits and loss, which may be fused where layers are not and vice versa; as `fusion` if absent.
  std::optional<Fusion> loss = std::nullopt;
  bool captured = false;        ///< kernels are replayed from a graph: the host does not launch them individually
  bool fixed_capacity = false;  ///< experts have equally many slots, other tokens are dropped: routing is captured too
  bool first_flash = false;     ///< attention by the first FlashAttention or its Triton version
  bool explicit_mask = false;   ///< attention reads its mask from memory, and computes what it hides
  bool wide_attention = false;  ///< plain attention is computed in fp32
  bool unfused_update = false;  ///< the optimizer runs a kernel for each of its operations
  /// One kernel multiplies, gates and quantises for all experts of a device, without the host.
  bool fused_experts = false;
  TensorOverlap tensor_overlap = TensorOverlap::all;
  bool expert_overlap = true;  ///< where the schedule allows it, token exchange overlaps with other microbatches
  /// Each context-parallel device has a part of the sequence in one piece: the last one meets all keys before it.
  bool contiguous_context = false;
};

/// How collectives run concurrently with compute. Neutral by default: critical ones are exposed, background ones cost
/// nothing while they are hidden.
struct CollectiveOverlap {
  Given<double> chip_share;  ///< of the chip that a collective takes while it lasts: cores, memory bandwidth
  Given<Seconds> piece;      ///< of each further piece that a product is cut into
  Given<double> tail;        ///< of what is reduced or gathered once a step: the bucket that no compute is left beside
  TensorOverlap tensor = TensorOverlap::none;
  bool ring_context = false;    ///< keys and values travel in pieces while attention computes on those that arrived
  bool experts = false;         ///< token exchange, under schedules that overlap microbatches
  bool copies_weights = false;  ///< gathered weights are copied out of buffers, gradients into them
};

/// Neutral by default: without a calibration nothing is added.
struct StepEffects {
  Given<double> product = 1;  ///< time of products inside a step, relative to products measured alone
  Given<double> attention = 1, plain_attention = 1;  ///< time of attention over kernels alone, with flash and without
  Given<double> unaligned = 1;                       ///< factor on plain attention whose head size is no multiple of 8
  Given<double> pointwise = 1;                       ///< bytes that element-wise steps move over the minimum
  KindTraffic kinds = fewest_bytes();                ///< further factor by kind
  KindTraffic kernels = fewest_bytes();              ///< that a step of a kind is composed of
  Given<Seconds> start;                     ///< the least that each of them takes; 0: as kernels measured alone
  std::optional<ComposedTraffic> composed;  ///< of eager software
  bool wide_attention = false;              ///< plain attention is computed in fp32
  Given<double> cast = 1;                   ///< bytes of quantisation for products over the minimum
  Given<double> loss = 1;                   ///< bytes of logits and loss over the minimum; `kinds` comes on top
  Given<double> scan = 1;                   ///< time of the products of scans over their arithmetic on vector units
  Given<double> expert_traffic = 1;         ///< bytes to sort tokens by expert and back over the minimum
  Given<double> expert_pointwise = 1;  ///< gates and casts between an expert's products, over other element-wise steps
  Given<double> expert_bias = 1;       ///< bytes of adding biases expert by expert, over other element-wise steps
  Given<double> update = 1;            ///< time of the optimizer among other kernels, relative to one measured alone
  Given<double> unfused_update = 0;    ///< bytes of the optimizer over the fewest; 0: it is one kernel
  Given<double> memory_power = 0;      ///< that kernels bound by memory draw, over what the chip may
  Given<double> attention_droop = 0;   ///< of flash attention under sustained power, over that of products
  Given<double> routing_launches = 0;  ///< kernels that routing launches in a pass beyond the steps of the program
  CollectiveOverlap overlap;
  Given<double> straggler = 0;      ///< share of the step for each doubling of the chips beyond eight
  Given<Seconds> fixed;             ///< per step: data, logging, clipping
  Given<Seconds> launch;            ///< host time for each step of the program
  Given<Seconds> routed_launch;     ///< the same in layers whose shapes depend on routing
  Given<double> activations = 1;    ///< bytes kept for the backward pass over the minimum
  Given<double> logits = 1;         ///< bytes of logits and their gradients over the minimum
  Given<double> reserved = 1;       ///< bytes that the allocator holds over those in use at the peak
  Given<Bytes> context;             ///< driver and communication library, outside of the allocator
  bool contiguous_context = false;  ///< see StepSoftware
  bool joins_products = false;      ///< products that read the same activation are one kernel
  bool pads_products = false;       ///< operands are padded to rows that load whole
  bool masked_attention = false;    ///< flash attention waits for its mask, with matrix units at half of their power
  bool adds_gradients = false;      ///< products add weight gradients to a buffer of all microbatches, which they read
  bool reruns_layers = false;       ///< full recomputation repeats whole layers, even what no gradient reads
  bool frees_gradients = false;     ///< gradients are allocated in the backward pass and freed after the update

  /// What the software recomputes under a policy.
  lower::Recompute executed(lower::Recompute policy) const {
    return reruns_layers && policy == lower::Recompute::full() ? lower::Recompute::whole() : policy;
  }
};

/// The file of all effects: numbers by family, or by how software fuses.
struct StepCalibration : MeasuredFamilies {
  static constexpr std::size_t ways = std::size(fusion_names);
  template <class T>
  using ByFusion = std::array<Given<T>, ways>;
  StepCalibration() = default;
  /// All neutral.
  explicit StepCalibration(Families all);

  // Fitted: visit_training has what each means.
  std::vector<Given<double>> product, stream;
  Given<double> plain_attention = 1, first_flash = 1, unaligned = 1;
  Given<double> compiled_expert_traffic = 1, scan = 1, straggler = 0;
  ByFusion<double> pointwise = fewest(), activations = fewest();
  Given<double> reserved = 1;
  Given<Bytes> context;
  ByFusion<Seconds> launch{Seconds(0), Seconds(0), Seconds(0), {Seconds(0), "0: one program per step"}};
  // Fitted for some software, counted for other.
  ByFusion<double> cast = fewest(), logits = fewest();
  // Counted or measured: catalogue/steps/kinds.toml and experts.toml.
  ByFusion<double> loss = fewest();
  Given<Seconds> fixed;
  ByFusion<double> idle{1, 1, 1, 1};  ///< of a step, over `fixed`
  Given<double> routing_launches;
  /// Bytes to sort tokens by expert and back over the fewest, of software that launches kernels, and where fused
  /// experts sort in the kernels of the exchange.
  Given<double> expert_traffic = 1, fused_expert_traffic = 1;
  Given<double> expert_bias = 1, explicit_mask = 1, update = 1, unfused_update = 0;
  std::array<KindTraffic, ways> kinds{fewest_bytes(), fewest_bytes(), fewest_bytes(), fewest_bytes()};
  std::array<KindTraffic, ways> kernels = kinds;
  ByFusion<Seconds> kernel_start{};
  ByFusion<double> served_traffic = fewest();   ///< bytes of element-wise steps of serving over the fewest
  ByFusion<double> served_kernels{1, 1, 1, 1};  ///< of element-wise steps of serving, over their number in the program
  ComposedTraffic composed;                     ///< of eager software
  // Chosen or measured: catalogue/steps/overlap.toml and power.toml.
  Given<Seconds> piece;
  Given<double> tail, memory_power, attention_droop;
  std::vector<IntervalClass> time_intervals, memory_intervals;
  UnseenIntervals unseen_chips;  ///< of times

  StepEffects effects(const hardware::Chip& chip, const StepSoftware& software) const;

 private:
  static ByFusion<double> fewest() {
    const Given<double> one(1, "1: the fewest bytes");
    return {one, one, one, one};
  }
};

/// Every number of steps/training.toml that times depend on: its table and key, its value, and what it means. Names are
/// those of fusion_names that the file has.
template <class C, class V>
void visit_training_times(C& c, V& v) {
  static constexpr std::string_view fused[] = {"fused", "", "", ""}, fused_and_whole[] = {"fused", "", "", "xla"},
                                    launching[] = {"fused", "compiled", "eager", ""};
  v.table("products",
          [&](auto& t) { t.by_family("slowdown", c.product, "matmuls in a step over matmuls by themselves"); });
  v.table("attention", [&](auto& t) {
    t.number("plain", c.plain_attention, "attention without flash kernels");
    t.number("first_flash", c.first_flash, "the first FlashAttention over its successor");
    t.number("unaligned", c.unaligned, "plain attention whose head size is no multiple of 8");
  });
  v.table("pointwise", [&](auto& t) {
    t.by_family("slowdown", c.stream, "element-wise kernels in a step over kernels by themselves");
    t.by_name("traffic", fused_and_whole, c.pointwise, "bytes of element-wise steps over the fewest");
    t.by_name("casts", fused, c.cast, "bytes of quantisation for matmuls over the fewest");
    t.number("compiled_experts", c.compiled_expert_traffic, "bytes to sort tokens by expert under XLA over the fewest");
    t.number("scans", c.scan, "matmuls of scans over their arithmetic on vector units");
  });
  v.table("step", [&](auto& t) {
    t.number("straggler", c.straggler, "share of the step for each doubling of the chips beyond eight");
    t.by_name("launch", launching, c.launch, "host time for each step of the program");
  });
}

/// Memory of a whole step. XLA plans memory ahead, and no table shows what its runtime uses: its numbers are neutral.
template <class C, class V>
void visit_training_memory(C& c, V& v) {
  static constexpr std::string_view not_fused[] = {"", "compiled", "eager", ""};
  v.table("memory", [&](auto& t) {
    t.by_name("activations", not_fused, c.activations, "bytes kept for the backward pass over the fewest");
    t.by_name("logits", not_fused, c.logits, "bytes of logits and their gradients over the fewest");
    t.number("reserved", c.reserved, "bytes that the allocator holds over those in use at the peak");
    t.number("context", c.context, "driver and communication library, outside of the allocator");
  });
}

template <class C, class V>
void visit_training(C& c, V& v) {
  visit_training_times(c, v);
  visit_training_memory(c, v);
}

/// Error classes of steps, narrowest first, and of their peak memory. None where no steps were measured on the family:
/// errors on other chips say nothing about it. `family` is that of the cluster's chips, nullptr if they have none.
std::vector<std::string> step_classes(const Family* family, const hardware::Cluster& cluster,
                                      const model::Transformer& model);
std::vector<std::string> memory_classes(const Family* family, const hardware::Cluster& cluster);
/// Adds the shares of state-space layers and of encoder layers.
void add_kinds(const model::Transformer& model, std::vector<Coordinate>& at);
/// Coordinates of a step, to tell whether it extrapolates.
std::vector<Coordinate> step_coordinates(const hardware::Cluster& cluster, const model::Transformer& model,
                                         std::int64_t sequence);

/// A file of catalogue/steps, to be read.
RecordFile effects_file(std::string_view file);
/// Reads a file like catalogue/steps/training.toml; reports every fault at once.
Result<StepCalibration> read_steps(std::string_view document, std::string_view file, Families families);
/// The effects of the catalogue; neutral if it has none.
Result<StepCalibration> steps_of(const hardware::Catalogue& catalogue);
/// How the clock follows a power limit: catalogue/steps/power.toml.
struct PowerClock {
  double exponent = 0;                          ///< clock share = (power limit / power of the chip) ^ exponent
  double least_share = 1;                       ///< of the chip's power, below which this does not hold
  Given<double> memory_power, attention_droop;  ///< see StepEffects
  /// Of products on a chip whose power is limited to this share.
  double slowdown(double share) const { return std::pow(1.0 / share, exponent); }
};
Result<PowerClock> power_clock_of(const hardware::Catalogue& catalogue);

/// The tables of a file that reads back as these; `source` is the key of their source.
std::string steps_text(const StepCalibration& steps, std::string_view source);

}  // namespace assay::numbers
