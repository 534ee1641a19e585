#include "assay/lab/measure/cuda/operands.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace assay::measure::cuda {
namespace {

/// The nearest e4m3 of a number below 448: 3 bits after the leading one, exponents from -6.
unsigned char e4m3(float x) {
  const unsigned char sign = x < 0 ? 0x80 : 0;
  const float size = std::min(std::abs(x), 448.0F);
  const int exponent = std::max(-6, size > 0 ? std::ilogb(size) : -6);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - exponent)));  // 8..16 but for the smallest
  return static_cast<unsigned char>(sign | ((exponent + 6) * 8 + steps));
}

double from_e4m3(unsigned char bits) {
  const int exponent = (bits >> 3) & 15, fraction = bits & 7;
  const double size = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  return bits & 0x80 ? -size : size;
}

}  // namespace

std::vector<unsigned char> random_elements(Format format, std::size_t count) {
  std::mt19937 bits(20261115);
  std::normal_distribution<float> normal;
  std::vector<unsigned char> bytes(count * element_bytes(format));
  for (std::size_t i = 0; i < count; ++i) {
    const float x = normal(bits);
    if (format == Format::fp8) {
      bytes[i] = e4m3(x);
    } else {
      const auto word = std::bit_cast<std::uint32_t>(x) + 0x8000U;  // to the nearest
      bytes[2 * i] = static_cast<unsigned char>(word >> 16);
      bytes[2 * i + 1] = static_cast<unsigned char>(word >> 24);
    }
  }
  return bytes;
}

double decode(Format format, const unsigned char* element) {
  if (format == Format::fp8) return from_e4m3(*element);
  const std::uint32_t word = (std::uint32_t{element[0]} << 16) | (std::uint32_t{element[1]} << 24);
  return std::bit_cast<float>(word);
}

void fill(const Buffer& buffer, const std::vector<unsigned char>& block) {
  std::size_t done = std::min(block.size(), buffer.bytes());
  check(cudaMemcpy(buffer.at(), block.data(), done, cudaMemcpyHostToDevice), "cudaMemcpy");
  while (done < buffer.bytes()) {
    const std::size_t next = std::min(done, buffer.bytes() - done);
    check(cudaMemcpy(buffer.at(done), buffer.at(), next, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    done += next;
  }
}

double product_error(const Library& library, const ProductShape& shape, Format format, const ProductBuffers& buffers,
                     cudaStream_t stream) {
  const auto& [a, b, c, block] = buffers;
  const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n),
             k = static_cast<std::size_t>(shape.k), size = element_bytes(format);
  const std::size_t shift = 256;  // B starts elsewhere in the block, so that the operands differ
  check(cudaMemsetAsync(c.at(), 0xff, 2 * m * n, stream), "cudaMemsetAsync");  // poison: not a number
  const Product product(library, shape, format);
  product.run(a.at(), b.at(shift * size), c.at(), stream);
  std::vector<unsigned char> result(2 * m * n);
  check(cudaMemcpyAsync(result.data(), c.at(), result.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  double wrong = 0, all = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l)
        sum += decode(format, &block[(i * k + l) * size]) * decode(format, &block[(shift + j * k + l) * size]);
      const double off = decode(Format::bf16, &result[2 * (i * n + j)]) - sum;
      wrong += off * off;
      all += sum * sum;
    }
  return std::sqrt(wrong / all);
}

}  // namespace assay::measure::cuda
