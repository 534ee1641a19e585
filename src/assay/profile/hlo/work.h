// What one instruction computes and moves.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "assay/base/units.h"
#include "assay/predict/kernel/kernel.h"
#include "assay/profile/hlo/module.h"
#include "assay/program/form/collective.h"

namespace assay::hlo {

/// A product of matrices, without its bytes, which are those of its kernel.
struct Product : kernel::MatmulShape {
  std::optional<Dtype> format;
  Flops flops() const { return Flops(2.0 * batch * m * n * k); }
};

/// Attention in one kernel.
struct FusedAttention : roofline::Attention {
  bool says_mask = false;     ///< whether the program says which keys a query sees; else all count
  double forward_passes = 1;  ///< arithmetic, in forward passes
  bool backward() const { return passes == roofline::AttentionPasses::backward; }
  Flops flops() const;
};

/// Arithmetic of an instruction, or of all instructions of a fusion. XLA counts one FLOP for each element of an
/// element-wise result, and functions such as exp apart.
struct Arithmetic {
  Flops element_wise;
  double transcendentals = 0;
  std::vector<Product> products;
  std::optional<FusedAttention> attention;

  /// Of products and attention.
  Flops matrix() const;
  /// The product with most FLOP; there must be one.
  const Product& largest() const;
};
Arithmetic& operator+=(Arithmetic& a, const Arithmetic& b);

/// Of one instruction, without what it calls other than to combine elements; of a fusion, of its body.
Arithmetic arithmetic(const Module& module, const Computation& computation, const Instruction& instruction);

/// Whether an instruction makes no kernel: tuples, views, parameters, constants, ends of asynchronous pairs.
bool is_free(const Instruction& instruction);
/// Whether a fusing compiler may make one kernel of it and of its neighbours.
bool is_fusible(const Instruction& instruction);
/// Whether each element of the result is of one element of each operand.
bool is_element_wise(std::string_view opcode);

/// Letters of the dimensions of a convolution's input, kernel and output: "b01f", "01io", "b01f".
std::optional<std::array<std::string_view, 3>> convolution_labels(const Instruction& convolution);
/// Numbers of a word of a window: "size=3x3" gives 3, 3; of "pad=1_2x0_0" the first of each pair.
std::vector<double> window_numbers(std::string_view window, std::string_view key, double standard, std::size_t rank);

/// Bytes that a kernel moves through main memory: each operand once, of slices what is cut out, of updates in place
/// what is written. Arrays in other memory (of TPUs) do not count.
Bytes traffic(const Module& module, const Computation& computation, const Instruction& instruction);
/// Bytes of a shape in main memory, with padding.
Bytes main_memory_bytes(const Shape& shape);

/// The instructions that use each instruction of a computation.
using Users = std::vector<std::vector<std::uint32_t>>;
Users users_of(const Computation& computation);

/// What a collective is called here; nothing for other operations.
std::optional<program::Collective> collective_kind(std::string_view opcode);
/// A collective operation; nothing for other instructions.
struct CollectiveCall {
  program::Collective kind = program::Collective::all_reduce;
  ReplicaGroups groups;
  std::int64_t size = 1;   ///< devices of a group
  Bytes operand;           ///< what a device holds before
  Bytes result;            ///< and after
  bool scattered = false;  ///< an all-reduce of which each device keeps its part: compilers make it a reduce-scatter
};
Result<std::optional<CollectiveCall>> collective_call(const Module& module, const Computation& computation,
                                                      const Instruction& instruction, const Users& users);

}  // namespace assay::hlo
