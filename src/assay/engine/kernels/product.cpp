#include "assay/engine/kernels/product.h"

#include <algorithm>

#include "assay/base/result.h"
#include "assay/engine/kernels/blas.h"

namespace assay::engine {
namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

std::size_t find(const DimensionNames& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? nowhere : static_cast<std::size_t>(at - names.begin());
}

/// Keeps sums independent of the number of processors; set once per process.
void use_one_thread() { [[maybe_unused]] static const bool done = (use_blas_threads(1), true); }

std::int64_t size_of(const Shape& shape, const std::vector<std::size_t>& dims) {
  std::int64_t size = 1;
  for (std::size_t d : dims) size *= shape[d];
  return size;
}

std::vector<std::size_t> in_turn(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b,
                                 const std::vector<std::size_t>& c) {
  std::vector<std::size_t> all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

bool is_in_order(const std::vector<std::size_t>& dims) { return std::is_sorted(dims.begin(), dims.end()); }

/// An operand as a matrix per batch: where it lies, if its dimensions are in an order that the library can read, else
/// in a copy.
struct Operand {
  Operand(const Array& array, const std::vector<std::size_t>& batch, const std::vector<std::size_t>& rows,
          const std::vector<std::size_t>& columns) {
    const std::vector<std::size_t> order = in_turn(batch, rows, columns);
    is_transposed = !is_in_order(order) && is_in_order(in_turn(batch, columns, rows));
    if (!is_in_order(order) && !is_transposed) copy = engine::transposed(array, order);
    values = copy.values.empty() ? array.values.data() : copy.values.data();
  }
  Matrix<double> at(std::int64_t offset) const { return {values + offset, is_transposed}; }

  Array copy;
  const double* values = nullptr;
  bool is_transposed = false;
};

}  // namespace

Array product(const Array& left, const DimensionNames& left_names, const Array& right,
              const DimensionNames& right_names, const DimensionNames& result_names) {
  // Dimensions of each operand by role: batch, kept rows and columns, contracted.
  std::vector<std::size_t> left_batch, right_batch, rows, columns, left_inner, right_inner;
  for (std::size_t d = 0; d < left_names.size(); ++d) {
    const std::size_t other = find(right_names, left_names[d]);
    const bool kept = find(result_names, left_names[d]) != nowhere;
    if (other == nowhere && !kept) throw InternalError("a dimension of one operand is summed");
    if (other != nowhere && left.shape[d] != right.shape[other]) throw InternalError("shapes of a product disagree");
    if (other == nowhere) {
      rows.push_back(d);
    } else {
      (kept ? left_batch : left_inner).push_back(d);
      (kept ? right_batch : right_inner).push_back(other);
    }
  }
  for (std::size_t d = 0; d < right_names.size(); ++d)
    if (find(left_names, right_names[d]) == nowhere) columns.push_back(d);

  const Operand a(left, left_batch, rows, left_inner), b(right, right_batch, right_inner, columns);
  const std::int64_t batch = size_of(left.shape, left_batch), m = size_of(left.shape, rows);
  const std::int64_t n = size_of(right.shape, columns), k = size_of(left.shape, left_inner);

  Shape shape;
  DimensionNames names;
  for (std::size_t d : left_batch) shape.push_back(left.shape[d]), names.push_back(left_names[d]);
  for (std::size_t d : rows) shape.push_back(left.shape[d]), names.push_back(left_names[d]);
  for (std::size_t d : columns) shape.push_back(right.shape[d]), names.push_back(right_names[d]);
  Array c = zeros(shape);
  use_one_thread();
  if (!c.values.empty() && k > 0)
    for (std::int64_t i = 0; i < batch; ++i)
      multiply_matrices(m, n, k, a.at(i * m * k), b.at(i * k * n), c.values.data() + i * m * n);
  std::vector<std::size_t> order;
  for (const std::string& name : result_names) {
    const std::size_t at = find(names, name);
    if (at == nowhere) throw InternalError("a dimension of the result is in no operand");
    order.push_back(at);
  }
  if (is_in_order(order)) return c;
  return transposed(c, order);
}

Array product_by_loops(const Array& left, const DimensionNames& left_names, const Array& right,
                       const DimensionNames& right_names, const DimensionNames& result_names) {
  // One loop per distinct name, the result's outermost; each knows its stride in each array.
  struct Loop {
    std::int64_t size, left, right;
  };
  const auto stride = [](const Array& array, const DimensionNames& names, const std::string& name) -> std::int64_t {
    const std::size_t at = find(names, name);
    if (at == nowhere) return 0;
    std::int64_t step = 1;
    for (std::size_t d = at + 1; d < names.size(); ++d) step *= array.shape[d];
    return step;
  };
  const auto loop = [&](const std::string& name) {
    const std::size_t at = find(left_names, name);
    const std::int64_t size = at != nowhere ? left.shape[at] : right.shape[find(right_names, name)];
    return Loop{size, stride(left, left_names, name), stride(right, right_names, name)};
  };
  std::vector<Loop> outer, inner;
  Shape shape;
  for (const std::string& name : result_names) outer.push_back(loop(name)), shape.push_back(outer.back().size);
  for (const std::string& name : left_names)
    if (find(result_names, name) == nowhere) inner.push_back(loop(name));
  Array out = zeros(shape);

  // The last loop of the result runs innermost, which is cache-friendly.
  const Loop last = outer.empty() ? Loop{1, 0, 0} : outer.back();
  if (!outer.empty()) outer.pop_back();
  std::vector<double> row(static_cast<std::size_t>(last.size));
  const auto sum = [&](const auto& self, std::size_t depth, const double* a, const double* b) -> void {
    if (depth == inner.size()) {
      for (std::int64_t i = 0; i < last.size; ++i)
        row[static_cast<std::size_t>(i)] += a[i * last.left] * b[i * last.right];
      return;
    }
    const Loop& l = inner[depth];
    for (std::int64_t i = 0; i < l.size; ++i) self(self, depth + 1, a + i * l.left, b + i * l.right);
  };
  auto to = out.values.begin();
  const auto fill = [&](const auto& self, std::size_t depth, const double* a, const double* b) -> void {
    if (depth == outer.size()) {
      std::fill(row.begin(), row.end(), 0.0);
      sum(sum, 0, a, b);
      to = std::copy(row.begin(), row.end(), to);
      return;
    }
    const Loop& l = outer[depth];
    for (std::int64_t i = 0; i < l.size; ++i) self(self, depth + 1, a + i * l.left, b + i * l.right);
  };
  fill(fill, 0, left.values.data(), right.values.data());
  return out;
}

}  // namespace assay::engine
