// Products of two arrays with named dimensions, einsum-like: by BLAS, and by plain loops to check it.
#pragma once
#include <string>
#include <vector>

#include "assay/engine/array.h"

namespace assay::engine {

/// The names of an array's dimensions, in order.
using DimensionNames = std::vector<std::string>;

/// The product summed over the dimensions that the result lacks. Dimensions of all three are batch dimensions; a
/// dimension of a single operand must be in the result. Matrices are multiplied by BLAS on one thread.
Array product(const Array& left, const DimensionNames& left_names, const Array& right,
              const DimensionNames& right_names, const DimensionNames& result_names);

/// The same by loops over every index, in double; shares no code with the one above.
Array product_by_loops(const Array& left, const DimensionNames& left_names, const Array& right,
                       const DimensionNames& right_names, const DimensionNames& result_names);

}  // namespace assay::engine
