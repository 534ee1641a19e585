// The program: what every device does in one step of training or inference, as a list of steps over sharded tensors.
// All readings (list, count, cost, schedule, execute) walk it. Layers and microbatches are kept as repeats of a block,
// so that a deep model costs no more than a shallow one. Invariant: the inputs of a step come before it.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/number_format.h"
#include "assay/base/units.h"
#include "assay/model/scan_kernels.h"
#include "assay/model/weights.h"
#include "assay/program/form/mesh.h"
#include "assay/program/form/ops.h"
#include "assay/program/form/sharding.h"
#include "assay/program/form/step.h"

namespace assay::program {

/// The purpose of a tensor; sharding rules and memory accounting go by class.
enum class TensorClass : std::uint8_t {
  weight,       ///< as stored between steps
  used_weight,  ///< as a product uses it
  gradient,     ///< gradient of a weight, as the optimizer takes it
  optimizer,    ///< master weights and moments
  residual,     ///< the residual stream
  activation,   ///< inside a block; its sharding follows from its operands
  query,        ///< queries of attention
  key_value,    ///< keys and values of attention, and the cache
  dispatched    ///< tokens at their experts
};
inline constexpr std::size_t tensor_classes = 9;

/// Up to five dimensions of a tensor. Their kinds are packed into one word, so that finding one takes no loop.
class TensorDims {
 public:
  TensorDims() = default;
  explicit TensorDims(std::span<const model::Weight::Size> dims) {
    for (std::size_t i = 0; i < dims.size(); ++i) set(i, dims[i]);
  }
  /// Returns a const copy, so that assigning to it does not compile.
  const model::Weight::Size operator[](std::size_t i) const {
    return {static_cast<model::LogicalDim>((kinds_ >> 8 * i & 255u) - 1), sizes_[i]};
  }
  void set(std::size_t i, model::Weight::Size dim) {
    kinds_ = (kinds_ & ~(std::uint64_t{255} << 8 * i)) | code(dim.dim) << 8 * i;
    sizes_[i] = dim.size;
  }
  /// The index of the first dimension of that kind, or an index past the last one.
  int find(model::LogicalDim dim) const {
    constexpr std::uint64_t each = 0x0101010101010101;
    const std::uint64_t differ = kinds_ ^ each * code(dim);  // the zero byte is the match
    return std::countr_zero((differ - each) & ~differ & each << 7) / 8;
  }

 private:
  static constexpr std::uint64_t code(model::LogicalDim dim) { return static_cast<std::uint64_t>(dim) + 1; }

  std::uint64_t kinds_ = 0;  ///< one byte for each dimension, 0: none
  std::array<std::int64_t, 5> sizes_{};
};

/// A tensor of a program. Small and flat, because programs are built by the million.
struct ProgramTensor {
  std::string_view name;
  std::int16_t producer = -1;  ///< the step that makes it; below 0: none
  std::uint8_t rank = 0;
  bool is_gradient = false;     ///< listed with a d before its name
  bool is_needed = false;       ///< a gradient reads it, or a recomputed copy of it
  bool is_kept = false;         ///< stays in memory from the forward to the backward pass
  bool is_given = false;        ///< a weight, an input or a cache: no step makes it
  bool is_cross_layer = false;  ///< keys, values or an encoder's result that other layers also make or use
  bool is_frozen = false;       ///< a weight that is not trained
  bool is_shared = false;       ///< a weight that all layers of its kind use
  TensorClass tensor_class = TensorClass::activation;
  Dtype dtype = Dtype::bf16;  ///< set by store_as(), together with its bits
  Sharding sharding;
  TensorDims dims;
  double bits = 16;     ///< bits of one element in memory, including its share of block scales
  double elements = 0;  ///< elements on one device, counted when the tensor is added to a program

  void store_as(const NumberFormat& format) { dtype = format.dtype, bits = format.bits(); }
  int find(model::LogicalDim dim) const {
    const int found = dims.find(dim);
    return found < rank ? found : -1;
  }
};
static_assert(sizeof(ProgramTensor) <= 128);  // two cache lines
inline bool is_weight(const ProgramTensor& tensor) {
  return tensor.tensor_class == TensorClass::weight || tensor.tensor_class == TensorClass::used_weight;
}
/// Whether a weight has two dimensions or more where heads and their size are one and experts have one each: a matrix
/// or a table. The others are biases and scales.
bool is_matrix(const ProgramTensor& weight);

/// The mask of attention, and how many keys a query sees on average.
struct AttentionShape {
  bool causal = true;
  bool flash = true;
  bool cross = false;                  ///< attends to the encoder's tokens
  bool both_sides = false;             ///< the window is centred on the query
  std::int64_t window = 0, chunk = 0;  ///< 0: none
  std::int64_t picks = 0;              ///< keys that an index picks for a query; 0: all
  std::int64_t queries = 1, keys = 1;  ///< queries and keys of one sequence, before sharding; queries are the last ones
  /// Mean number of keys per query.
  double mean_keys() const;
};

/// Arithmetic and traffic of the backward pass of fused attention, over the forward pass: five products instead of two,
/// since it recomputes the scores.
inline constexpr double backward_passes = 2.5;

/// The recurrence of a scan.
struct ScanShape {
  Flops per_cell;            ///< FLOP of a token, for each cell of the state
  std::string_view formula;  ///< how the FLOP are counted
  double cells = 1;          ///< cells of the state of a channel
  double kept = 0;           ///< numbers of a channel that a server keeps for each sequence; 0: none
  model::ScanKernels kernels;
};

/// How the tokens of a step are spread over experts.
struct ExpertLoad {
  double tokens = 1, picks = 1;   ///< tokens of all devices, and experts that each token picks
  double load = 1;                ///< tokens of the fullest expert over an even share
  double experts = 1, slots = 1;  ///< experts of a layer, and slots of each
  double touched = 1;             ///< share of the experts with tokens: the weights of the others stay unread

  /// Share of the slots that tokens fill: slots are whole numbers per expert, products work only on tokens.
  template <class N>
  NumberOf<N, double> filled(const N& num) const {
    return num.given("tokens", tokens, "of all devices") * num.given("experts of a token", picks, "that it picks") *
           num.given("load", load, "tokens of the fullest expert over its part") /
           (num.given("experts", experts, "of a layer") * num.given("slots of an expert", slots, "for its tokens"));
  }
};

enum class Phase : std::uint8_t { forward, backward, update };
std::string_view name(Phase phase);

/// Steps [first, last) of one part of the model, done `layers` times per microbatch.
struct Block {
  std::string_view name;
  Phase phase = Phase::forward;
  int kind = -1;  ///< kind of its layers; below 0: embedding, head, update
  std::int64_t layers = 1;
  std::int32_t first = 0, last = 0;
  bool is_shared = false;  ///< final sums and updates, done once, of the weights that layers of the kind share
};

/// Which position of a mesh axis sends to which other one; positions that nobody sends to get zeros.
struct Permutation {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
};

struct Program {
  Mesh mesh;
  std::array<double, 1u << max_mesh_axes> ways_by{};  ///< by set of axes: how many ways they split
  std::vector<ProgramTensor> tensors;
  std::vector<Step> steps;
  std::vector<Block> blocks;
  std::vector<AttentionShape> attentions;
  std::vector<AttentionShape> candidates;  ///< shapes of steps that pick keys
  std::vector<ScanShape> scans;
  std::vector<ExpertLoad> expert_loads;
  std::vector<Permutation> permutations;  ///< each followed by its inverse
  std::vector<std::string> own_dims;      ///< names of dimensions that no transformer has: those from own_dim(0) on
  std::int64_t microbatches = 1;
  bool centred_norms = false;   ///< norms subtract the mean, even where not required
  bool composed_norms = false;  ///< libraries write norms as single operations

  const ProgramTensor& tensor(int id) const { return tensors[static_cast<std::size_t>(id)]; }
  std::span<const Step> steps_of(const Block& block) const {
    return std::span(steps).subspan(static_cast<std::size_t>(block.first),
                                    static_cast<std::size_t>(block.last - block.first));
  }
  /// Adds a tensor; returns its number.
  int add(const ProgramTensor& tensor);
  /// Changes the sharding of a tensor.
  void place(int id, const Sharding& sharding);
  void set_mesh(const Mesh& devices);
  double ways(AxisSet axes) const { return ways_by[axes]; }
  double ways(AxisList axes) const { return ways_by[axes.set()]; }
};

/// The letter or the name of a dimension in listings.
std::string_view dim_name(const Program& program, model::LogicalDim dim);

/// Local sizes of tensors, as numbers of a policy: dimensions, the devices that split them, bytes of elements. Inline,
/// like all below: lowering calls them all the time.
template <class N>
NumberOf<N, double> local_extent(const N& num, const Program& program, const ProgramTensor& tensor, int dim) {
  const model::Weight::Size size = tensor.dims[static_cast<std::size_t>(dim)];
  const AxisList axes = tensor.sharding.dims[static_cast<std::size_t>(dim)];
  std::string_view letter;
  if constexpr (N::traced) letter = dim_name(program, size.dim);
  const auto whole = num.given(letter, static_cast<double>(size.size), "of the array");
  if (axes.empty()) return whole;
  if constexpr (N::traced) {
    const auto part =
        whole / num.given("shards of " + std::string(letter), program.ways(axes), "devices that split it");
    return part.value() == std::ceil(part.value()) ? part : ceil(part);
  } else {
    return std::ceil(whole / program.ways(axes));  // padded up if it does not divide
  }
}
template <class N>
NumberOf<N, double> local_elements(const N& num, const Program& program, const ProgramTensor& tensor) {
  Factors<N> elements;
  for (int i = 0; i < tensor.rank; ++i) elements *= local_extent(num, program, tensor, i);
  return elements.of(num);
}
/// "fp4 with scales".
inline std::string format_text(const ProgramTensor& tensor) {
  return std::string(name(tensor.dtype)) + (tensor.bits > facts(tensor.dtype).bits ? " with scales" : "");
}
inline Bytes local_bytes(const ProgramTensor& tensor, double elements) { return Bytes(elements * tensor.bits / 8.0); }
template <class N>
NumberOf<N, Bytes> local_bytes(const N& num, const Program& program, const ProgramTensor& tensor) {
  const auto elements = local_elements(num, program, tensor);
  if constexpr (N::traced)
    return elements * num.given("bytes of an element", local_bytes(tensor, 1.0), format_text(tensor));
  else
    return local_bytes(tensor, elements);
}
inline double local_extent(const Program& program, const ProgramTensor& tensor, int dim) {
  return local_extent(Plain{}, program, tensor, dim);
}
inline double local_elements(const Program& program, const ProgramTensor& tensor) {
  return local_elements(Plain{}, program, tensor);
}
inline Bytes local_bytes(const Program& program, const ProgramTensor& tensor) {
  return local_bytes(Plain{}, program, tensor);
}
inline int Program::add(const ProgramTensor& tensor) {
  tensors.push_back(tensor);
  tensors.back().elements = local_elements(*this, tensors.back());
  tensors.back().producer = -1;
  return static_cast<int>(tensors.size()) - 1;
}
inline void Program::place(int id, const Sharding& sharding) {
  ProgramTensor& tensor = tensors[static_cast<std::size_t>(id)];
  tensor.sharding = sharding;
  tensor.elements = local_elements(*this, tensor);
}

/// Whether a step multiplies two activations to the gradient of a weight.
bool makes_weight_gradient(const Program& program, const Step& step);

/// A dimension that a program names itself.
constexpr model::LogicalDim own_dim(std::size_t number) {
  return static_cast<model::LogicalDim>(model::logical_dims + number);
}
/// The tensor in the notation of the sharding algebra, with the names of its dimensions.
Tensor to_tensor(const Program& program, const ProgramTensor& tensor);

/// One line in the notation of program/form/step.h.
std::string step_text(const Program& program, const Step& step);

/// Totals of a program or some of its blocks, on one device, for all layers and microbatches.
struct ProgramCount {
  Flops flops;          ///< all
  Flops product_flops;  ///< FLOP of matrix products
  Flops attention_flops;
  Flops recomputed_flops;  ///< recomputed forward work
  Bytes memory;            ///< bytes read and written
  Bytes network;           ///< bytes received
};
ProgramCount count(const Program& program);
/// One pass through one block for one microbatch.
ProgramCount count(const Program& program, const Block& block);

}  // namespace assay::program
