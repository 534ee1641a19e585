// Operations that bring elements together: products, reductions, windows, orders.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/base/text.h"
#include "assay/profile/hlo/execute/evaluate.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {
namespace {

/// The places of all indices over some dimensions of an array.
Dims places(const Array& array, const Dims& dims) {
  const Dims strides = strides_of(array.shape);
  Dims sizes, out;
  for (const std::int64_t d : dims) sizes.push_back(array.shape.at(as_size(d)));
  for (Indices index(sizes); !index.done(); index.next()) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) at += index.at[i] * strides[as_size(dims[i])];
    out.push_back(at);
  }
  return out;
}

/// Dimensions that are in none of two lists.
Dims others(std::size_t rank, const Dims& a, const Dims& b) {
  Dims out;
  for (std::int64_t d = 0; as_size(d) < rank; ++d)
    if (std::find(a.begin(), a.end(), d) == a.end() && std::find(b.begin(), b.end(), d) == b.end()) out.push_back(d);
  return out;
}

Evaluation dot(const Evaluated& of, const Array& a, const Array& b, Array out) {
  const Dims contract[2] = {of.numbers("lhs_contracting_dims"), of.numbers("rhs_contracting_dims")},
             batch[2] = {of.numbers("lhs_batch_dims"), of.numbers("rhs_batch_dims")};
  const Array* const sides[2] = {&a, &b};
  Dims batches[2], frees[2], sums[2];
  for (int i = 0; i < 2; ++i) {
    for (const Dims* list : {&contract[i], &batch[i]})
      for (const std::int64_t d : *list)
        if (d < 0 || as_size(d) >= sides[i]->shape.size()) return of.fault("a product over a dimension there is not");
    batches[i] = places(*sides[i], batch[i]);
    frees[i] = places(*sides[i], others(sides[i]->shape.size(), contract[i], batch[i]));
    sums[i] = places(*sides[i], contract[i]);
  }
  if (sums[0].size() != sums[1].size() || batches[0].size() != batches[1].size())
    return of.fault("a product of dimensions with other sizes");
  if (out.values.size() != batches[0].size() * frees[0].size() * frees[1].size())
    return of.fault("a product of other sizes than its operands");
  std::size_t next = 0;
  for (std::size_t n = 0; n < batches[0].size(); ++n)
    for (const std::int64_t i : frees[0])
      for (const std::int64_t j : frees[1]) {
        const double* const x = a.values.data() + batches[0][n] + i;
        const double* const y = b.values.data() + batches[1][n] + j;
        double sum = 0.0;
        for (std::size_t k = 0; k < sums[0].size(); ++k) sum += x[sums[0][k]] * y[sums[1][k]];
        out.values.at(next++) = held(*out.element, sum);
      }
  return single(std::move(out));
}

/// Rows [m, k] in groups of given sizes, each with a matrix [k, n] of its own; rows of no group are zeros.
Evaluation ragged_dot(const Evaluated& of, const Arrays& in, Array out) {
  const Array &rows = *in[0], &matrices = *in[1], &sizes = *in[2];
  if (rows.shape.size() != 2 || matrices.shape.size() != 3 || of.numbers("rhs_group_dims") != Dims{0} ||
      rows.shape[1] != matrices.shape[1] || sizes.values.size() != as_size(matrices.shape[0]) ||
      of.numbers("lhs_contracting_dims") != Dims{1} || of.numbers("rhs_contracting_dims") != Dims{1})
    return of.fault("a ragged product of this form is not executed; rows [m, k] and matrices [groups, k, n] are");
  const std::size_t k = as_size(rows.shape[1]), n = as_size(matrices.shape[2]);
  std::size_t row = 0;
  for (std::size_t group = 0; group < sizes.values.size(); ++group) {
    if (std::isnan(sizes.values.at(group))) {
      out.values.assign(out.values.size(), absent());
      break;
    }
    for (std::size_t left = static_cast<std::size_t>(sizes.values.at(group)); left > 0 && row < as_size(rows.shape[0]);
         --left, ++row)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (std::size_t i = 0; i < k; ++i)
          sum += rows.values.at(row * k + i) * matrices.values.at((group * k + i) * n + j);
        out.values.at(row * n + j) = held(*out.element, sum);
      }
  }
  return single(std::move(out));
}

/// Words of a window: "size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=1x1 rhs_dilate=1x1 reversed=0x1".
struct Window {
  Dims size, stride, low, spread, step, reversed;

  static Window of(const Instruction& at, std::size_t rank) {
    const auto words = [&](std::string_view key, double usual) {
      const std::vector<double> found = window_numbers(at.attribute("window"), key, usual, rank);
      return Dims(found.begin(), found.end());
    };
    return {words("size=", 1),       words("stride=", 1),     words("pad=", 0),
            words("lhs_dilate=", 1), words("rhs_dilate=", 1), words("reversed=", 0)};
  }

  /// The element that a place of the window covers, of a dimension of some size; nothing for padding.
  std::optional<std::int64_t> covered(std::size_t d, std::int64_t at, std::int64_t within, std::int64_t input) const {
    const std::int64_t i = at * stride[d] - low[d] + within * step[d];
    if (i < 0 || i % spread[d] != 0 || i / spread[d] >= input) return std::nullopt;
    return i / spread[d];
  }
  /// The place in an array of these sizes that an index of the window covers; nothing where that is padding.
  std::optional<std::size_t> place(const Dims& at, const Dims& within, const Dims& sizes) const {
    std::int64_t out = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const auto i = covered(d, at[d], within[d], sizes[d]);
      if (!i) return std::nullopt;
      out = out * sizes[d] + *i;
    }
    return as_size(out);
  }
};

Evaluation convolution(const Evaluated& of, const Array& in, const Array& kernel, Array out) {
  const auto found = convolution_labels(of.at);
  if (!found) return of.fault("a convolution has labels");
  const auto& labels = *found;
  const Array* const arrays[3] = {&in, &kernel, &out};
  Dims strides[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (labels[i].size() != arrays[i]->shape.size()) return of.fault("labels for each dimension");
    strides[i] = strides_of(arrays[i]->shape);
  }
  const auto dim = [&](std::size_t which, char label) { return labels[which].find(label); };
  const auto size = [&](std::size_t which, char label) { return arrays[which]->shape.at(dim(which, label)); };
  const auto stride = [&](std::size_t which, char label) { return strides[which].at(dim(which, label)); };
  const std::size_t rank = labels[0].size() - 2;
  const Window window = Window::of(of.at, rank);
  const auto count = [&](std::string_view key) {
    return static_cast<std::int64_t>(parse_number(of.at.attribute(key)).value_or(1.0));
  };
  const std::int64_t feature_groups = count("feature_group_count"), batch_groups = count("batch_group_count");
  if (feature_groups < 1 || batch_groups < 1) return of.fault("a convolution in no groups");
  const std::int64_t inputs = size(1, 'i'), per_group = size(1, 'o') / (feature_groups * batch_groups),
                     batches = size(0, 'b') / batch_groups;
  Dims spatial, taps;
  for (std::size_t d = 0; d < rank; ++d) {
    spatial.push_back(size(2, static_cast<char>('0' + d)));
    taps.push_back(size(1, static_cast<char>('0' + d)));
  }
  for (std::int64_t b = 0; b < size(2, 'b'); ++b)
    for (std::int64_t f = 0; f < size(2, 'f'); ++f) {
      const std::int64_t group = per_group > 0 ? f / per_group : 0;
      const std::int64_t first_input = feature_groups > 1 ? group * inputs : 0,
                         batch = batch_groups > 1 ? group * batches + b : b;
      for (Indices at(spatial); !at.done(); at.next()) {
        double sum = 0.0;
        for (Indices tap(taps); !tap.done(); tap.next()) {
          std::int64_t from = batch * stride(0, 'b'), with = f * stride(1, 'o');
          bool inside = true;
          for (std::size_t d = 0; inside && d < rank; ++d) {
            const char label = static_cast<char>('0' + d);
            const auto i = window.covered(d, at.at[d], tap.at[d], size(0, label));
            inside = i.has_value();
            from += i.value_or(0) * stride(0, label);
            with += (window.reversed[d] != 0 ? taps[d] - 1 - tap.at[d] : tap.at[d]) * stride(1, label);
          }
          if (!inside) continue;
          for (std::int64_t i = 0; i < inputs; ++i)
            sum += in.values.at(as_size(from + (first_input + i) * stride(0, 'f'))) *
                   kernel.values.at(as_size(with + i * stride(1, 'i')));
        }
        std::int64_t to = b * stride(2, 'b') + f * stride(2, 'f');
        for (std::size_t d = 0; d < rank; ++d) to += at.at[d] * stride(2, static_cast<char>('0' + d));
        out.values.at(as_size(to)) = held(*out.element, sum);
      }
    }
  return single(std::move(out));
}

/// Arrays and the values that they begin with: the first and the second half of the operands.
Evaluation reduce(const Evaluated& of, const Arrays& in, const std::vector<Shape>& shapes) {
  const std::size_t arrays = in.size() / 2;
  if (arrays == 0 || in.size() % 2 != 0 || shapes.size() != arrays) return of.fault("a start for each array");
  const Dims gone = of.numbers("dimensions");
  ASSAY_TRY(body, Body::of(of));
  if (body.results() != arrays) return of.fault("a body makes one element for each array");
  const Dims kept = places(*in[0], others(in[0]->shape.size(), gone, {})), summed = places(*in[0], gone);
  std::vector<Array> out;
  for (const Shape& shape : shapes) out.push_back(Array::of(shape));
  if (kept.size() != out[0].values.size()) return of.fault("a reduction to other sizes");
  std::vector<double> both(2 * arrays);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t k = 0; k < arrays; ++k) both[k] = in[arrays + k]->values.at(0);
    for (const std::int64_t at : summed) {
      for (std::size_t k = 0; k < arrays; ++k) both[arrays + k] = in[k]->values.at(as_size(kept[i] + at));
      const std::vector<double>& made = body(both);
      std::copy(made.begin(), made.end(), both.begin());
    }
    for (std::size_t k = 0; k < arrays; ++k) out[k].values.at(i) = held(*out[k].element, both[k]);
  }
  return out;
}

Evaluation reduce_window(const Evaluated& of, const Array& in, const Array& start, Array out) {
  ASSAY_TRY(body, Body::of(of));
  const Window window = Window::of(of.at, in.shape.size());
  std::size_t next = 0;
  for (Indices at(out.shape); !at.done(); at.next()) {
    double value = start.values.at(0);
    for (Indices within(window.size); !within.done(); within.next()) {
      const auto from = window.place(at.at, within.at, in.shape);
      if (!from) continue;
      const std::vector<double>& made = body({value, in.values.at(*from)});
      value = made.front();
    }
    out.values.at(next++) = held(*out.element, value);
  }
  return single(std::move(out));
}

/// Of each window the element that the first body selects gets what the source has there.
Evaluation select_and_scatter(const Evaluated& of, const Array& in, const Array& source, const Array& start,
                              Array out) {
  ASSAY_TRY(selects, Body::of(of));
  ASSAY_TRY(adds, Body::of(of, "scatter"));
  const Window window = Window::of(of.at, in.shape.size());
  out.values.assign(out.values.size(), start.values.at(0));
  std::size_t next = 0;
  for (Indices at(source.shape); !at.done(); at.next(), ++next) {
    std::optional<std::size_t> best;
    for (Indices within(window.size); !within.done(); within.next()) {
      const auto from = window.place(at.at, within.at, in.shape);
      if (!from) continue;
      if (best) {
        const std::vector<double>& keeps = selects({in.values.at(*best), in.values.at(*from)});
        if (keeps.front() != 0.0) continue;
      }
      best = from;
    }
    if (!best) continue;
    const std::vector<double>& made = adds({out.values.at(*best), source.values.at(next)});
    out.values.at(*best) = made.front();
  }
  return single(std::move(out));
}

/// The places of a dimension's elements, for each index of the others.
struct Lines {
  Dims starts;
  std::int64_t stride = 1, size = 1;

  static Lines of(const Array& array, std::int64_t dim) {
    Lines out;
    out.starts = places(array, others(array.shape.size(), {dim}, {}));
    out.stride = strides_of(array.shape).at(as_size(dim));
    out.size = array.shape.at(as_size(dim));
    return out;
  }
};

Evaluation sort(const Evaluated& of, const Arrays& in) {
  const Dims along = of.numbers("dimensions");
  if (along.size() != 1 || as_size(along[0]) >= in[0]->shape.size()) return of.fault("a sort is along one dimension");
  ASSAY_TRY(body, Body::of(of));
  std::vector<Array> out;
  for (const Array* array : in) out.push_back(*array);
  const Lines lines = Lines::of(*in[0], along[0]);
  std::vector<double> both(2 * in.size());
  for (const std::int64_t start : lines.starts) {
    std::vector<std::int64_t> order(as_size(lines.size));
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](std::int64_t a, std::int64_t b) {
      for (std::size_t k = 0; k < in.size(); ++k) {  // of each array both elements, next to each other
        both[2 * k] = in[k]->values.at(as_size(start + a * lines.stride));
        both[2 * k + 1] = in[k]->values.at(as_size(start + b * lines.stride));
      }
      return body(both).front() == 1.0;
    };
    // Insertion into halves: an order that contradicts itself (absent elements) does no harm.
    std::vector<std::int64_t> sorted;
    for (const std::int64_t i : order) sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), i, before), i);
    for (std::size_t k = 0; k < in.size(); ++k)
      for (std::size_t i = 0; i < sorted.size(); ++i)
        out[k].values.at(as_size(start + static_cast<std::int64_t>(i) * lines.stride)) =
            in[k]->values.at(as_size(start + sorted[i] * lines.stride));
  }
  return out;
}

/// The largest elements of the last dimension and their places, the first of equals first.
Evaluation top_k(const Evaluated& of, const Array& in, const std::vector<Shape>& shapes) {
  if (shapes.size() != 2 || in.shape.empty()) return of.fault("the largest elements and their places");
  std::vector<Array> out{Array::of(shapes[0]), Array::of(shapes[1])};
  const Lines lines = Lines::of(in, static_cast<std::int64_t>(in.shape.size()) - 1);
  const std::size_t k = as_size(shapes[0].dims.back());
  if (k > as_size(lines.size)) return of.fault("more elements than there are");
  std::size_t next = 0;
  for (const std::int64_t start : lines.starts) {
    std::vector<std::int64_t> order(as_size(lines.size));
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](std::int64_t i) {
      const double value = in.values.at(as_size(start + i));
      return std::isnan(value) ? HUGE_VAL : value;
    };
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return key(a) > key(b); });
    for (std::size_t i = 0; i < k; ++i, ++next) {
      out[0].values.at(next) = in.values.at(as_size(start + order[i]));
      out[1].values.at(next) = static_cast<double>(order[i]);
    }
  }
  return out;
}

}  // namespace

Result<Body> Body::of(const Evaluated& operation, std::string_view key) {
  Body out;
  const Shape& shape = operation.at.shape.is_tuple && !operation.at.shape.members.empty()
                           ? operation.at.shape.members[0]
                           : operation.at.shape;
  const std::uint32_t callee = operation.at.callee(key);
  if (callee == no_computation) {  // one operation on two elements
    Instruction applied;
    applied.opcode = key == "to_apply" ? operation.at.attribute("applies") : std::string_view();
    if (shape.element) out.applied_ = ElementOperation::of(applied, *shape.element, *shape.element);
    if (!out.applied_ || out.applied_->operands() != 2)
      return operation.fault("what it applies to two elements is not known");
    return out;
  }
  const Computation& computation = operation.module.computations[callee];
  out.values_.resize(computation.instructions.size());
  for (std::size_t i = 0; i < computation.instructions.size(); ++i) {
    const Instruction& at = computation.instructions[i];
    Step& step = out.steps_.emplace_back();
    step.operands = at.operands;
    const Evaluated inner{operation.module, at};
    if (at.opcode == "tuple") continue;
    if (at.opcode == "parameter") {
      const Dims number = number_list(at.argument);
      if (number.size() != 1 || number[0] < 0) return inner.fault("a parameter without a number");
      step.parameter = as_size(number[0]);
    } else if (at.opcode == "constant") {
      ASSAY_TRY(value, constant_array(at.argument, at.shape, operation.module.where(at)));
      out.values_[i] = value.values.at(0);
    } else {
      Instruction copy;  // what a sharding constraint is, of a single number
      copy.opcode = "copy";
      if (!at.operands.empty() && at.shape.element)
        if (const ElementType* from = computation.instructions[at.operands[0]].shape.element)
          step.operation = ElementOperation::of(at.calls(CallKind::sharding) ? copy : at, *from, *at.shape.element);
      if (!step.operation || step.operation->operands() != at.operands.size())
        return inner.fault(fmt::format("{} of single elements is not executed", at.opcode));
    }
  }
  const Instruction& root = computation.instructions.at(computation.root);
  out.returned_ = root.opcode == "tuple" ? root.operands : std::vector<std::uint32_t>{computation.root};
  if (out.returned_.empty()) return operation.fault("its body returns nothing");
  return out;
}

const std::vector<double>& Body::operator()(const std::vector<double>& arguments) {
  if (applied_) {
    results_.assign(1, (*applied_)(arguments.at(0), arguments.at(1), 0.0));
    return results_;
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.parameter) values_[i] = arguments.at(*step.parameter);
    if (!step.operation) continue;
    const std::size_t last = step.operands.size() - 1;
    values_[i] = (*step.operation)(values_[step.operands[0]], values_[step.operands[std::min<std::size_t>(1, last)]],
                                   values_[step.operands[last]]);
  }
  results_.clear();
  for (const std::uint32_t value : returned_) results_.push_back(values_[value]);
  return results_;
}

tl::unexpected<Error> Evaluated::fault(std::string what) const {
  return fail(module.where(at), std::move(what), "plan it without --check, which executes every operation");
}

std::optional<Evaluation> evaluate_sums(const Evaluated& of, const Arrays& in, const std::vector<Shape>& shapes) {
  const std::string_view opcode = of.at.opcode;
  if (in.empty() || shapes.empty()) return std::nullopt;
  if (opcode == "reduce") return reduce(of, in, shapes);
  if (opcode == "sort") return sort(of, in);
  if (opcode == "topk" && in.size() == 1) return top_k(of, *in[0], shapes);
  if (shapes.size() != 1) return std::nullopt;
  Array out = Array::of(shapes[0]);
  if (opcode == "dot" && in.size() == 2) return dot(of, *in[0], *in[1], std::move(out));
  if (opcode == "ragged-dot" && in.size() == 3) return ragged_dot(of, in, std::move(out));
  if (opcode == "convolution" && in.size() == 2) return convolution(of, *in[0], *in[1], std::move(out));
  if (opcode == "reduce-window" && in.size() == 2) return reduce_window(of, *in[0], *in[1], std::move(out));
  if (opcode == "select-and-scatter" && in.size() == 3)
    return select_and_scatter(of, *in[0], *in[1], *in[2], std::move(out));
  return std::nullopt;
}

Result<std::vector<Array>> evaluate(const Evaluated& operation, const Arrays& in, const std::vector<Shape>& out) {
  for (const Shape& shape : out)
    if (element_count(shape.dims) > most_elements)
      return operation.fault(
          "an array of more than 2^24 elements is too large to be executed: lower it at smaller sizes");
  try {
    for (const auto kind : {&evaluate_elements, &evaluate_movement, &evaluate_sums})
      if (auto made = kind(operation, in, out)) return std::move(*made);
  } catch (const std::out_of_range&) {  // of an element; texts may state any sizes
    return operation.fault("the sizes of its operands and of its result do not fit");
  }
  return operation.fault(fmt::format("{} is not executed", operation.at.opcode));
}

}  // namespace assay::hlo
