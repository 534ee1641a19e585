// Headers of safetensors files: eight bytes of length, then a JSON object of tensors.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "assay/base/text.h"
#include "assay/model/checkpoint/checkpoint.h"

namespace assay::model {
namespace {

constexpr std::pair<std::string_view, int> dtype_bits[] = {
    {"F64", 64},    {"F32", 32},    {"F16", 16},        {"BF16", 16},      {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"F4", 4},         {"I64", 64},    {"I32", 32},
    {"I16", 16},    {"I8", 8},      {"U64", 64},        {"U32", 32},       {"U16", 16},    {"U8", 8},
    {"BOOL", 8},    {"C64", 64},    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};

std::optional<int> bits_of(std::string_view dtype) {
  for (const auto& [name, bits] : dtype_bits)
    if (name == dtype) return bits;
  return std::nullopt;
}

}  // namespace

Result<std::vector<CheckpointTensor>> parse_safetensors(std::string_view bytes, std::uint64_t file_size,
                                                        std::string_view file) {
  constexpr std::uint64_t prefix = 8, most_header = std::uint64_t{16} << 20;
  const std::string place(file);
  if (bytes.size() < prefix)
    return fail(place, fmt::format("the file has {} bytes, a header takes at least 8", bytes.size()),
                "is it complete?");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < prefix; ++i)
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  if (length > most_header)
    return fail(place, fmt::format("the header would have {} bytes, the limit is {}", length, most_header),
                "is it a safetensors file?");
  if (length > bytes.size() - prefix || prefix + length > file_size)
    return fail(place, fmt::format("the header has {} bytes, but the file ends before", length), "is it complete?");
  ASSAY_TRY(header, parse_json(bytes.substr(prefix, length), file));
  if (header.kind != Json::Kind::object)
    return fail(place, fmt::format("the header must be an object, got {}", describe(header.kind)),
                "is it a safetensors file?");
  const std::uint64_t data = file_size - prefix - length;
  const bool header_alone = data == 0;  // as fetched to look at a model
  std::vector<CheckpointTensor> tensors;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  std::set<std::string_view> names;
  for (const auto& member : header.members) {
    const std::string& name = member.first;
    const Json& entry = member.second;
    if (name == "__metadata__") continue;
    if (!names.insert(name).second)
      return fail(fmt::format("{}: {}", file, in_quotes(name)), "appears twice", "is it a safetensors file?");
    const Json *dtype = entry.find("dtype"), *shape = entry.find("shape"), *offsets = entry.find("data_offsets");
    const auto fault = [&](std::string what, std::string hint = "is it a safetensors file?") {
      return fail(fmt::format("{}: {}", file, in_quotes(name)), std::move(what), std::move(hint));
    };
    if (!dtype || dtype->kind != Json::Kind::text) return fault("dtype must be text");
    const auto bits = bits_of(dtype->text);
    if (!bits) return fault(fmt::format("unknown dtype {}", in_quotes(dtype->text)));
    if (!shape || shape->kind != Json::Kind::list || shape->items.size() > 16)
      return fault("shape must be a list of at most 16 sizes");
    CheckpointTensor tensor{name, dtype->text, {}, 1, {}};
    for (const Json& size : shape->items) {
      if (size.kind != Json::Kind::integer || size.integer < 0)
        return fault("shape must be a list of sizes of 0 or more");
      if (__builtin_mul_overflow(tensor.elements, size.integer, &tensor.elements) ||
          tensor.elements > (std::int64_t{1} << 56))
        return fault("the shape has more elements than can be counted");
      tensor.shape.push_back(size.integer);
    }
    if (!offsets || offsets->kind != Json::Kind::list || offsets->items.size() != 2 ||
        offsets->items[0].kind != Json::Kind::integer || offsets->items[1].kind != Json::Kind::integer)
      return fault("data_offsets must be two numbers");
    const std::int64_t begin = offsets->items[0].integer, end = offsets->items[1].integer;
    if (begin < 0 || end < begin || (!header_alone && static_cast<std::uint64_t>(end) > data))
      return fault(fmt::format("data_offsets {} to {} are not within the {} bytes of data", begin, end, data),
                   "is it complete?");
    const std::int64_t expected = (tensor.elements * *bits + 7) / 8;
    if (end - begin != expected)
      return fault(fmt::format("the shape takes {} bytes, but data_offsets span {}", expected, end - begin));
    tensor.bytes = Bytes(static_cast<double>(expected));
    tensor.offset = prefix + length + static_cast<std::uint64_t>(begin);
    spans.emplace_back(begin, end);
    tensors.push_back(std::move(tensor));
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i)
    if (spans[i].first < spans[i - 1].second)
      return fail(place, fmt::format("two tensors share the bytes from {} on", spans[i].first),
                  "is it a safetensors file?");
  return tensors;
}

}  // namespace assay::model
