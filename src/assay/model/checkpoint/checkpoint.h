// A model on disk: config.json, safetensors files and GGUF files. Only the headers of tensors are read.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/model/import/config_import.h"

namespace assay::model {

/// A tensor as a header describes it.
struct CheckpointTensor {
  std::string name, dtype;  ///< dtype as the file calls it: "BF16", "Q4_K"
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  Bytes bytes;
  std::string file = {};     ///< that has it, a path
  std::uint64_t offset = 0;  ///< of its values in that file
};

/// The tensors of a file from `bytes`, which begins with its header; `file_size` is the size of the whole file.
Result<std::vector<CheckpointTensor>> parse_safetensors(std::string_view bytes, std::uint64_t file_size,
                                                        std::string_view file);

/// The header of a GGUF file: its tensors and the configuration derived from its keys.
struct GgufHeader {
  std::string architecture;
  std::vector<CheckpointTensor> tensors;
  Json config;  ///< in the form of a config.json; null if the architecture is not understood
};
Result<GgufHeader> parse_gguf(std::string_view bytes, std::string_view file);

/// The contents of a path.
struct Checkpoint {
  std::optional<ImportedModel> imported;  ///< nothing for tensors without configuration
  std::vector<CheckpointTensor> tensors;  ///< empty for a configuration alone
  std::vector<std::string> notes;
};

/// Sets the imported model's formats from its tensors: the plain format of most elements, and, for
/// matrices packed in blocks, the mean bits per element, including scales. A quantisation stated in the
/// configuration is kept.
void take_formats(Checkpoint& checkpoint);

/// Whether a word on the command line is a path and not an id: it has a slash, or ends in .json, .safetensors or .gguf,
/// or is "." or "..".
bool is_model_path(std::string_view text);

/// Reads a config.json, a .safetensors file (with the config.json in its folder, if there is one), a .gguf file, or a
/// directory with any of them. `where` names the argument in errors, `as` is that of
/// import_config().
Result<Checkpoint> read_checkpoint(const std::string& path, std::string_view where,
                                   const hardware::Catalogue& catalogue, std::string_view as = {});

/// Elements that are weights of the language model: no buffers, no other towers, no prediction layers.
bool counts_as_parameter(std::string_view tensor_name);

}  // namespace assay::model
