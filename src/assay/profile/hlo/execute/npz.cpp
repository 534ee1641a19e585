// Arrays of numpy: an .npz file is an archive of .npy files, each a header in Python's words and the numbers behind it.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "assay/base/text.h"
#include "assay/profile/hlo/execute/array.h"
#include "assay/profile/hlo/module.h"
#include "assay/profile/trace/bytes.h"

namespace assay::hlo {
namespace {

constexpr const char* how = "write it with numpy.savez, one array for each";

std::optional<std::uint64_t> number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < size; ++i) out |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return out;
}

/// The element type of "<f4", "|b1", "<i8"; bf16 arrays are written as float32.
const ElementType* element_of(std::string_view description) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"f2", "f16"}, {"f4", "f32"}, {"f8", "f64"}, {"b1", "pred"}, {"i1", "s8"},  {"i2", "s16"},
      {"i4", "s32"}, {"i8", "s64"}, {"u1", "u8"},  {"u2", "u16"},  {"u4", "u32"}, {"u8", "u64"}};
  if (description.size() != 3 || description.front() == '>') return nullptr;
  for (const auto& [name, element] : names)
    if (description.substr(1) == name) return find_element_type(element);
  return nullptr;
}

Result<Array> npy_array(std::string_view bytes, const std::string& where) {
  const auto fault = [&](std::string what) { return fail(where, std::move(what), how); };
  const auto version = number_at(bytes, 6, 1);
  if (!bytes.starts_with("\x93NUMPY") || !version) return fault("this is no array of numpy");
  const std::size_t start = *version >= 2 ? 12 : 10;
  const auto length = number_at(bytes, 8, start - 8);
  if (!length || start + *length > bytes.size()) return fault("the array ends within its header");
  const std::string_view header = bytes.substr(start, *length);
  const auto quoted = [&](std::string_view key) -> std::string_view {
    const std::size_t at = header.find(key);
    if (at == std::string_view::npos) return {};
    const std::size_t open = header.find('\'', at + key.size());
    const std::size_t close = open == std::string_view::npos ? open : header.find('\'', open + 1);
    return close == std::string_view::npos ? std::string_view() : header.substr(open + 1, close - open - 1);
  };
  const ElementType* element = element_of(quoted("'descr':"));
  if (!element) return fault(fmt::format("elements of type {}", in_quotes(std::string(quoted("'descr':")))));
  if (header.find("'fortran_order': False") == std::string_view::npos) return fault("an array in column order");
  const std::size_t shape_at = header.find("'shape': ("), end = header.find(')', shape_at);
  if (shape_at == std::string_view::npos || end == std::string_view::npos) return fault("an array without a shape");
  Shape shape;
  shape.element = element;
  shape.dims = number_list(header.substr(shape_at + 10, end - shape_at - 10));
  std::int64_t count = 1;
  for (const std::int64_t size : shape.dims) {
    if (size < 0 || (size > 0 && count > most_elements / size)) return fault("an array of more than 2^24 elements");
    count *= size;
  }
  const auto size = static_cast<std::size_t>(element->bits) / 8;
  const std::size_t data = start + *length;
  if (bytes.size() - data < static_cast<std::size_t>(count) * size) return fault("the array ends within its numbers");
  Array out = Array::of(shape);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const std::uint64_t bits = *number_at(bytes, data + i * size, size);
    if (element->name == "f16") {
      const double fraction = static_cast<double>(bits & 1023u);
      const int exponent = static_cast<int>(bits >> 10 & 31u);
      const double size_of = exponent == 0    ? std::ldexp(fraction, -24)
                             : exponent == 31 ? (fraction == 0.0 ? HUGE_VAL : NAN)
                                              : std::ldexp(1024.0 + fraction, exponent - 25);
      out.values[i] = bits >> 15 != 0 ? -size_of : size_of;
    } else {
      out.values[i] = of_bits(*element, bits);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<Array>> npz_arrays(std::string_view bytes, std::string_view prefix, std::string_view where) {
  const auto fault = [&](std::string what) { return fail(std::string(where), std::move(what), how); };
  const std::size_t directory = bytes.rfind("PK\5\6");
  const auto count = directory == std::string_view::npos ? std::nullopt : number_at(bytes, directory + 10, 2);
  auto at = directory == std::string_view::npos ? std::nullopt : number_at(bytes, directory + 16, 4);
  if (!bytes.starts_with("PK") || !count || !at) return fault("this is no .npz file");
  std::map<std::int64_t, Array> found;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const std::size_t entry = *at;
    const auto method = number_at(bytes, *at + 10, 2), packed = number_at(bytes, *at + 20, 4),
               name_size = number_at(bytes, *at + 28, 2), extra = number_at(bytes, *at + 30, 2),
               comment = number_at(bytes, *at + 32, 2), local = number_at(bytes, *at + 42, 4);
    if (!local || *at + 46 + *name_size > bytes.size()) return fault("the archive ends within its list of files");
    const std::string_view name = bytes.substr(*at + 46, *name_size);
    *at += 46 + *name_size + *extra + *comment;
    if (!name.starts_with(prefix) || !name.ends_with(".npy")) continue;
    const auto number = parse_number(name.substr(prefix.size(), name.size() - prefix.size() - 4));
    if (!number) continue;
    const auto local_name = number_at(bytes, *local + 26, 2), local_extra = number_at(bytes, *local + 28, 2);
    if (!local_extra || *local + 30 + *local_name + *local_extra + *packed > bytes.size())
      return fault(fmt::format("the archive ends within {}", name));
    const std::string_view data = bytes.substr(*local + 30 + *local_name + *local_extra, *packed);
    const std::string file = fmt::format("{}: {}", where, name);
    if (*method == 0) {
      ASSAY_TRY(array, npy_array(data, file));
      found.emplace(static_cast<std::int64_t>(*number), std::move(array));
      continue;
    }
    if (*method != 8) return fault(fmt::format("{} is packed in a way that numpy does not use", name));
    // What gzip writes around the same bytes: a head, and behind them their checksum and size, as the list has them.
    std::string gzip("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
    gzip.append(data).append(bytes.substr(entry + 16, 4)).append(bytes.substr(entry + 24, 4));
    ASSAY_TRY(content, trace::inflated(gzip, file));
    ASSAY_TRY(array, npy_array(content, file));
    found.emplace(static_cast<std::int64_t>(*number), std::move(array));
  }
  std::vector<Array> out;
  for (auto& [number, array] : found) {
    if (number != static_cast<std::int64_t>(out.size()))
      return fault(fmt::format("there is no array {}{}", prefix, out.size()));
    out.push_back(std::move(array));
  }
  return out;
}

}  // namespace assay::hlo
