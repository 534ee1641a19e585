// Random operands, and the same numbers on the host to check a product with.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/lab/measure/cuda/product.h"

namespace assay::measure::cuda {

/// Normally distributed numbers with variance 1 in a format, as bytes: `count` of them, from a fixed seed.
std::vector<unsigned char> random_elements(Format format, std::size_t count);
/// The value of one element's bytes.
double decode(Format format, const unsigned char* element);
inline std::size_t element_bytes(Format format) { return format == Format::fp8 ? 1 : 2; }

/// Fills a buffer with repeated copies of a block.
void fill(const Buffer& buffer, const std::vector<unsigned char>& block);

/// Buffers of a product, whose operands were filled with `block`. Holds references: for the duration of a call.
struct ProductBuffers {
  const Buffer &a, &b, &c;
  const std::vector<unsigned char>& block;
};
/// The relative error (norm of the difference over the norm) of one product against the host's in double.
double product_error(const Library& library, const ProductShape& shape, Format format, const ProductBuffers& buffers,
                     cudaStream_t stream);

}  // namespace assay::measure::cuda
