// Writes programs: creates tensors, inserts the collectives that their shardings require, and derives the backward
// pass.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "assay/model/quantisation.h"
#include "assay/program/form/traffic.h"
#include "assay/program/lower/recompute.h"
#include "assay/program/lower/rules.h"

namespace assay::lower {

/// Number formats of a program.
struct Formats {
  Dtype weights = Dtype::bf16;  ///< as stored and gathered
  Dtype activations = Dtype::bf16;
  Dtype compute = Dtype::bf16;    ///< format of the layers' products
  Dtype gradients = Dtype::bf16;  ///< format of weight gradients: summed over microbatches and devices
  Dtype kv_cache = Dtype::bf16;
  std::optional<Dtype> outer = {};                    ///< format of embedding and head, if another than `weights`
  std::optional<model::Quantisation> quantised = {};  ///< weights stored in another format

  /// A plain format applies to all weights, as the textbook counts; one with scales only to the linear layers.
  void set_weights(NumberFormat format) {
    quantised.reset();
    if (format.is_plain())
      weights = format.dtype;
    else
      quantised = model::linear_layers(format);
  }
  /// Weights that are not updated are stored in the product format; embedding and head, which are not quantised,
  /// keep theirs.
  void freeze() {
    if (facts(compute).bits < facts(weights).bits) {
      outer = weights;
      weights = compute;
    }
  }
  /// The format of most weights.
  NumberFormat most() const { return quantised ? quantised->format : NumberFormat(weights); }
  NumberFormat of(const model::Weight& weight) const {
    if (weight.is_adapter()) return activations;
    if (quantised && quantised->covers(weight)) return quantised->format;
    const bool outside = weight.part == model::Part::embedding || weight.part == model::Part::positions ||
                         weight.part == model::Part::head;
    return outside ? outer.value_or(weights) : weights;
  }
};

/// Elements that share one fp32 scale in a quantised product.
inline constexpr int scale_block = 128;

class Branches;

class Builder {
 public:
  Builder(program::Program& program, const ShardingRules& rules, const Formats& formats, Recompute recompute)
      : program_(program),
        rules_(rules),
        formats_(formats),
        recompute_(recompute),
        narrow_products_(facts(formats.compute).bits < 16),
        wide_weights_(std::max(facts(formats.weights).bits, facts(formats.outer.value_or(formats.weights)).bits) >
                      facts(formats.activations).bits) {
    constexpr auto weight = static_cast<std::size_t>(program::TensorClass::weight);
    for (std::size_t i = 0; i < program::tensor_classes; ++i)
      like_weights_[i] = rules.axes[i] == rules.axes[weight] && rules.spread[i] == rules.spread[weight];
    notes_.reserve(program.tensors.capacity());
    weights_.reserve(64);
  }

  program::Program& program() { return program_; }
  const Formats& formats() const { return formats_; }
  /// The format of sums over rows: fp64 where activations are, else fp32.
  Dtype sums_format() const { return formats_.activations == Dtype::fp64 ? Dtype::fp64 : Dtype::fp32; }

  // --- tensors
  int tensor(std::string_view name, std::span<const model::Weight::Size> dims, program::TensorClass tensor_class,
             const NumberFormat& format);
  int tensor(std::string_view name, std::initializer_list<model::Weight::Size> dims, program::TensorClass tensor_class,
             const NumberFormat& format) {
    return tensor(name, std::span(dims.begin(), dims.size()), tensor_class, format);
  }
  /// A tensor that no step computes.
  int given(std::string_view name, std::initializer_list<model::Weight::Size> dims, program::TensorClass tensor_class,
            Dtype dtype);
  int weight(const model::Weight& weight);
  /// From here on, products with a weight also add the product with its adapter.
  void adapt(int weight, int in, int out) { adapters_.push_back({weight, in, out}); }
  /// The weight as products use it: gathered where the rules say so, once per pass. A weight wider than activations
  /// is cast before it is gathered: every device casts its own part.
  int used(int weight);

  /// Bytes of a tensor on one device.
  Bytes bytes(int id) const {
    const program::ProgramTensor& tensor = program_.tensor(id);
    return program::local_bytes(tensor, tensor.elements);
  }
  /// Counts what a step reads and writes, where it is more or less than each of its tensors once.
  void count_traffic(program::Step& step) const { step.bytes = program::traffic(Plain{}, program_, step); }

  /// The sharding of a tensor by the rules.
  program::Sharding ruled(program::TensorClass tensor_class, std::span<const model::Weight::Size> dims) const {
    return rule_sharding(rules_, program_, tensor_class, program::TensorDims(dims), dims.size());
  }
  program::Sharding ruled(program::TensorClass tensor_class, const program::ProgramTensor& tensor) const {
    return rule_sharding(rules_, program_, tensor_class, tensor.dims, tensor.rank);
  }

  /// The sharding of a weight's gradient or optimizer state by the rules of its class, usually the weight's own.
  program::Sharding beside(int weight, program::TensorClass tensor_class) const {
    const program::ProgramTensor& w = program_.tensor(weight);
    return like_weights_[static_cast<std::size_t>(tensor_class)] ? w.sharding : ruled(tensor_class, w);
  }

  // --- blocks
  void begin_block(std::string_view name, program::Phase phase, int kind, std::int64_t layers);
  void end_block();

  // --- steps
  int reshard(int from, const program::Sharding& target, program::Urgency urgency, std::string_view name = {}) {
    return program_.tensor(from).sharding == target ? from : moved(from, target, urgency, name);
  }
  /// Reshards a tensor that several steps of a block may need in one sharding, only once.
  int moved_once(int id, const program::Sharding& target);
  /// Like reshard(), after the pass and once per optimizer step.
  int reshard_once(int from, const program::Sharding& target);
  /// Reshards to the rules of a class, ending partial sums.
  int settle(int from, program::TensorClass tensor_class, std::string_view name = {});
  /// Ends partial sums without other resharding.
  int settle_sums(int from);
  /// Sums over the dimensions that both operands have and the result lacks. The activation follows the weight: it is
  /// gathered, sliced or exchanged until both fit. `onto` is an earlier result to add to, `bias` a weight over some
  /// dimensions of the result; a partial sum ends before a bias is added.
  int product(std::string_view name, int activation, int weight, std::span<const model::LogicalDim> result,
              int onto = -1, int bias = -1);
  int product(std::string_view name, int activation, int weight, std::initializer_list<model::LogicalDim> result,
              int onto = -1, int bias = -1) {
    return product(name, activation, weight, std::span(result.begin(), result.size()), onto, bias);
  }
  /// An activation in the sharding that a product with that weight needs.
  int brought_to(int activation, int weight);
  /// A bias resharded so that it can be added to that tensor.
  int bias_for(int bias, const program::ProgramTensor& to);
  /// Normalises over the last dimension, or over all dimensions of `scale`, a weight like `bias`; both may be below 0.
  /// Where devices hold parts of a row, they first sum what the mean and the deviation need.
  /// With `groups`, the last dimension is that many rows, and devices that hold whole rows do not communicate; such a
  /// row may be `centred` even if the model's norms are not.
  int norm(std::string_view name, int x, int scale, int bias = -1, std::int64_t groups = 0, bool centred = false);
  /// Any other step with one result, which has the shape and sharding of `like`.
  int pointwise(program::Op op, std::string_view name, std::initializer_list<int> in, int like);
  program::Step& emit(program::Op op, std::initializer_list<int> in, std::initializer_list<int> out);

  // --- backward
  /// A result of forward steps and its gradient, which comes from outside.
  struct Seed {
    int result = -1, gradient = -1;
  };
  /// Writes the backward steps of the forward steps [first, last).
  void backward(std::int32_t first, std::int32_t last, std::span<const Seed> seeds);
  /// Writes the backward steps of forward steps that form the branches [first_branch, last_branch) of a layer.
  void backward(std::int32_t first, std::int32_t last, std::span<const Seed> seeds, Branches& branches,
                int first_branch, int last_branch);
  /// Ends the sums over devices of gradients of shared weights, among tensors [first, last): once for all layers that
  /// share them and all microbatches.
  void reduce_shared(int first, int last);
  /// The gradient of a tensor after backward(); below 0: none.
  int gradient(int tensor) const;
  /// Ends the sums of a gradient that leaves the block.
  void settle_gradient(int tensor);

  /// A weight that a later backward pass also uses (a tied embedding): its gradient is reduced there.
  int postponed = -1;
  /// Where products with weights of experts find their tokens, in Program::expert_loads; below 0: all slots are full.
  int expert_load = -1;

 private:
  friend class BackwardPass;

  /// Tensors derived from a tensor; below 0: none.
  struct Notes {
    std::int16_t pass = -1;   ///< the block that the next three belong to
    std::int16_t used = -1;   ///< a weight as products use it
    std::int16_t moved = -1;  ///< in the sharding of the last product that moved it
    std::int16_t cast = -1;
    int gradient = -1;
    int recomputed = -1;  ///< its copy recomputed in the backward pass
  };
  Notes& notes(int id) {
    const auto number = static_cast<std::size_t>(id);
    if (notes_.size() <= number) notes_.resize(number + 64);
    return notes_[number];
  }
  /// Notes of a tensor for the block that is being written.
  Notes& notes_here(int id) {
    Notes& found = notes(id);
    const auto pass = static_cast<std::int16_t>(program_.blocks.size());
    if (found.pass != pass) {
      found.pass = pass;
      found.used = found.moved = found.cast = -1;
    }
    return found;
  }

  /// The sharding in which a product needs an activation.
  struct Wanted {
    program::Sharding place;
    program::AxisSet axes = 0;  ///< axes that split either operand
    unsigned shared = 0;        ///< dimensions of the weight that the activation also has
  };
  Wanted wanted(const program::ProgramTensor& activation, const program::ProgramTensor& weight) const;
  /// Like reshard(), for a tensor with another sharding.
  int moved(int from, const program::Sharding& target, program::Urgency urgency, std::string_view name);
  /// A copy in another format, made once per pass.
  int cast(int id, Dtype to);
  /// A tensor as an operand of products, in no wider format than activations.
  int narrowed(int id) {
    const bool wide = wide_weights_ && facts(program_.tensor(id).dtype).bits > facts(formats_.activations).bits;
    return wide ? cast(id, formats_.activations) : id;
  }
  int quantised(int id);
  /// A frozen weight as products read it: one that is stored in fewer bits than they take is written out before each.
  int unpacked(int id);
  /// The product with a weight, plus its adapter's if it has one.
  int adapted(int made, std::string_view name, int activation, int weight, std::span<const model::LogicalDim> result);
  /// Whether products with this tensor use a narrow format.
  bool multiplies_narrow(int with) const { return narrow_products_ && is_quantised(program_.tensor(with)); }
  bool is_quantised(const program::ProgramTensor& with) const;
  /// A tensor in a narrow format and in `target`, for products: quantised before it moves where that is cheaper.
  int quantised_at(int id, const program::Sharding& target);
  /// Partial sums of a gradient of copied keys or values. They may stay partial, because all later steps are linear.
  program::AxisSet late_axes(const program::ProgramTensor& tensor) const;
  int copy_of(int id, std::string_view name);

  program::Program& program_;
  const ShardingRules& rules_;
  Formats formats_;
  Recompute recompute_;
  bool narrow_products_, wide_weights_;
  std::array<bool, program::tensor_classes> like_weights_{};  ///< by class: follows the rules of weights
  std::vector<Notes> notes_;                                  ///< by tensor
  std::vector<int> weights_;                                  ///< weights with gradients from this backward pass
  struct Adapter {
    int weight = -1, in = -1, out = -1;
  };
  std::vector<Adapter> adapters_;
  struct {
    int of = -1, in = -1, made = -1;
  } last_low_;  ///< last result of an adapter's first half
};

}  // namespace assay::lower
