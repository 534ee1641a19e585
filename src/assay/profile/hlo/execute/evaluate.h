// What one operation of a program makes of whole arrays: its definition, as slow and as plain as it reads.
#pragma once
#include <optional>
#include <vector>

#include "assay/profile/hlo/execute/array.h"
#include "assay/profile/hlo/module.h"

namespace assay::hlo {

using Arrays = std::vector<const Array*>;

/// An operation at a place of a module; errors name it.
struct Evaluated {
  const Module& module;
  const Instruction& at;

  Dims numbers(std::string_view key) const { return number_list(at.attribute(key)); }
  tl::unexpected<Error> fault(std::string what) const;
};

/// Results of these shapes. Collectives and what runs computations by itself (calls, loops, branches) are no operations
/// of one device.
Result<std::vector<Array>> evaluate(const Evaluated& operation, const Arrays& in, const std::vector<Shape>& out);

inline std::vector<Array> single(Array array) {
  std::vector<Array> out;
  out.push_back(std::move(array));
  return out;
}

// By kind of operation; nothing where they do not know it.
using Evaluation = Result<std::vector<Array>>;
std::optional<Evaluation> evaluate_elements(const Evaluated& operation, const Arrays& in,
                                            const std::vector<Shape>& out);
std::optional<Evaluation> evaluate_movement(const Evaluated& operation, const Arrays& in,
                                            const std::vector<Shape>& out);
std::optional<Evaluation> evaluate_sums(const Evaluated& operation, const Arrays& in, const std::vector<Shape>& out);

using OfOne = double (*)(double);
using OfTwo = double (*)(double, double);

/// What an operation makes of one element of each operand.
class ElementOperation {
 public:
  /// Nothing for what is no operation on elements. Types are those of the first operand and of the result.
  static std::optional<ElementOperation> of(const Instruction& at, const ElementType& from, const ElementType& to);
  std::size_t operands() const { return operands_; }
  /// Operands beyond those that there are do not matter.
  double operator()(double x, double y, double z) const;

 private:
  ElementOperation(const ElementType& from, const ElementType& to) : from_(&from), to_(&to) {}
  const ElementType *from_, *to_;
  std::size_t operands_ = 1;
  OfOne one_ = nullptr;
  OfTwo two_ = nullptr, compares_ = nullptr;
  std::uint64_t (*bits_)(const ElementType&, std::uint64_t, std::uint64_t) = nullptr;
  double (*three_)(const ElementType&, const ElementType&, double, double, double) = nullptr;
};

/// What the body of a reduction, a sort or a scatter makes of single numbers.
class Body {
 public:
  static Result<Body> of(const Evaluated& operation, std::string_view key = "to_apply");
  /// The arguments in the order of its parameters; the results stay valid until the next call.
  const std::vector<double>& operator()(const std::vector<double>& arguments);
  std::size_t results() const { return applied_ ? 1 : returned_.size(); }

 private:
  /// One instruction: a parameter, a constant or an operation on elements.
  struct Step {
    std::optional<std::size_t> parameter;
    std::optional<ElementOperation> operation;
    std::vector<std::uint32_t> operands;
  };
  Body() = default;
  std::optional<ElementOperation> applied_;  ///< one operation on two numbers, without a body of its own
  std::vector<Step> steps_;
  std::vector<double> values_, results_;
  std::vector<std::uint32_t> returned_;
};

}  // namespace assay::hlo
