#include "assay/profile/hlo/partition/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/base/text.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {
namespace {

using Row = PartitionRow;
using Dims = std::vector<std::int64_t>;

bool has(const Dims& list, std::size_t dim) {
  return std::find(list.begin(), list.end(), static_cast<std::int64_t>(dim)) != list.end();
}

/// Writes the rows of one operation.
class RowWriter {
 public:
  RowWriter(const PartitionGraph& graph, const PartitionOperation& operation)
      : graph_(graph), of_(operation), at_(*operation.at) {
    for (const int value : of_.in) in_.push_back(&graph.shape(value).dims);
    static const Dims none;
    out_ = of_.out.empty() ? &none : &graph.shape(of_.out.front()).dims;
    found_.linear.assign(in_.size(), false);
  }

  PartitionRows write() {
    using Kind = PartitionOperation::Kind;
    const std::string_view opcode = at_.opcode;
    if (of_.out.empty()) return std::move(found_);
    if (of_.kind == Kind::parameter || opcode == "constant" || opcode == "iota" || in_.empty()) {
      for (std::size_t d = 0; d < out_->size(); ++d) row((*out_)[d], d);
    } else if (of_.kind != Kind::plain || opcode == "optimization-barrier") {
      // Values pass one by one; see PartitionPlanner.
    } else if (is_element_wise(opcode) || opcode == "copy" || opcode == "map") {
      element_wise();
    } else if (opcode == "broadcast" && in_.size() == 1) {
      broadcast();
    } else if (opcode == "transpose" && numbers("dimensions").size() == out_->size() &&
               in_[0]->size() == out_->size()) {
      const Dims order = numbers("dimensions");
      for (std::size_t d = 0; d < order.size(); ++d) operand(row((*out_)[d], d), 0, static_cast<std::size_t>(order[d]));
      linear(0);
    } else if (opcode == "reshape" || (opcode == "bitcast-convert" && in_[0]->size() == out_->size())) {
      reshape();
      linear(0);
    } else if (opcode == "reduce") {
      reduce();
    } else if ((opcode == "dot" || opcode == "ragged-dot") && in_.size() >= 2) {
      dot();
    } else if (opcode == "convolution" && in_.size() == 2) {
      convolution();
    } else if (opcode == "gather" && in_.size() == 2) {
      gather();
    } else if (opcode == "scatter" && in_.size() == 3) {
      scatter();
    } else if (opcode == "dynamic-update-slice" && in_.size() >= 2) {
      update();
    } else if (opcode == "dynamic-slice") {
      cut(Row::Kind::found);
    } else if (opcode == "slice") {
      cut(Row::Kind::found);
    } else if (opcode == "pad" || opcode == "reverse" || opcode == "concatenate" || opcode == "sort" ||
               opcode == "topk" || opcode == "reduce-window" || opcode == "select-and-scatter" ||
               opcode == "cholesky" || opcode == "triangular-solve" || opcode == "fft") {
      aligned();
    }
    return std::move(found_);
  }

 private:
  Dims numbers(std::string_view key) const { return number_list(at_.attribute(key)); }

  Row& row(std::int64_t size, int result, Row::Kind kind = Row::Kind::kept) {
    Row& out = found_.rows.emplace_back();
    if (result >= static_cast<int>(std::min(out_->size(), program::max_tensor_rank))) {  // of no dimension there is
      result = -1;
      kind = Row::Kind::whole;
    }
    out.kind = kind;
    out.size = size;
    out.operand.assign(in_.size(), -1);
    out.result = result;
    return out;
  }
  Row& row(std::int64_t size, std::size_t result) { return row(size, static_cast<int>(result)); }
  void operand(Row& of, std::size_t k, std::size_t dim) const {
    if (k < in_.size() && dim < in_[k]->size()) of.operand[k] = static_cast<int>(dim);
  }
  void linear(std::size_t k) { found_.linear[k] = true; }
  std::int64_t size_in(std::size_t k, std::size_t dim) const { return dim < in_[k]->size() ? (*in_[k])[dim] : 1; }

  /// Operands of the rank of the result share its dimensions; scalars go with all of them.
  void element_wise() {
    for (std::size_t d = 0; d < out_->size(); ++d) {
      Row& of = row((*out_)[d], d);
      for (std::size_t k = 0; k < in_.size(); ++k)
        if (in_[k]->size() == out_->size()) operand(of, k, d);
    }
    const std::string_view opcode = at_.opcode;
    found_.together = opcode == "add" || opcode == "subtract";
    const ElementType *from = graph_.shape(of_.in[0]).element, *to = graph_.shape(of_.out[0]).element;
    const bool to_float = opcode == "convert" && from && to && to->is_float && from->name != "pred";
    if (found_.together || opcode == "negate" || opcode == "copy" || to_float) linear(0);
    if (found_.together) linear(1);
    if (opcode == "multiply" || opcode == "divide") linear(0);
    if (opcode == "multiply") linear(1);
  }

  void broadcast() {
    const Dims dims = numbers("dimensions");
    for (std::size_t d = 0; d < out_->size(); ++d) {
      Row& of = row((*out_)[d], d);
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (static_cast<std::size_t>(dims[i]) == d && size_in(0, i) == (*out_)[d]) operand(of, 0, i);
    }
    linear(0);
  }

  /// Factors of both sides: of each group of dimensions with one product, the outermost of either side are one index.
  void reshape() {
    const Dims &a = *in_[0], &b = *out_;
    std::size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
      while (i < a.size() && a[i] == 1) ++i;
      while (j < b.size() && b[j] == 1) ++j;
      if (i >= a.size() || j >= b.size()) break;
      Row& of = row(std::gcd(a[i], b[j]), j);
      operand(of, 0, i);
      std::int64_t left = a[i++], right = b[j++];
      while (left != right && (left < right ? i < a.size() : j < b.size())) {
        if (left < right)
          left *= a[i++];
        else
          right *= b[j++];
      }
      if (left != right) break;
    }
    for (std::size_t d = 0; d < a.size(); ++d) whole_if_free(0, d);
  }

  /// Dimensions that no row has yet are needed whole.
  void whole_if_free(std::size_t k, std::size_t dim) {
    for (const Row& of : found_.rows)
      if (of.operand[k] == static_cast<int>(dim)) return;
    operand(row(size_in(k, dim), -1, Row::Kind::whole), k, dim);
  }

  void reduce() {
    const Dims dims = numbers("dimensions");
    const std::size_t arrays = in_.size() / 2;
    std::size_t next = 0;
    for (std::size_t d = 0; d < in_[0]->size(); ++d) {
      const bool gone = has(dims, d);
      Row& of = row((*in_[0])[d], gone ? -1 : static_cast<int>(next++), gone ? Row::Kind::summed : Row::Kind::kept);
      for (std::size_t k = 0; k < std::max<std::size_t>(arrays, 1); ++k) operand(of, k, d);
    }
    found_.adds = at_.attribute("applies") == "add";
    if (found_.adds) linear(0);
  }

  void dot() {
    const Dims contract[2] = {numbers("lhs_contracting_dims"), numbers("rhs_contracting_dims")},
               batch[2] = {numbers("lhs_batch_dims"), numbers("rhs_batch_dims")}, groups = numbers("rhs_group_dims");
    std::size_t next = 0;
    for (std::size_t i = 0; i < std::min(batch[0].size(), batch[1].size()); ++i) {
      Row& of = row(size_in(0, static_cast<std::size_t>(batch[0][i])), next++);
      for (std::size_t k = 0; k < 2; ++k) operand(of, k, static_cast<std::size_t>(batch[k][i]));
    }
    for (std::size_t k = 0; k < 2; ++k)
      for (std::size_t d = 0; d < in_[k]->size(); ++d) {
        if (has(contract[k], d) || has(batch[k], d) || (k == 1 && has(groups, d))) continue;
        Row& of = row(size_in(k, d), next++);
        operand(of, k, d);
        // Rows of a ragged product lie in groups, and a part of them is in a part of the groups.
        if (k == 0 && !groups.empty()) of.kind = Row::Kind::whole;
      }
    for (std::size_t i = 0; i < std::min(contract[0].size(), contract[1].size()); ++i) {
      Row& of = row(size_in(0, static_cast<std::size_t>(contract[0][i])), -1, Row::Kind::summed);
      for (std::size_t k = 0; k < 2; ++k) operand(of, k, static_cast<std::size_t>(contract[k][i]));
    }
    for (const std::int64_t d : groups) operand(row(1, -1, Row::Kind::whole), 1, static_cast<std::size_t>(d));
    linear(0);
    linear(1);
  }

  void convolution() {
    const auto found = convolution_labels(at_);
    if (!found) return;
    const auto& labels = *found;
    const auto at = [&](std::size_t which, char label) { return labels[which].find(label); };
    const std::string_view letters[3] = {"bf", "io", "bf"};
    for (std::size_t i = 0; i < 3; ++i)
      for (const char c : letters[i])
        if (at(i, c) == std::string_view::npos) return;
    const bool grouped = at_.attribute("feature_group_count") != "1" || at_.attribute("batch_group_count") != "1";
    if (in_[0]->size() != labels[0].size() || in_[1]->size() != labels[1].size() || out_->size() != labels[2].size())
      return;
    operand(row(size_in(0, at(0, 'b')), at(2, 'b')), 0, at(0, 'b'));
    operand(row(size_in(1, at(1, 'o')), at(2, 'f')), 1, at(1, 'o'));
    Row& sum = row(size_in(0, at(0, 'f')), -1, Row::Kind::summed);
    operand(sum, 0, at(0, 'f'));
    operand(sum, 1, at(1, 'i'));
    if (grouped)
      for (Row& of : found_.rows) of.kind = Row::Kind::whole;
    linear(0);
    linear(1);
    const std::size_t rank = labels[0].size() - 2;
    const std::string_view window = at_.attribute("window");
    const auto strides = window_numbers(window, "stride=", 1.0, rank),
               steps = window_numbers(window, "rhs_dilate=", 1.0, rank),
               spread = window_numbers(window, "lhs_dilate=", 1.0, rank);
    for (std::size_t i = 0; i < rank; ++i) {
      const char label = static_cast<char>('0' + i);
      if (at(0, label) == std::string_view::npos || at(1, label) == std::string_view::npos ||
          at(2, label) == std::string_view::npos)
        continue;
      const std::int64_t input = size_in(0, at(0, label)), size = size_in(1, at(1, label)),
                         made = (*out_)[at(2, label)];
      if (made < size) {  // a gradient of the window: sums over the places of both
        Row& of = row(std::gcd(input, size), -1, Row::Kind::summed);
        operand(of, 0, at(0, label));
        operand(of, 1, at(1, label));
        of.halo = static_cast<int>(made);
        operand(row(1, at(2, label)), 0, in_[0]->size());
        continue;
      }
      Row& of = row(std::gcd(input, made), at(2, label));
      operand(of, 0, at(0, label));
      const double reach = std::floor(static_cast<double>(size - 1) * steps[i] / std::max(1.0, spread[i]));
      of.halo = static_cast<int>(std::max(1.0, reach + 1.0 - (strides[i] - 1.0)));
      whole_if_free(1, at(1, label));
    }
  }

  /// The table's dimensions that are looked up are found where they are; those that are taken whole pass, as do those
  /// of the indices.
  void gather() {
    const Dims offset = numbers("offset_dims"), collapsed = numbers("collapsed_slice_dims"),
               looked = numbers("start_index_map"), batch = numbers("operand_batching_dims"),
               paired = numbers("start_indices_batching_dims"), sizes = numbers("slice_sizes");
    const auto vector = static_cast<std::size_t>(parse_number(at_.attribute("index_vector_dim")).value_or(0.0));
    std::vector<std::size_t> batches;  // dimensions of the result that the indices have
    for (std::size_t d = 0; d < out_->size(); ++d)
      if (!has(offset, d)) batches.push_back(d);
    std::size_t next = 0;
    for (std::size_t d = 0; d < in_[1]->size(); ++d) {
      if (d == vector) {
        operand(row(1, -1, Row::Kind::whole), 1, d);
        continue;
      }
      if (next >= batches.size()) break;
      Row& of = row(size_in(1, d), batches[next++]);
      operand(of, 1, d);
      for (std::size_t i = 0; i < std::min(batch.size(), paired.size()); ++i)
        if (static_cast<std::size_t>(paired[i]) == d) operand(of, 0, static_cast<std::size_t>(batch[i]));
    }
    next = 0;
    for (std::size_t d = 0; d < in_[0]->size() && d < sizes.size(); ++d) {
      if (has(batch, d)) continue;
      const bool gone = has(collapsed, d);
      const int result = gone || next >= offset.size() ? -1 : static_cast<int>(offset[next]);
      if (!gone) ++next;
      if (sizes[d] == (*in_[0])[d] && result >= 0) {
        operand(row(sizes[d], result), 0, d);
      } else {
        operand(row(size_in(0, d), -1, has(looked, d) && gone ? Row::Kind::found : Row::Kind::whole), 0, d);
      }
    }
    linear(0);
  }

  void scatter() {
    const Dims window = numbers("update_window_dims"), inserted = numbers("inserted_window_dims"),
               batch = numbers("input_batching_dims"), paired = numbers("scatter_indices_batching_dims");
    const auto vector = static_cast<std::size_t>(parse_number(at_.attribute("index_vector_dim")).value_or(0.0));
    found_.adds = at_.attribute("applies") == "add";
    std::vector<std::size_t> batches;
    for (std::size_t d = 0; d < in_[2]->size(); ++d)
      if (!has(window, d)) batches.push_back(d);
    std::size_t next = 0;
    for (std::size_t d = 0; d < in_[1]->size(); ++d) {
      if (d == vector) {
        operand(row(1, -1, Row::Kind::whole), 1, d);
        continue;
      }
      if (next >= batches.size()) break;
      int pair = -1;
      for (std::size_t i = 0; i < std::min(batch.size(), paired.size()); ++i)
        if (static_cast<std::size_t>(paired[i]) == d) pair = static_cast<int>(batch[i]);
      Row& of = row(size_in(1, d), pair,
                    pair >= 0     ? Row::Kind::kept
                    : found_.adds ? Row::Kind::summed
                                  : Row::Kind::whole);
      operand(of, 1, d);
      operand(of, 2, batches[next++]);
      if (pair >= 0) operand(of, 0, static_cast<std::size_t>(pair));
    }
    next = 0;
    for (std::size_t d = 0; d < out_->size(); ++d) {
      if (has(batch, d)) continue;
      Row& of = row((*out_)[d], d);
      operand(of, 0, d);
      if (has(inserted, d) || next >= window.size()) continue;  // each device takes what falls on its part
      const auto in_update = static_cast<std::size_t>(window[next++]);
      if (size_in(2, in_update) == (*out_)[d])
        operand(of, 2, in_update);
      else
        operand(row(1, -1, Row::Kind::whole), 2, in_update);
    }
    found_.together = true;
    if (found_.adds) found_.linear[0] = found_.linear[2] = true;
  }

  /// Dimensions that are updated as a whole pass; of others, each device takes what falls on its part.
  void update() {
    for (std::size_t d = 0; d < out_->size(); ++d) {
      Row& of = row((*out_)[d], d);
      operand(of, 0, d);
      if (size_in(1, d) == (*out_)[d])
        operand(of, 1, d);
      else
        operand(row(1, -1, Row::Kind::whole), 1, d);
    }
    found_.together = true;
    linear(0);
    linear(1);
  }

  /// What is cut out of a dimension is where it is, or needed whole.
  void cut(Row::Kind kind) {
    for (std::size_t d = 0; d < out_->size(); ++d) {
      if (size_in(0, d) == (*out_)[d]) {
        operand(row((*out_)[d], d), 0, d);
      } else {
        operand(row(size_in(0, d), -1, kind), 0, d);
      }
    }
    linear(0);
  }

  /// Dimensions of one size in all operands and results pass, unless the operation works along them.
  void aligned() {
    const Dims dims = numbers("dimensions");
    const auto window = window_numbers(at_.attribute("window"), "size=", 1.0, out_->size());
    const std::string_view opcode = at_.opcode;
    for (std::size_t d = 0; d < out_->size(); ++d) {
      bool along = has(dims, d) || window[d] != 1.0;
      if (opcode == "cholesky" || opcode == "triangular-solve" || opcode == "fft")
        along = along || d + 2 >= out_->size();
      for (const Dims* in : in_)
        if (in->size() == out_->size() && (*in)[d] != (*out_)[d]) along = true;
      Row& of = row((*out_)[d], along ? -1 : static_cast<int>(d), along ? Row::Kind::whole : Row::Kind::kept);
      for (std::size_t k = 0; k < in_.size(); ++k)
        if (in_[k]->size() == out_->size()) operand(of, k, d);
    }
    if (opcode == "pad" || opcode == "reverse") linear(0);
    if (opcode == "concatenate") {
      found_.together = true;
      found_.linear.assign(in_.size(), true);
    }
  }

  const PartitionGraph& graph_;
  const PartitionOperation& of_;
  const Instruction& at_;
  std::vector<const Dims*> in_;
  const Dims* out_ = nullptr;
  PartitionRows found_;
};

}  // namespace

PartitionRows partition_rows(const PartitionGraph& graph, const PartitionOperation& operation) {
  return RowWriter(graph, operation).write();
}

}  // namespace assay::hlo
