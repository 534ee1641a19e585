// What ran, from the shapes of a profile alone: the sizes of the model, the batch and how it was trained or served.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/hardware/catalogue.h"
#include "assay/model/transformer.h"
#include "assay/profile/compare/measured.h"
#include "assay/program/form/mesh.h"

namespace assay::compare {

struct RecoveredModel {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t intermediate = 0;  ///< of one expert, where there are any
  std::int64_t experts = 0, experts_per_token = 0;
  std::int64_t dense_layers = 0, dense_width = 0;  ///< the first ones, without experts
  // Of keys and values that are made of one compressed vector; 0: they are not.
  std::int64_t kv_rank = 0, q_rank = 0, rope_dim = 0, value_dim = 0;
  std::int64_t vocabulary = 0;  ///< 0: the profile has no head
  std::int64_t embedded = 0;    ///< rows of the table that tokens are looked up in; 0: none was found
  bool gated = true;            ///< two matrices up
  std::int64_t shared = 0;      ///< width of the experts that all tokens share
  std::int64_t seen = 0;        ///< tokens that a query is known to see, the most; 0: not known

  // What kernels of eager code tell in addition.
  std::string activation = {};                 ///< as configurations name the function; empty: not known
  std::int64_t norms = 0;                      ///< of the model's width in a layer; 0: not known
  bool head_norms = false;                     ///< of each head of queries and keys
  std::optional<bool> centred = std::nullopt;  ///< norms are one operation that subtracts the mean
  bool composed_norms = false;                 ///< norms subtract the mean, as single operations
  model::Rotation rotation = model::Rotation::halves;
  std::int64_t turned = 0;  ///< numbers of a head that turn, cut out of it and joined again; 0: heads turn as they are
  model::JoinedProjection projections = model::JoinedProjection::none;
  bool joined_gate = false;  ///< one product makes gate and input
  model::Logits logits = model::Logits::plain;
  std::optional<bool> tied = std::nullopt;    ///< the head is the embedding
  std::optional<bool> rotary = std::nullopt;  ///< heads turn
  std::optional<bool> biased = std::nullopt;  ///< products of layers have biases
};

struct RecoveredRun {
  enum class Kind : std::uint8_t { training, prefill, decode };
  Kind kind = Kind::training;
  RecoveredModel model;
  std::int64_t batch = 1;     ///< sequences of a microbatch, or that are decoded
  std::int64_t sequence = 1;  ///< tokens of each; of decoding, the context
  std::int64_t microbatches = 1;
  bool recomputes = false;      ///< the backward pass runs attention, or the products, of the forward pass again
  bool compiled = false;        ///< a compiler fused its kernels
  bool repeats_keys = false;    ///< keys and values are copied for every head
  std::string attention;        ///< as --attention-kernel names it; empty: not known
  bool masked = false;          ///< attention reads a mask from memory
  bool plain = false;           ///< attention is several operations, with score matrices in memory
  std::string optimizer;        ///< the operation that updates weights; empty: none was found
  bool unfused_update = false;  ///< several operations do
  std::optional<Dtype> weights, updated;  ///< formats of products, and of what the update reads and writes
  std::vector<std::string> lacks;         ///< what the profile does not tell
};

/// From products and attention with shapes; an error says which of them are missing.
Result<RecoveredRun> recover(const MeasuredStep& measured, const trace::Vocabulary& vocabulary,
                             const std::string& file);

/// The model as train and serve take it: an id of the catalogue whose sizes agree, with other layers if need be, or a
/// configuration.
std::string model_argument(const RecoveredModel& model, const hardware::Catalogue& catalogue);

/// What every command line of train begins with: `on` names the chips, `batch` counts the sequences of all devices.
std::string train_command(const std::string& model, const std::string& on, std::int64_t batch, std::int64_t sequence,
                          const std::vector<program::MeshAxis>& axes);
/// A command line of train or serve; training may split its data over the axes of a mesh.
std::string command_line(const RecoveredRun& run, const std::string& model, const std::string& chip,
                         const std::vector<program::MeshAxis>& axes = {});

}  // namespace assay::compare
