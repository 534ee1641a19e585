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

/// A start index as the definition clamps it, so that what is cut lies within. Absent ones make all absent.
std::optional<std::int64_t> start_of(double index, std::int64_t size, std::int64_t taken) {
  if (std::isnan(index)) return std::nullopt;
  return std::clamp(static_cast<std::int64_t>(index), std::int64_t{0}, std::max<std::int64_t>(0, size - taken));
}

Evaluation broadcast(const Evaluated& of, const Array& in, Array out) {
  const Dims dims = of.numbers("dimensions"), strides = strides_of(in.dims);
  if (dims.size() != in.dims.size()) return of.fault("a broadcast names a dimension for each of its operand's");
  Dims steps(out.dims.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (as_size(dims[i]) < steps.size() && in.dims[i] != 1) steps[as_size(dims[i])] = strides[i];
  std::size_t next = 0;
  for (Indices index(out.dims); !index.done(); index.next())
    out.data.at(next++) = in.data.at(as_size(place(index.at, steps)));
  return single(std::move(out));
}

Evaluation transpose(const Evaluated& of, const Array& in, Array out) {
  const Dims order = of.numbers("dimensions"), strides = strides_of(in.dims);
  if (order.size() != in.dims.size()) return of.fault("a transposition names all dimensions");
  Dims steps;
  for (const std::int64_t d : order) {
    if (d < 0 || as_size(d) >= strides.size()) return of.fault("a transposition names a dimension there is not");
    steps.push_back(strides[as_size(d)]);
  }
  std::size_t next = 0;
  for (Indices index(out.dims); !index.done(); index.next())
    out.data.at(next++) = in.data.at(as_size(place(index.at, steps)));
  return single(std::move(out));
}

Evaluation reverse(const Evaluated& of, const Array& in, Array out) {
  const Dims dims = of.numbers("dimensions"), strides = strides_of(in.dims);
  std::size_t next = 0;
  for (Indices index(out.dims); !index.done(); index.next()) {
    Dims from = index.at;
    for (const std::int64_t d : dims) from.at(as_size(d)) = in.dims.at(as_size(d)) - 1 - from.at(as_size(d));
    out.data.at(next++) = in.data.at(as_size(place(from, strides)));
  }
  return single(std::move(out));
}

/// [0:8],[0:4:2]
Evaluation slice(const Evaluated& of, const Array& in, Array out) {
  const Dims strides = strides_of(in.dims);
  Dims from, step;
  const std::string_view text = of.at.attribute("slice");
  for (std::size_t i = text.find('['); i != std::string_view::npos; i = text.find('[', i + 1)) {
    std::string_view word = text.substr(i + 1, text.find(']', i) - i - 1);
    std::vector<std::string> numbers = split(word, ':');
    if (numbers.size() < 2) return of.fault("a slice has a start and an end for each dimension");
    from.push_back(static_cast<std::int64_t>(parse_number(trim(numbers[0])).value_or(0.0)));
    step.push_back(numbers.size() > 2 ? static_cast<std::int64_t>(parse_number(trim(numbers[2])).value_or(1.0)) : 1);
  }
  if (from.size() != in.dims.size()) return of.fault("a slice has a start and an end for each dimension");
  std::size_t next = 0;
  for (Indices index(out.dims); !index.done(); index.next()) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < from.size(); ++d) {
      const std::int64_t i = from[d] + index.at[d] * step[d];
      if (i < 0 || i >= in.dims[d]) return of.fault("a slice reaches beyond its array");
      at += i * strides[d];
    }
    out.data.at(next++) = in.data.at(as_size(at));
  }
  return single(std::move(out));
}

/// "0_1_0x2_0_0": before, behind, and between elements.
Evaluation pad(const Evaluated& of, const Array& in, const Array& value, Array out) {
  Dims low, inner;
  for (const std::string& part : split(of.at.attribute("padding"), 'x')) {
    const std::vector<std::string> numbers = split(part, '_');
    if (numbers.size() != 3) continue;
    low.push_back(static_cast<std::int64_t>(parse_number(numbers[0]).value_or(0.0)));
    inner.push_back(static_cast<std::int64_t>(parse_number(numbers[2]).value_or(0.0)));
  }
  if (low.size() != in.dims.size()) return of.fault("padding for each dimension");
  out.data.assign(out.data.size(), value.data.at(0));
  const Dims strides = strides_of(out.dims);
  std::size_t next = 0;
  for (Indices index(in.dims); !index.done(); index.next(), ++next) {
    std::int64_t at = 0;
    bool inside = true;
    for (std::size_t d = 0; d < low.size(); ++d) {
      const std::int64_t i = low[d] + index.at[d] * (inner[d] + 1);
      inside = inside && i >= 0 && i < out.dims[d];
      at += i * strides[d];
    }
    if (inside) out.data.at(as_size(at)) = in.data.at(next);
  }
  return single(std::move(out));
}

Evaluation concatenate(const Evaluated& of, const Arrays& in, Array out) {
  const Dims along = of.numbers("dimensions"), strides = strides_of(out.dims);
  if (along.size() != 1 || as_size(along[0]) >= out.dims.size())
    return of.fault("arrays are joined along one dimension");
  std::int64_t before = 0;
  for (const Array* part : in) {
    std::size_t next = 0;
    for (Indices index(part->dims); !index.done(); index.next())
      out.data.at(as_size(place(index.at, strides) + before * strides[as_size(along[0])])) = part->data.at(next++);
    before += part->dims[as_size(along[0])];
  }
  return single(std::move(out));
}

/// Where a window of `taken` elements starts, as scalars say; nothing where one of them is absent.
std::optional<Dims> starts(const Arrays& in, std::size_t first, const Dims& dims, const Dims& taken) {
  Dims out;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto start = start_of(in[first + d]->data.at(0), dims[d], taken[d]);
    if (!start) return std::nullopt;
    out.push_back(*start);
  }
  return out;
}

Evaluation dynamic_slice(const Evaluated& of, const Arrays& in, Array out) {
  if (in.size() != in[0]->dims.size() + 1) return of.fault("a start for each dimension");
  const auto from = starts(in, 1, in[0]->dims, out.dims);
  const Dims strides = strides_of(in[0]->dims);
  std::size_t next = 0;
  for (Indices index(out.dims); !index.done(); index.next())
    out.data.at(next++) = from ? in[0]->data.at(as_size(place(*from, strides) + place(index.at, strides))) : absent();
  return single(std::move(out));
}

Evaluation dynamic_update(const Evaluated& of, const Arrays& in) {
  if (in.size() != in[0]->dims.size() + 2) return of.fault("a start for each dimension");
  Array out = *in[0];
  const auto to = starts(in, 2, in[0]->dims, in[1]->dims);
  if (!to) {
    out.data.assign(out.data.size(), absent());
    return single(std::move(out));
  }
  const Dims strides = strides_of(out.dims);
  std::size_t next = 0;
  for (Indices index(in[1]->dims); !index.done(); index.next())
    out.data.at(as_size(place(*to, strides) + place(index.at, strides))) = in[1]->data.at(next++);
  return single(std::move(out));
}

bool names(const Dims& list, std::size_t dim) {
  return std::find(list.begin(), list.end(), static_cast<std::int64_t>(dim)) != list.end();
}

/// The start that row `batch` of the indices names for each dimension of the operand, before it is clamped.
struct Starts {
  const Array& indices;
  Dims strides = strides_of(indices.dims);
  std::size_t vector;
  Dims to;             ///< dimension of the operand that each element of the vector is for
  Dims batch, paired;  ///< dimensions of the operand, and of the indices, that count together

  /// Nothing where an index is absent.
  std::optional<Dims> of(const Dims& row, std::size_t rank) const {
    Dims out(rank, 0), at = row;
    if (vector < indices.dims.size()) at.insert(at.begin() + static_cast<std::ptrdiff_t>(vector), 0);
    for (std::size_t i = 0; i < batch.size(); ++i) out.at(as_size(batch[i])) = at.at(as_size(paired.at(i)));
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (vector < indices.dims.size()) at[vector] = static_cast<std::int64_t>(i);
      const double value = indices.data.at(as_size(place(at, strides)));
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
  if (sizes.size() != in.dims.size()) return of.fault("a slice size for each dimension of the operand");
  Dims kept;  // dimensions of the operand that the result has
  for (std::size_t d = 0; d < in.dims.size(); ++d)
    if (!names(collapsed, d) && !names(batch, d)) kept.push_back(static_cast<std::int64_t>(d));
  const Dims strides = strides_of(in.dims);
  std::size_t next = 0;
  for (Indices index(out.dims); !index.done(); index.next(), ++next) {
    const auto [row, within] = row_and_place(index.at, offset, kept, in.dims.size());
    auto start = all.of(row, in.dims.size());
    if (!start) {
      out.data.at(next) = absent();
      continue;
    }
    std::int64_t at = 0;
    for (std::size_t d = 0; d < in.dims.size(); ++d)
      at += (std::clamp((*start)[d], std::int64_t{0}, in.dims[d] - sizes[d]) + within[d]) * strides[d];
    out.data.at(next) = in.data.at(as_size(at));
  }
  return single(std::move(out));
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
  for (std::size_t d = 0; d < out.dims.size(); ++d)
    if (!names(inserted, d) && !names(batch, d)) kept.push_back(static_cast<std::int64_t>(d));
  const Dims strides = strides_of(out.dims);
  std::size_t next = 0;
  for (Indices index(updates.dims); !index.done(); index.next(), ++next) {
    const auto [row, within] = row_and_place(index.at, window, kept, out.dims.size());
    const auto start = all.of(row, out.dims.size());
    if (!start) {  // it may land anywhere in its batch
      Dims free = out.dims, from(out.dims.size(), 0);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const std::size_t paired = as_size(all.paired[i]);
        from.at(as_size(batch[i])) = row.at(paired - (paired > all.vector ? 1 : 0));
        free.at(as_size(batch[i])) = 1;
      }
      for (Indices place_of(free); !place_of.done(); place_of.next())
        out.data.at(as_size(place(from, strides) + place(place_of.at, strides))) = absent();
      continue;
    }
    std::int64_t at = 0;
    bool inside = true;
    for (std::size_t d = 0; d < out.dims.size(); ++d) {
      const std::int64_t i = (*start)[d] + within[d];
      inside = inside && i >= 0 && i < out.dims[d];
      at += i * strides[d];
    }
    if (!inside) continue;
    const std::vector<double>& made = body({out.data.at(as_size(at)), updates.data.at(next)});
    out.data.at(as_size(at)) = held(*out.element, made.front());
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
  if (opcode == "concatenate") return concatenate(of, in, std::move(out));
  if (opcode == "dynamic-slice") return dynamic_slice(of, in, std::move(out));
  if (opcode == "dynamic-update-slice" && in.size() >= 2) return dynamic_update(of, in);
  if (opcode == "gather" && in.size() == 2) return gather(of, *in[0], *in[1], std::move(out));
  if (opcode == "scatter" && in.size() == 3) return scatter(of, in);
  if (opcode == "reshape") {
    if (in[0]->data.size() != out.data.size()) return of.fault("a reshape keeps the number of elements");
    out.data = in[0]->data;
    return single(std::move(out));
  }
  return std::nullopt;
}

}  // namespace assay::hlo
