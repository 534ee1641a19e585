// Which weights of a model are quantised, and how. Tools quantise the matrices of layers; norms, biases, routers,
// tables and usually the head are not quantised.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "assay/base/number_format.h"

namespace assay::model {

enum class Part : std::uint8_t;
struct Weight;
struct Transformer;

struct Quantisation {
  NumberFormat format = Dtype::bf16;
  std::uint16_t parts = 0;  ///< a bit per Part
  bool products = false;    ///< activations are also quantised, for chips that multiply in the format

  bool has(Part part) const { return parts >> static_cast<int>(part) & 1u; }
  void add(Part part) { parts = static_cast<std::uint16_t>(parts | 1u << static_cast<int>(part)); }
  void remove(Part part) { parts = static_cast<std::uint16_t>(parts & ~(1u << static_cast<int>(part))); }
  /// Only the matrices and tables of the parts.
  bool covers(const Weight& weight) const;
};

/// The default of quantisation tools: the matrices of all layers except routers.
Quantisation linear_layers(NumberFormat format);

/// Bytes of all weights of a model, each in its own format.
Bytes weight_bytes(const Transformer& model, const std::function<NumberFormat(const Weight&)>& format);

/// Which parts of the model are quantised: "mxfp4 in experts", "fp8-128x128 in linear layers".
std::string text(const Quantisation& quantisation, const Transformer& model);

}  // namespace assay::model
