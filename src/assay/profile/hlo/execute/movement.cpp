// Operations that move elements: their places change, their values do not.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/profile/hlo/execute/evaluate.h"

namespace assay::hlo {
namespace {

/// The place of an index in an array.
std::int64_t place(const Dims& index, const Dims& strides) {
  std::int64_t out = 0;
  for (std::size_t d = 0; d < index.size(); ++d) out += index[d] * strides[d];
  return out;
}

bool lies_within(const Dims& index, const Dims& sizes) {
  for (std::size_t d = 0; d < index.size(); ++d)
    if (index[d] < 0 || index[d] >= sizes[d]) return false;
  return true;
}

/// An array whose elements stand in another one, at the place that each index has there; absent where it has none.
template <class PlaceOf>
Evaluation taken(Array out, const Array& in, const PlaceOf& place_of) {
  std::size_t next = 0;
  for (Indices index(out.shape); !index.done(); index.next()) {
    const std::optional<std::int64_t> from = place_of(index.at);
    out.values.at(next++) = from ? in.values.at(as_size(*from)) : absent();
  }
  return single(std::move(out));
}

Evaluation broadcast(const Evaluated& of, const Array& in, Array out) {
  const Dims dims = of.numbers("dimensions"), strides = strides_of(in.shape);
  if (dims.size() != in.shape.size()) return of.fault("a broadcast names a dimension for each of its operand's");
  Dims steps(out.shape.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (as_size(dims[i]) < steps.size() && in.shape[i] != 1) steps[as_size(dims[i])] = strides[i];
  return taken(std::move(out), in, [&](const Dims& at) { return place(at, steps); });
}

Evaluation transpose(const Evaluated& of, const Array& in, Array out) {
  const Dims order = of.numbers("dimensions"), strides = strides_of(in.shape);
  if (order.size() != in.shape.size()) return of.fault("a transposition names all dimensions");
  Dims steps;
  for (const std::int64_t d : order) {
    if (d < 0 || as_size(d) >= strides.size()) return of.fault("a transposition names a dimension there is not");
    steps.push_back(strides[as_size(d)]);
  }
  return taken(std::move(out), in, [&](const Dims& at) { return place(at, steps); });
}

Evaluation reverse(const Evaluated& of, const Array& in, Array out) {
  const Dims dims = of.numbers("dimensions"), strides = strides_of(in.shape);
  return taken(std::move(out), in, [&](Dims at) {
    for (const std::int64_t d : dims) at.at(as_size(d)) = in.shape.at(as_size(d)) - 1 - at.at(as_size(d));
    return place(at, strides);
  });
}

/// [0:8],[0:4:2]
Evaluation slice(const Evaluated& of, const Array& in, Array out) {
  const Dims strides = strides_of(in.shape);
  Dims steps;
  std::int64_t first = 0;
  const std::string_view text = of.at.attribute("slice");
  for (std::size_t i = text.find('['); i != std::string_view::npos; i = text.find('[', i + 1)) {
    const Dims numbers = number_list(text.substr(i + 1, text.find(']', i) - i - 1));
    const std::size_t d = steps.size();
    if (numbers.size() < 2 || d >= in.shape.size())
      return of.fault("a slice has a start and an end for each dimension");
    const std::int64_t step = numbers.size() > 2 ? numbers[2] : 1, last = numbers[0] + (out.shape.at(d) - 1) * step;
    if (!out.values.empty() && (std::min(numbers[0], last) < 0 || std::max(numbers[0], last) >= in.shape[d]))
      return of.fault("a slice reaches beyond its array");
    first += numbers[0] * strides[d];
    steps.push_back(step * strides[d]);
  }
  if (steps.size() != in.shape.size()) return of.fault("a slice has a start and an end for each dimension");
  return taken(std::move(out), in, [&](const Dims& at) { return first + place(at, steps); });
}

/// "0_1_0x2_0_0": before, behind, and between elements.
Evaluation pad(const Evaluated& of, const Array& in, const Array& value, Array out) {
  Dims low, inner;
  for (const std::string& part : split(of.at.attribute("padding"), 'x')) {
    const Dims numbers = number_list(part);
    if (numbers.size() != 3) continue;
    low.push_back(numbers[0]);
    inner.push_back(numbers[2]);
  }
  if (low.size() != in.shape.size()) return of.fault("padding for each dimension");
  out.values.assign(out.values.size(), value.values.at(0));
  const Dims strides = strides_of(out.shape);
  std::size_t next = 0;
  for (Indices index(in.shape); !index.done(); index.next(), ++next) {
    Dims to = index.at;
    for (std::size_t d = 0; d < to.size(); ++d) to[d] = low[d] + to[d] * (inner[d] + 1);
    if (lies_within(to, out.shape)) out.values.at(as_size(place(to, strides))) = in.values.at(next);
  }
  return single(std::move(out));
}

Evaluation concatenate(const Evaluated& of, const Arrays& in) {
  const Dims along = of.numbers("dimensions");
  if (along.size() != 1 || as_size(along[0]) >= in[0]->shape.size())
    return of.fault("arrays are joined along one dimension");
  std::vector<engine::Array> parts;
  for (const Array* part : in) parts.push_back(*part);
  return single({engine::joined(parts, as_size(along[0])), in[0]->element});
}

/// A window whose starts are scalars from the operand `first` on; nothing where one of them is absent.
std::optional<Block> moved_window(const Arrays& in, std::size_t first, const Dims& sizes, const Dims& extent) {
  Block out;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const double index = in[first + d]->values.at(0);
    if (std::isnan(index)) return std::nullopt;
    // As the definition clamps it, so that what is cut lies within.
    const std::int64_t most = std::max<std::int64_t>(0, sizes[d] - extent.at(d));
    const std::int64_t start = std::clamp(static_cast<std::int64_t>(index), std::int64_t{0}, most);
    out.emplace_back(start, start + extent[d]);
  }
  return out;
}

Evaluation dynamic_slice(const Evaluated& of, const Arrays& in, Array out) {
  if (in.size() != in[0]->shape.size() + 1) return of.fault("a start for each dimension");
  const auto from = moved_window(in, 1, in[0]->shape, out.shape);
  if (from) return single(cut(*in[0], *from));
  out.values.assign(out.values.size(), absent());
  return single(std::move(out));
}

Evaluation dynamic_update(const Evaluated& of, const Arrays& in) {
  if (in.size() != in[0]->shape.size() + 2) return of.fault("a start for each dimension");
  Array out = *in[0];
  if (const auto to = moved_window(in, 2, in[0]->shape, in[1]->shape))
    paste(out, *in[1], *to, false);
  else
    out.values.assign(out.values.size(), absent());
  return single(std::move(out));
}

bool names(const Dims& list, std::size_t dim) {
  return std::find(list.begin(), list.end(), static_cast<std::int64_t>(dim)) != list.end();
}

/// The start that row `batch` of the indices names for each dimension of the operand, before it is clamped.
struct Starts {
  const Array& indices;
  Dims strides = strides_of(indices.shape);
  std::size_t vector;
  Dims to;             ///< dimension of the operand that each element of the vector is for
  Dims batch, paired;  ///< dimensions of the operand, and of the indices, that count together

  /// Nothing where an index is absent.
  std::optional<Dims> of(const Dims& row, std::size_t rank) const {
    Dims out(rank, 0), at = row;
    if (vector < indices.shape.size()) at.insert(at.begin() + static_cast<std::ptrdiff_t>(vector), 0);
    for (std::size_t i = 0; i < batch.size(); ++i) out.at(as_size(batch[i])) = at.at(as_size(paired.at(i)));
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (vector < indices.shape.size()) at[vector] = static_cast<std::int64_t>(i);
      const double value = indices.values.at(as_size(place(at, strides)));
      if (std::isnan(value)) return std::nullopt;
      out.at(as_size(to[i])) = static_cast<std::int64_t>(value);
    }
    return out;
  }
};

std::size_t vector_of(const Evaluated& of) {
  return static_cast<std::size_t>(parse_number(of.at.attribute("index_vector_dim")).value_or(0.0));
}

/// An index of slices in two: which slice it is of, and its place in the slice by the dimensions of the operand, of
/// which the slice has those that are `kept`.
std::pair<Dims, Dims> row_and_place(const Dims& index, const Dims& of_slice, const Dims& kept, std::size_t rank) {
  Dims row, within(rank, 0);
  std::size_t next = 0;
  for (std::size_t d = 0; d < index.size(); ++d)
    if (!names(of_slice, d))
      row.push_back(index[d]);
    else if (next < kept.size())
      within[as_size(kept[next++])] = index[d];
  return {std::move(row), std::move(within)};
}

Evaluation gather(const Evaluated& of, const Array& in, const Array& indices, Array out) {
  const Dims offset = of.numbers("offset_dims"), collapsed = of.numbers("collapsed_slice_dims"),
             sizes = of.numbers("slice_sizes"), batch = of.numbers("operand_batching_dims");
  const Starts all{.indices = indices,
                   .vector = vector_of(of),
                   .to = of.numbers("start_index_map"),
                   .batch = batch,
                   .paired = of.numbers("start_indices_batching_dims")};
  if (sizes.size() != in.shape.size()) return of.fault("a slice size for each dimension of the operand");
  Dims kept;  // dimensions of the operand that the result has
  for (std::size_t d = 0; d < in.shape.size(); ++d)
    if (!names(collapsed, d) && !names(batch, d)) kept.push_back(static_cast<std::int64_t>(d));
  const Dims strides = strides_of(in.shape);
  return taken(std::move(out), in, [&](const Dims& index) {
    auto [row, from] = row_and_place(index, offset, kept, in.shape.size());
    const auto start = all.of(row, in.shape.size());
    for (std::size_t d = 0; start && d < from.size(); ++d)
      from[d] += std::clamp((*start)[d], std::int64_t{0}, in.shape[d] - sizes[d]);
    return start ? std::optional(place(from, strides)) : std::nullopt;
  });
}

Evaluation scatter(const Evaluated& of, const Arrays& in) {
  const Array &indices = *in[1], &updates = *in[2];
  const Dims window = of.numbers("update_window_dims"), inserted = of.numbers("inserted_window_dims"),
             batch = of.numbers("input_batching_dims");
  const Starts all{.indices = indices,
                   .vector = vector_of(of),
                   .to = of.numbers("scatter_dims_to_operand_dims"),
                   .batch = batch,
                   .paired = of.numbers("scatter_indices_batching_dims")};
  ASSAY_TRY(body, Body::of(of));
  Array out = *in[0];
  Dims kept;
  for (std::size_t d = 0; d < out.shape.size(); ++d)
    if (!names(inserted, d) && !names(batch, d)) kept.push_back(static_cast<std::int64_t>(d));
  const Dims strides = strides_of(out.shape);
  std::size_t next = 0;
  for (Indices index(updates.shape); !index.done(); index.next(), ++next) {
    auto [row, to] = row_and_place(index.at, window, kept, out.shape.size());
    const auto start = all.of(row, out.shape.size());
    if (!start) {  // it may land anywhere in its batch
      Dims free = out.shape, from(out.shape.size(), 0);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const std::size_t paired = as_size(all.paired[i]);
        from.at(as_size(batch[i])) = row.at(paired - (paired > all.vector ? 1 : 0));
        free.at(as_size(batch[i])) = 1;
      }
      for (Indices place_of(free); !place_of.done(); place_of.next())
        out.values.at(as_size(place(from, strides) + place(place_of.at, strides))) = absent();
      continue;
    }
    for (std::size_t d = 0; d < to.size(); ++d) to[d] += (*start)[d];
    if (!lies_within(to, out.shape)) continue;
    const std::int64_t at = place(to, strides);
    const std::vector<double>& made = body({out.values.at(as_size(at)), updates.values.at(next)});
    out.values.at(as_size(at)) = held(*out.element, made.front());
  }
  return single(std::move(out));
}

}  // namespace

std::optional<Evaluation> evaluate_movement(const Evaluated& of, const Arrays& in, const std::vector<Shape>& shapes) {
  const std::string_view opcode = of.at.opcode;
  if (shapes.size() != 1 || in.empty()) return std::nullopt;
  Array out = Array::of(shapes[0]);
  if (opcode == "broadcast") return broadcast(of, *in[0], std::move(out));
  if (opcode == "transpose") return transpose(of, *in[0], std::move(out));
  if (opcode == "reverse") return reverse(of, *in[0], std::move(out));
  if (opcode == "slice") return slice(of, *in[0], std::move(out));
  if (opcode == "pad" && in.size() == 2) return pad(of, *in[0], *in[1], std::move(out));
  if (opcode == "concatenate") return concatenate(of, in);
  if (opcode == "dynamic-slice") return dynamic_slice(of, in, std::move(out));
  if (opcode == "dynamic-update-slice" && in.size() >= 2) return dynamic_update(of, in);
  if (opcode == "gather" && in.size() == 2) return gather(of, *in[0], *in[1], std::move(out));
  if (opcode == "scatter" && in.size() == 3) return scatter(of, in);
  if (opcode == "reshape") {
    if (in[0]->values.size() != out.values.size()) return of.fault("a reshape keeps the number of elements");
    out.values = in[0]->values;
    return single(std::move(out));
  }
  return std::nullopt;
}

}  // namespace assay::hlo
