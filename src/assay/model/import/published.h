// Published checkpoints of the families in catalogue/checkpoints/: what their tensors are called, how they are laid
// out, and the numbers of a configuration that change no shape (definition.h).
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/checkpoint/json_reader.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// Where one of our weights is stored.
struct StoredWeight {
  std::string tensor;              ///< "self_attn.q_proj.weight"; {expert} is the number of an expert
  std::vector<std::string> parts;  ///< our names of all that the tensor holds, one after the other; empty: it alone
  bool woven = false;              ///< the parts take turns, head by head
};

struct Published {
  std::string prefix;                           ///< of the tensors of a layer, whose number is {layer}
  std::map<std::string, StoredWeight> outer;    ///< by the name that the engine gives our weight: "embedding"
  std::map<std::string, StoredWeight> layer;    ///< "W_q", "norm", "norm.2"
  std::map<std::string, StoredWeight> experts;  ///< the same where a layer with experts differs
  bool transposed = false;                      ///< matrices are stored as they multiply: inputs first
  bool pairs = false;         ///< numbers that turn together are neighbours; the engine turns halves of a head
  double norm_offset = 0;     ///< added to scales of norms
  double query_scale = 1;     ///< of queries, beyond what attention divides by
  double residual_scale = 1;  ///< of what each block adds
  double embedding_scale = 1;
};

/// How a family's checkpoints are stored; completes the model's definition from the parsed config.json, which `file`
/// names in errors. An error where the family, or something that the configuration asks for, is not computed exactly.
Result<Published> read_published(const Json& config, const std::string& family, const std::string& file,
                                 const hardware::Catalogue& catalogue, Transformer& model);

/// The frequencies of a configuration's rotary positions (rope_parameters or rope_scaling), for heads of `head_dim`
/// numbers of which a share turns. `base` and `share` hold where it says nothing else.
struct RotaryDefaults {
  double base = 1e4, share = 1, windowed_base = 0;  ///< 0: layers with a window turn like the others
  double context = 0;                               ///< tokens that the model was designed for
};
Result<void> read_rotary(const Json& config, const std::string& file, std::int64_t head_dim,
                         const RotaryDefaults& defaults, Definition& definition);

}  // namespace assay::model
