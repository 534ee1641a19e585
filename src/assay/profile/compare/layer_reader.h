// Sizes of layers, from the shapes of the products between attention calls.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "assay/profile/compare/recovered.h"

namespace assay::compare {

/// The size that most calls have.
template <class T>
T most_common(const std::vector<T>& values) {
  std::map<T, int> counts;
  for (const T& value : values) ++counts[value];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// A product as [rows, inner] x [inner, columns], of so many experts.
struct Product {
  std::int64_t rows = 0, inner = 0, columns = 0, experts = 0;
  bool backward = false;
  std::size_t call = 0;
};

/// Attention as it ran forward: shapes of queries and keys, and after which call its result is known.
struct AttentionRun {
  std::size_t call = 0;
  std::vector<std::int64_t> query, key;
};

/// Sizes of tensors of models: products of four of them are whole numbers that fit.
bool plausible(const std::vector<std::int64_t>& dims);

/// Products of all tokens, and of the backward pass.
std::vector<Product> products_of(const MeasuredStep& measured, std::int64_t tokens);

/// Fills in the sizes of layers; false where products do not make any.
bool read_layers(const std::vector<Product>& products, const std::vector<AttentionRun>& attention, RecoveredRun& run);

}  // namespace assay::compare
