// The weights of a model: each tensor with its dimensions. Counting, sharding and listing all start here.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/model/transformer.h"

namespace assay::model {

/// The meaning of a dimension of a weight or an activation. Sharding rules refer to these.
enum class LogicalDim : std::uint8_t {
  batch,
  sequence,
  context,
  d_model,
  heads,
  kv_heads,
  head_dim,
  value_dim,
  width,
  experts,
  capacity,
  vocabulary,
  rank,
  inner,
  state,
  positions,
  adapter,
  other
};
inline constexpr std::size_t logical_dims = 18;
/// Its letter in listings: B S T D N K H H F E C V R I Z P L.
std::string_view letter(LogicalDim dim);

/// Which part of a model a weight belongs to.
enum class Part : std::uint8_t {
  embedding,
  positions,
  attention,
  state_space,
  mlp,
  experts,
  shared_experts,
  router,
  norm,
  streams,  ///< mixing of several residual streams
  head
};
inline constexpr std::size_t part_count = 11;
std::string_view name(Part part);

struct Weight {
  struct Size {
    LogicalDim dim = LogicalDim::other;
    std::int64_t size = 1;
  };
  std::string_view name;  ///< "W_q", "W_in", "norm"
  Part part = Part::mlp;
  std::array<Size, 4> dims{};
  std::uint8_t rank = 0;
  bool matrix = true;   ///< multiplies activations; else a bias, a scale or a table
  bool trained = true;  ///< else frozen, with neither gradient nor optimizer state
  bool shared = false;  ///< all layers of its kind use the same one

  std::int64_t elements() const;
  /// Number of copies in that many layers of its kind.
  std::int64_t copies(std::int64_t layers) const { return shared ? std::min<std::int64_t>(layers, 1) : layers; }
  bool is_adapter() const { return dims[0].dim == LogicalDim::adapter || dims[rank - 1u].dim == LogicalDim::adapter; }
};

/// Its dimensions as listings write them: "[D 4096, N 32, H 128]".
std::string shape_text(const Weight& weight);

/// The weights of one layer, in the order in which the layer uses them.
std::vector<Weight> layer_weights(const Transformer& model, const Layer& layer);
/// Embedding, positions, final norm and head: the weights outside the layers. A tied head has no weight of its own.
std::vector<Weight> outer_weights(const Transformer& model);

}  // namespace assay::model
