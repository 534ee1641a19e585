#include "assay/model/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/weights.h"

namespace assay::model {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_config = std::uint64_t{16} << 20;
constexpr std::uint64_t most_index = std::uint64_t{256} << 20;       // one line per expert of each layer
constexpr std::uint64_t most_gguf_header = std::uint64_t{64} << 20;  // it includes the vocabulary
constexpr Bytes bytes_of(std::uint64_t count) { return Bytes(static_cast<double>(count)); }

/// The first `most` bytes of a file.
Result<std::string> read_start(const fs::path& path, std::uint64_t most, std::string_view where) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed))
    return fail(std::string(where), fmt::format("no file {}", in_quotes(path.string())),
                "a path is relative to the current directory", Error::Kind::missing);
  const std::uint64_t size = fs::file_size(path, failed);
  std::string bytes(static_cast<std::size_t>(std::min(size, most)), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (failed || !in) return fail(std::string(where), fmt::format("{} cannot be read", in_quotes(path.string())), "");
  return bytes;
}

Result<ImportedModel> read_config(const fs::path& path, std::string_view where, const hardware::Catalogue& catalogue,
                                  std::string_view as) {
  ASSAY_TRY(text,
            hardware::read_file(path.string(), where, {bytes_of(most_config), "a configuration is a few kilobytes"}));
  ASSAY_TRY(imported, import_config(text, path.filename().string(), catalogue, as));
  // A config.json is named after its folder as given, never the working directory; other files by their own name.
  const std::string file = path.filename().string(), folder = path.parent_path().filename().string();
  const bool named = !folder.empty() && folder != "." && folder != "..";
  imported.model.id = imported.model.name = file != "config.json" ? path.stem().string() : named ? folder : file;
  return std::move(imported);
}

Result<void> add_safetensors(const fs::path& path, std::string_view where, Checkpoint& out) {
  std::error_code failed;
  ASSAY_TRY(length, read_start(path, 8, where));
  std::uint64_t header = 8;
  for (std::size_t i = 0; i < length.size(); ++i)
    header += static_cast<std::uint64_t>(static_cast<unsigned char>(length[i])) << (8 * i);
  ASSAY_TRY(bytes, read_start(path, std::min(header, most_config + 8), where));
  ASSAY_TRY(tensors, parse_safetensors(bytes, fs::file_size(path, failed), path.filename().string()));
  for (CheckpointTensor& tensor : tensors) tensor.file = path.string();
  out.tensors.insert(out.tensors.end(), std::make_move_iterator(tensors.begin()),
                     std::make_move_iterator(tensors.end()));
  return {};
}

/// The shards that an index names. They must be files in the same folder, never paths elsewhere.
Result<std::set<std::string>> shards_of(const fs::path& index, std::string_view where) {
  ASSAY_TRY(text, hardware::read_file(index.string(), where, {bytes_of(most_index), "larger indexes are not read"}));
  ASSAY_TRY(json, parse_json(text, index.filename().string(), most_index));
  const Json* map = json.find("weight_map");
  const std::string place = index.filename().string() + ": weight_map";
  if (!map || map->kind != Json::Kind::object) return fail(place, "must be an object of tensors", "");
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map->members) {
    if (file.kind != Json::Kind::text || file.text.empty() || file.text.find('/') != std::string::npos ||
        file.text.find('\\') != std::string::npos || !file.text.ends_with(".safetensors"))
      return fail(place, fmt::format("{} must name a .safetensors file in the same directory", in_quotes(tensor)), "");
    shards.insert(file.text);
  }
  if (shards.empty()) return fail(place, "names no tensors", "is it complete?");
  return shards;
}

/// The shards of a model without an index, found by name: names like "model-00001-of-00003.safetensors" say how
/// many there are. Of several models, takes the one called "model".
std::set<std::string> shards_by_name(const fs::path& directory) {
  constexpr std::string_view ending = ".safetensors";
  constexpr std::size_t numbers = std::string_view("-00001-of-00003").size(), digits = 5;
  std::set<std::string> shards;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(ending) || file.size() <= numbers + ending.size()) continue;
    const std::string stem = file.substr(0, file.size() - ending.size() - numbers);
    const std::string_view place = std::string_view(file).substr(stem.size(), numbers);
    const std::string_view first = place.substr(1, digits), last = place.substr(numbers - digits);
    const auto is_number = [](std::string_view text) {
      return text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    if (place[0] != '-' || !is_number(first) || place.substr(1 + digits, 4) != "-of-" || !is_number(last)) continue;
    if (!shards.empty() && stem != "model") continue;
    shards.clear();
    for (int i = 1; i <= parse_number(last).value_or(0); ++i)
      shards.insert(fmt::format("{}-{:05}-of-{}{}", stem, i, last, ending));
  }
  return shards;
}

Result<Checkpoint> read_directory(const fs::path& directory, std::string_view where,
                                  const hardware::Catalogue& catalogue, std::string_view as) {
  Checkpoint out;
  std::error_code failed;
  if (fs::is_regular_file(directory / "config.json", failed))
    ASSAY_SET(out.imported, read_config(directory / "config.json", where, catalogue, as));
  const fs::path index = directory / "model.safetensors.index.json", single = directory / "model.safetensors";
  std::set<std::string> shards;
  if (fs::is_regular_file(index, failed)) {
    ASSAY_SET(shards, shards_of(index, where));
  } else if (fs::is_regular_file(single, failed)) {
    shards.insert(single.filename().string());
  } else {
    shards = shards_by_name(directory);
  }
  const auto missing = std::count_if(shards.begin(), shards.end(), [&](const std::string& shard) {
    return !fs::is_regular_file(directory / shard, failed);
  });
  if (missing > 0)
    out.notes.push_back(fmt::format("{} of {} shards are missing: tensors are not counted", missing, shards.size()));
  for (const std::string& shard : shards)
    if (missing == 0) ASSAY_CHECK(add_safetensors(directory / shard, where, out));
  if (!out.imported && !out.notes.empty())
    return fail(std::string(where), fmt::format("{}: {}", in_quotes(directory.string()), out.notes.front()),
                "put them or its config.json there", Error::Kind::missing);
  if (!out.imported && out.tensors.empty())
    return fail(std::string(where),
                fmt::format("{} has neither config.json nor safetensors", in_quotes(directory.string())),
                "give the directory of a model", Error::Kind::missing);
  return out;
}

Result<Checkpoint> read_gguf(const fs::path& path, std::string_view where, const hardware::Catalogue& catalogue) {
  ASSAY_TRY(bytes, read_start(path, most_gguf_header, where));
  ASSAY_TRY(header, parse_gguf(bytes, path.filename().string()));
  Checkpoint out;
  out.tensors = std::move(header.tensors);
  if (header.config.kind == Json::Kind::object) {
    ASSAY_TRY(imported, import_config(header.config, path.filename().string(), catalogue));
    imported.model.id = imported.model.name = path.stem().string();
    out.imported = std::move(imported);
  } else {
    out.notes.push_back(
        fmt::format("architecture {} is not supported: only its tensors are counted", in_quotes(header.architecture)));
  }
  return out;
}

}  // namespace

void take_formats(Checkpoint& checkpoint) {
  if (!checkpoint.imported || checkpoint.tensors.empty()) return;
  static constexpr std::pair<std::string_view, Dtype> plain[] = {{"F64", Dtype::fp64},    {"F32", Dtype::fp32},
                                                                 {"F16", Dtype::fp16},    {"BF16", Dtype::bf16},
                                                                 {"F8_E4M3", Dtype::fp8}, {"F8_E5M2", Dtype::fp8}};
  ImportedModel& imported = *checkpoint.imported;
  std::array<double, std::size(plain)> elements{};
  double packed = 0.0, packed_bits = 0.0, matrices = 0.0;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    if (!counts_as_parameter(tensor.name)) continue;
    const auto count = static_cast<double>(tensor.elements);
    if (tensor.shape.size() > 1) matrices += count;
    const auto found =
        std::find_if(std::begin(plain), std::end(plain), [&](const auto& one) { return one.first == tensor.dtype; });
    if (found != std::end(plain))
      elements[static_cast<std::size_t>(found - std::begin(plain))] += count;
    else {
      packed += count;
      packed_bits += 8.0 * tensor.bytes.in(1_B);
    }
  }
  const auto most = std::max_element(elements.begin(), elements.end());
  if (*most > packed) imported.model.dtype = plain[static_cast<std::size_t>(most - elements.begin())].second;
  // A few packed tensors among many others are masks and tables.
  constexpr int block = 256;
  const double bits = packed > 0.0 ? packed_bits / packed : 0.0;
  if (imported.quantisation || !(packed > 0.5 * matrices) || bits > 16.0) return;
  const Dtype base = bits >= 8.0 ? Dtype::int8 : Dtype::int4;
  const int more = std::max(0, static_cast<int>(std::lround((bits - facts(base).bits) * block)));
  imported.quantisation = linear_layers(more > 0 ? NumberFormat(base, more, block) : NumberFormat(base));
  imported.quantisation->add(Part::embedding);
  imported.quantisation->add(Part::head);
  checkpoint.notes.push_back(fmt::format("packed tensors have {} bits per element on average{}", human_number(bits),
                                         bits < 4.0 ? "; fewer than 4 are counted as 4" : ""));
}

bool is_model_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text == "." || text == ".." || text.ends_with(".json") ||
         text.ends_with(".safetensors") || text.ends_with(".gguf");
}

static Result<Checkpoint> read_path(const std::string& text, std::string_view where,
                                    const hardware::Catalogue& catalogue, std::string_view as) {
  fs::path path(text);
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    if (!path.has_filename()) path = path.parent_path();  // "dir/" is "dir"
    return read_directory(path, where, catalogue, as);
  }
  if (text.ends_with(".gguf")) return read_gguf(path, where, catalogue);
  Checkpoint out;
  if (text.ends_with(".safetensors")) {
    ASSAY_CHECK(add_safetensors(path, where, out));
    const fs::path beside = path.parent_path() / "config.json";
    if (fs::is_regular_file(beside, failed)) ASSAY_SET(out.imported, read_config(beside, where, catalogue, as));
    return out;
  }
  ASSAY_SET(out.imported, read_config(path, where, catalogue, as));
  return out;
}

Result<Checkpoint> read_checkpoint(const std::string& text, std::string_view where,
                                   const hardware::Catalogue& catalogue, std::string_view as) {
  ASSAY_TRY(checkpoint, read_path(text, where, catalogue, as));
  take_formats(checkpoint);
  return std::move(checkpoint);
}

bool counts_as_parameter(std::string_view name) {
  // Computed tables, masks, and scales of quantised weights are stored but not learned.
  for (std::string_view ending : {".inv_freq", ".masked_bias", ".attn.bias", ".attention.bias", "_scale_inv",
                                  ".weight_scale", ".input_scale", ".weight_scale_2", ".k_scale", ".v_scale"})
    if (name.ends_with(ending)) return false;
  if (name == "rope_freqs.weight" || name.starts_with("rope_factors")) return false;
  for (std::string_view other : {"vision", "visual", "multi_modal_projector", "audio", "mtp.", "mm_projector"})
    if (name.find(other) != std::string_view::npos) return false;
  return true;
}

}  // namespace assay::model
