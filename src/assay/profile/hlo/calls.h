// What calls of libraries in compiled programs do: files of catalogue/calls. No name of a library stands in the code.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/hardware/catalogue.h"

namespace assay::hlo {

enum class CallKind : std::uint8_t {
  product,
  convolution,
  attention,
  sharding,
  to_shards,  ///< from here on shapes are of one device
  to_whole,   ///< and to here
  placement,
  move,
  top_k
};

/// What a convolution makes of the other two: its result, or the gradient of an operand.
enum class ConvolutionPart : std::uint8_t { output, input, kernel };

/// Where the configuration of an attention call states its sizes; empty: it does not.
struct AttentionKeys {
  std::string batch, heads, kv_heads, queries, keys, head_dim, width;  ///< width: of a head, where head_dim is absent
};

/// Calls whose target contains one of `targets` and, where there are any, whose name contains one of `names`.
struct LibraryCall {
  CallKind does = CallKind::product;
  std::vector<std::string> targets, names;
  ConvolutionPart makes = ConvolutionPart::output;
  std::array<std::string, 2> contracting, batch;  ///< of a product: keys of the dimensions of either operand
  AttentionKeys sizes;
  std::string scores;                              ///< key of the shape [batch, heads, queries, keys]
  std::string mask;                                ///< key of the mask
  std::vector<std::string> causal_words;           ///< of a mask that is a word
  std::optional<double> causal_from;               ///< of a mask that is a number: causal from here on
  std::vector<std::string> backward;               ///< parts of target or name, in lower case
  std::vector<std::pair<std::string, double>> of;  ///< parts of names, and how many products such a kernel makes

  /// Whether its sizes are in the configuration rather than in the shapes.
  bool states_sizes() const { return !sizes.heads.empty() || !scores.empty(); }
  bool is_backward(std::string_view target, std::string_view name) const;
  /// Arithmetic in forward passes, each of two products.
  double forward_passes(std::string_view target, std::string_view name) const;
};

struct Calls {
  std::vector<LibraryCall> calls;  ///< those that state their sizes first

  /// Null where no file knows the call.
  const LibraryCall* find(std::string_view target, std::string_view name, std::string_view configuration) const;
};

/// Of the catalogue, read once.
Result<const Calls*> calls_of(const hardware::Catalogue& catalogue);

}  // namespace assay::hlo
