// Matrix products that overlap with their collective: each step sends one chunk while the next one is multiplied.
// All devices of an axis form a ring; other mesh axes hold separate rings. Results and bytes equal a separate
// collective before or after the product; a real machine would hide each step's chunk behind the step's product.
#pragma once
#include "assay/engine/devices.h"

namespace assay::engine {

/// One: all chunks travel up the ring. Two: half of every chunk travels up and half down, over both links of a device.
enum class Directions { one, two };

/// A[I_X, J] * B[J, K] with A gathered over the axis on the way: every device ends with all rows of A times its B.
/// Received: (n - 1) shards of A.
template <class T>
Shards<T> gather_rows_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                             Directions directions, Dtype dtype);

/// A[I, J_X] * B[J, K] with A gathered along the contracted dimension; every device holds all of its B's rows.
template <class T>
Shards<T> gather_columns_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                                Directions directions, Dtype dtype);

/// A[I, J_X] * B[J_X, K] -> C[I_X, K]: partial sums are added up while they travel. I divides by the ring.
/// Received: (n - 1) / n of the partial C.
template <class T>
Shards<T> reduce_scatter_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                                Directions directions, Dtype dtype);

/// A[I, J_X] * B[J_X, K] -> C[I, K]: as above, then the sums travel once more around the ring.
/// Received: 2 (n - 1) / n of C.
template <class T>
Shards<T> all_reduce_matmul(VirtualDevices<T>& devices, const Shards<T>& a, const Shards<T>& b, int axis,
                            Directions directions, Dtype dtype);

}  // namespace assay::engine
