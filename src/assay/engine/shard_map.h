// The per-device style: one function that every device runs on its own shards, in lock step, including collectives.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/devices.h"

namespace assay::engine {

/// Names of mesh axes, major first: "X" or {"X", "Y"}.
struct AxisNames {
  std::vector<std::string> names;

  AxisNames(const char* name) : names{name} {}  // NOLINT: reads as the name
  AxisNames(std::initializer_list<const char*> list) : names(list.begin(), list.end()) {}
};

template <class T>
class Meeting;

/// The function's view of its device. Every device must call the same collectives in the same order.
template <class T>
class LocalDevice {
 public:
  LocalDevice(Meeting<T>& meeting, std::size_t device) : meeting_(meeting), device_(device) {}

  std::int64_t axis_index(const AxisNames& axes) const;
  std::int64_t axis_size(const AxisNames& axes) const;

  /// The sum, and the mean, over the devices along the axes.
  Array<T> psum(Array<T> x, const AxisNames& axes);
  Array<T> pmean(Array<T> x, const AxisNames& axes);
  /// The arrays of all devices along the axes, joined along `dim`.
  Array<T> all_gather(Array<T> x, const AxisNames& axes, std::size_t dim);
  /// The sum over the devices; each device keeps its part along `dim`, whose size must divide.
  Array<T> psum_scatter(Array<T> x, const AxisNames& axes, std::size_t dim);
  /// Part i along `split_dim` goes to device i; received parts are joined along `join_dim`; the size must divide.
  Array<T> all_to_all(Array<T> x, const AxisNames& axes, std::size_t split_dim, std::size_t join_dim);
  /// For every pair, sends the array from the first position of the axis to the second; other devices get zeros.
  Array<T> ppermute(Array<T> x, const AxisNames& axis, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs);

 private:
  Meeting<T>& meeting_;
  std::size_t device_;
};

template <class T>
using LocalFunction = std::function<Array<T>(LocalDevice<T>&, const std::vector<Array<T>>& operands)>;

/// Runs the function on every device, each in its own thread, which waits for the others at every collective.
/// operands[i][device]. The collectives' bytes are counted by `devices`, elements as `dtype`. Results do not depend on
/// thread order. An unknown axis, a wrong dimension, or devices that call different collectives are errors.
template <class T>
Result<Shards<T>> shard_map(VirtualDevices<T>& devices, const LocalFunction<T>& function,
                            const std::vector<Shards<T>>& operands, Dtype dtype = Dtype::fp32);

}  // namespace assay::engine
