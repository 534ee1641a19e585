#include "assay/engine/program/weights_file.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "assay/base/text.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::engine {
namespace {

std::string shape_text(const Shape& shape) {
  std::string text;
  for (std::int64_t n : shape) text += fmt::format("{}{}", text.empty() ? "" : ",", n);
  return "[" + text + "]";
}

Result<Array> read_array(const model::Json& entry, std::string_view data, const std::string& place) {
  const auto wrong = [&] {
    return fail(place, "not an fp64 tensor within the file", "`assay run train --save` writes such a file");
  };
  const model::Json *dtype = entry.find("dtype"), *shape = entry.find("shape"), *offsets = entry.find("data_offsets");
  if (!dtype || dtype->text != "F64" || !shape || !offsets || offsets->items.size() != 2) return wrong();
  Array out;
  constexpr std::int64_t most = std::int64_t{1} << 32;
  double elements = 1;
  for (const model::Json& size : shape->items) {
    if (size.integer < 1 || size.integer > most) return wrong();
    out.shape.push_back(size.integer);
    elements *= static_cast<double>(size.integer);
  }
  const std::int64_t first = offsets->items[0].integer, last = offsets->items[1].integer;
  if (first < 0 || last < first || last > std::ssize(data) ||
      static_cast<double>(last - first) != elements * sizeof(double))
    return wrong();
  out.values.resize(static_cast<std::size_t>(elements));
  std::memcpy(out.values.data(), data.data() + first, static_cast<std::size_t>(last - first));
  return out;
}

}  // namespace

std::string weights_bytes(const WeightsFile& file) {
  std::string header, data;
  for (const auto& [key, value] : file.facts)
    header += fmt::format("{}\"{}\":\"{}\"", header.empty() ? "" : ",", key, value);
  header = "{\"__metadata__\":{" + header + "}";
  for (const auto& [name, array] : file.weights) {
    const std::size_t bytes = array.values.size() * sizeof(double);
    header += fmt::format(",\"{}\":{{\"dtype\":\"F64\",\"shape\":{},\"data_offsets\":[{},{}]}}", name,
                          shape_text(array.shape), data.size(), data.size() + bytes);
    data.append(reinterpret_cast<const char*>(array.values.data()), bytes);
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  return out + header + data;
}

Result<WeightsFile> read_weights(const std::string& path, std::string_view where) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream all;
  if (!stream || !(all << stream.rdbuf()))
    return fail(std::string(where), fmt::format("{} cannot be read", in_quotes(path)),
                "`assay run train --save FILE.safetensors` writes such a file");
  const std::string bytes = std::move(all).str();
  std::uint64_t length = 0;
  if (bytes.size() >= sizeof length) std::memcpy(&length, bytes.data(), sizeof length);
  if (length == 0 || length > bytes.size() - sizeof length)
    return fail(std::string(where), fmt::format("{} is no safetensors file", in_quotes(path)),
                "`assay run train --save FILE.safetensors` writes such a file");
  const std::string_view view = bytes;
  ASSAY_TRY(header, model::parse_json(view.substr(sizeof length, length), path));
  WeightsFile out;
  for (const auto& [name, entry] : header.members) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.members) out.facts[key] = value.text;
      continue;
    }
    ASSAY_TRY(array, read_array(entry, view.substr(sizeof length + length), path + ": " + name));
    out.weights[name] = std::move(array);
  }
  return out;
}

Result<void> check_weights(const NamedArrays& weights, const NamedArrays& initial, std::string_view where) {
  for (const auto& [name, array] : initial) {
    const auto found = weights.find(name);
    if (found == weights.end())
      return fail(std::string(where), fmt::format("the file has no {}", name), "it is of another model");
    if (found->second.shape != array.shape)
      return fail(std::string(where),
                  fmt::format("{} is {} in the file, and {} in the model", name, shape_text(found->second.shape),
                              shape_text(array.shape)),
                  "give the sizes that it was trained with: --layers, --hidden, --vocabulary, ...");
  }
  return {};
}

}  // namespace assay::engine
