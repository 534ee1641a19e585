#include "assay/program/form/elementwise.h"

#include <algorithm>

namespace assay::program {
namespace {

/// The numbers of one step.
class Counted {
 public:
  Counted(const Program& program, const Step& step) : program_(program), step_(step) {}

  double flops() const {
    const double out = made(0);
    switch (step_.op) {
      case Op::product:
        return has(3) ? out : 0.0;  // a bias; adding onto a result is part of the 2 MNK
      case Op::norm:
        return norm();
      case Op::norm_grad:
        return norm_grad();
      case Op::rotate:
      case Op::rotate_grad:
        return 3.0 * out * turning();  // four products and two sums per pair of numbers
      case Op::attention:
        // Per score: scaling, maximum, difference, exponential and sum; then one quotient per number of the result.
        return has(1) && step_.detail >= 0 ? scores() * (relative(3) ? 6.0 : 5.0) + sinks(3) + out : 0.0;
      case Op::attention_grad:
        // Per score: P (dP - d) and its scaling; d is the sum of dO O.
        return scores() * (relative(6) ? 4.0 : 3.0) + sinks(6) + 2.0 * taken(0);
      case Op::pick: {  // per head and score max(0, s), and a comparison of their sum
        const ProgramTensor& q = program_.tensor(step_.in[0]);
        const auto heads = static_cast<double>(q.dims[2].size), width = static_cast<double>(q.dims[3].size);
        return step_.flops.value() / (2.0 * heads * (width + 1.0)) * (heads + 1.0);
      }
      case Op::activate:
        return (has(1) ? 2.0 : 1.0) * out;
      case Op::activate_grad:
        // dy f'(x); if gated, dy f(g) and dy x f'(g).
        return (has(2) ? 5.0 : 2.0) * taken(0);
      case Op::mix_grad:
        // dy w, and dy minus that; the weight gets dy (y - x), summed if all tokens share it.
        return (taken(3) < taken(0) ? 5.0 : 4.0) * taken(0);
      case Op::gate:
        return out + taken(1);
      case Op::gate_grad:
        return 3.0 * taken(0) + 3.0 * taken(2);
      case Op::add:
        return out * static_cast<double>(operands() - 1);
      case Op::split_grad: {  // copies are added up
        double more = 0.0;
        for (std::size_t i = 0; i < step_.out.size(); ++i) more += taken(i) - made(i);
        return std::max(0.0, more);
      }
      case Op::dispatch_grad:
        return std::max(0.0, taken(0) - out);
      case Op::combine_grad:
        return 3.0 * taken(1);
      default:  // proportional to one tensor
        return facts(step_.op).flops.per_result * out + facts(step_.op).flops.per_input * taken(0);
    }
  }

 private:
  bool has(std::size_t operand) const { return step_.in[operand] >= 0; }
  double taken(std::size_t operand) const { return has(operand) ? program_.tensor(step_.in[operand]).elements : 0.0; }
  double made(std::size_t result) const {
    return step_.out[result] >= 0 ? program_.tensor(step_.out[result]).elements : 0.0;
  }
  std::ptrdiff_t operands() const {
    return std::count_if(step_.in.begin(), step_.in.end(), [](int id) { return id >= 0; });
  }

  /// Squares and their sum, the quotient by the root; then scale and bias. If devices share rows, the sums are a
  /// separate step.
  double norm() const {
    const double n = taken(0), mean = step_.is_centred ? 1.0 : 0.0;
    const double sums = 2.0 + mean, rest = 1.0 + mean + (has(1) ? 1.0 : 0.0) + (has(3) ? 1.0 : 0.0);
    return n * (made(0) < n ? sums : has(2) ? rest : sums + rest);
  }
  /// With the normalised row y, recomputed: the product of y and its gradient g summed over the row, and
  /// (g - y mean) / root; for the scale, the sum of y dx over rows, and g = scale dx.
  double norm_grad() const {
    if (made(0) < taken(0)) return 0.0;  // counted with the result
    const bool bias = step_.out[2] >= 0;
    return taken(0) * (6.0 + (has(2) ? 3.0 : 0.0) + (bias ? 1.0 : 0.0) + (step_.is_centred ? 3.0 : 0.0));
  }
  /// The share of dimensions that a rotation turns.
  double turning() const {
    const ProgramTensor& x = program_.tensor(step_.out[0]);
    const auto all = static_cast<double>(x.dims[x.rank - 1u].size);
    return step_.detail >= 0 ? static_cast<double>(step_.detail) / all : 1.0;
  }
  /// Scores of attention and its gradient, derived from the FLOP of their products.
  double scores() const {
    const bool back = step_.op == Op::attention_grad;
    const ProgramTensor& q = program_.tensor(step_.in[back ? 1 : 0]);
    const ProgramTensor& o = program_.tensor(back ? step_.in[0] : step_.out[0]);
    const auto width = static_cast<double>(q.dims[q.rank - 1u].size + o.dims[o.rank - 1u].size);
    const bool flash = program_.attentions[static_cast<std::size_t>(step_.detail)].flash;
    return step_.flops.value() / (2.0 * width) / (back ? (flash ? backward_passes : 2.0) : 1.0);
  }
  bool relative(std::size_t operand) const { return has(operand) && program_.tensor(step_.in[operand]).rank == 2; }
  /// A sink is one more score of each row, without a product.
  double sinks(std::size_t operand) const {
    if (!has(operand) || relative(operand)) return 0.0;
    const ProgramTensor& q = program_.tensor(step_.in[step_.op == Op::attention_grad ? 1 : 0]);
    return 4.0 * q.elements / local_extent(program_, q, q.rank - 1);
  }

  const Program& program_;
  const Step& step_;
};

}  // namespace

Flops elementwise_flops(const Program& program, const Step& step) { return Flops(Counted(program, step).flops()); }

Flops elementwise_flops(const Program& program, Phase phase) {
  Flops sum;
  for (const Block& block : program.blocks)
    for (std::int32_t i = block.first; block.phase == phase && i < block.last; ++i)
      sum += static_cast<double>(block.layers) * elementwise_flops(program, program.steps[static_cast<std::size_t>(i)]);
  return sum;
}

}  // namespace assay::program
