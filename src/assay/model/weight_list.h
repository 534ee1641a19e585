// Helpers to list the weights of a model. Shared by weights.cpp and the lists of single kinds of blocks.
#pragma once
#include <initializer_list>
#include <string_view>
#include <vector>

#include "assay/model/weights.h"

namespace assay::model {

/// Collects weights; each call states a weight as it would appear in a listing.
class WeightList {
 public:
  WeightList(std::vector<Weight>& out, Part part) : out_(&out), part_(part) {}

  void matrix(std::string_view name, std::initializer_list<Weight::Size> dims) const { push(name, dims, true); }
  /// A bias, a scale or a table.
  void vector(std::string_view name, std::initializer_list<Weight::Size> dims) const { push(name, dims, false); }
  void vector(bool there, std::string_view name, std::initializer_list<Weight::Size> dims) const {
    if (there) push(name, dims, false);
  }

 private:
  void push(std::string_view name, std::initializer_list<Weight::Size> dims, bool matrix) const {
    Weight weight{name, part_, {}, 0, matrix};
    for (const Weight::Size& dim : dims) weight.dims[weight.rank++] = dim;
    out_->push_back(weight);
  }

  std::vector<Weight>* out_;
  Part part_;
};

/// Weights that mix each token with the one before it, for each of several uses.
inline void add_mix(const WeightList& list, std::string_view name, std::int64_t uses, std::int64_t width) {
  list.vector(name, {{LogicalDim::other, uses}, {LogicalDim::d_model, width}});
}

/// The weights of a state space in a model of that width.
void add_state_space(std::vector<Weight>& out, const StateSpace& s, std::int64_t width);

}  // namespace assay::model
