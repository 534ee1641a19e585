#include "assay/engine/shard_map.h"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "assay/engine/collectives.h"

namespace assay::engine {
namespace {

/// Ends a device's function after a fault, its own or another device's.
struct Stopped {};

std::string text_of(const AxisNames& axes) {
  std::string text;
  for (const std::string& name : axes.names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (std::int64_t n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return "[" + text + "]";
}

}  // namespace

/// Rendezvous of the devices at a collective: each hands in its array, the last one runs the collective for all.
template <class T>
class Meeting {
 public:
  using Collective = std::function<Shards<T>(VirtualDevices<T>&, const Shards<T>&)>;

  Meeting(VirtualDevices<T>& devices, Dtype dtype) : devices_(devices), dtype_(dtype), arrays_(devices.count()) {}

  const VirtualDevices<T>& devices() const { return devices_; }
  Dtype dtype() const { return dtype_; }

  Array<T> meet(std::size_t device, const std::string& call, Array<T> x, const Collective& collective) {
    std::unique_lock lock(mutex_);
    if (fault_) throw Stopped{};
    if (left_ > 0) stop(fmt::format("device {} calls {} after another device has finished", device, call));
    if (arrived_ == 0) {
      call_ = call;
      shape_ = x.shape;
    }
    if (call != call_) stop(fmt::format("device {} calls {} while another device calls {}", device, call, call_));
    if (x.shape != shape_)
      stop(fmt::format("device {} passes {} an array of shape {}, another device one of shape {}", device, call,
                       text_of(x.shape), text_of(shape_)));
    arrays_[device] = std::move(x);
    if (++arrived_ == arrays_.size()) {
      arrays_ = collective(devices_, arrays_);
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      const std::size_t round = round_;
      changed_.wait(lock, [&] { return round_ != round || fault_; });
      if (round_ == round) throw Stopped{};
    }
    return std::move(arrays_[device]);
  }

  /// A device's function has returned.
  void leave(std::size_t device) {
    const std::lock_guard lock(mutex_);
    ++left_;
    if (arrived_ > 0 && !fault_) record(fmt::format("device {} finishes while another device calls {}", device, call_));
  }

  [[noreturn]] void refuse(std::string what) {
    const std::lock_guard lock(mutex_);
    stop(std::move(what));
  }
  void fail_with(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    if (!fault_) record("the function of a device threw an exception");
  }

  const std::optional<std::string>& fault() const { return fault_; }
  std::exception_ptr error() const { return error_; }

 private:
  void record(std::string what) {
    fault_ = std::move(what);
    changed_.notify_all();
  }
  [[noreturn]] void stop(std::string what) {
    if (!fault_) record(std::move(what));
    throw Stopped{};
  }

  VirtualDevices<T>& devices_;
  Dtype dtype_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Shards<T> arrays_;
  std::string call_;
  Shape shape_;
  std::size_t arrived_ = 0, left_ = 0, round_ = 0;
  std::optional<std::string> fault_;
  std::exception_ptr error_;
};

namespace {

template <class T>
std::vector<int> axes_named(Meeting<T>& meeting, const AxisNames& axes) {
  const program::Mesh& mesh = meeting.devices().mesh();
  std::vector<int> found;
  program::AxisSet used = 0;
  for (const std::string& name : axes.names) {
    const auto axis = mesh.find(name);
    if (!axis) meeting.refuse(fmt::format("the mesh {} has no axis {}", program::mesh_text(mesh), name));
    if (used & program::axis_bit(*axis)) meeting.refuse(fmt::format("axis {} is named twice", name));
    used |= program::axis_bit(*axis);
    found.push_back(*axis);
  }
  return found;
}

template <class T>
void check_dim(Meeting<T>& meeting, const Array<T>& x, std::size_t dim, std::int64_t ways) {
  if (dim >= x.shape.size())
    meeting.refuse(fmt::format("an array of shape {} has no dimension {}", text_of(x.shape), dim));
  if (x.shape[dim] % ways != 0)
    meeting.refuse(fmt::format("dimension {} of shape {} is not divisible by {}", dim, text_of(x.shape), ways));
}

}  // namespace

template <class T>
std::int64_t LocalDevice<T>::axis_index(const AxisNames& axes) const {
  const VirtualDevices<T>& devices = meeting_.devices();
  return shard_index(devices.mesh(), axes_named(meeting_, axes), devices.at(device_));
}

template <class T>
std::int64_t LocalDevice<T>::axis_size(const AxisNames& axes) const {
  std::int64_t size = 1;
  for (int axis : axes_named(meeting_, axes)) size *= meeting_.devices().mesh().size(axis);
  return size;
}

template <class T>
Array<T> LocalDevice<T>::psum(Array<T> x, const AxisNames& names) {
  const std::vector<int> axes = axes_named(meeting_, names);
  return meeting_.meet(device_, fmt::format("psum({})", text_of(names)), std::move(x),
                       [&](VirtualDevices<T>& devices, const Shards<T>& arrays) {
                         return all_reduce(devices, arrays, axes, meeting_.dtype());
                       });
}

template <class T>
Array<T> LocalDevice<T>::pmean(Array<T> x, const AxisNames& names) {
  Array<T> sum = psum(std::move(x), names);
  const auto members = static_cast<T>(axis_size(names));
  for (T& value : sum.values) value /= members;
  return sum;
}

template <class T>
Array<T> LocalDevice<T>::all_gather(Array<T> x, const AxisNames& names, std::size_t dim) {
  const std::vector<int> axes = axes_named(meeting_, names);
  check_dim(meeting_, x, dim, 1);
  return meeting_.meet(device_, fmt::format("all_gather({}, {})", text_of(names), dim), std::move(x),
                       [&](VirtualDevices<T>& devices, const Shards<T>& arrays) {
                         return engine::all_gather(devices, arrays, axes, dim, meeting_.dtype());
                       });
}

template <class T>
Array<T> LocalDevice<T>::psum_scatter(Array<T> x, const AxisNames& names, std::size_t dim) {
  const std::vector<int> axes = axes_named(meeting_, names);
  check_dim(meeting_, x, dim, axis_size(names));
  return meeting_.meet(device_, fmt::format("psum_scatter({}, {})", text_of(names), dim), std::move(x),
                       [&](VirtualDevices<T>& devices, const Shards<T>& arrays) {
                         return reduce_scatter(devices, arrays, axes, dim, meeting_.dtype());
                       });
}

template <class T>
Array<T> LocalDevice<T>::all_to_all(Array<T> x, const AxisNames& names, std::size_t split_dim, std::size_t join_dim) {
  const std::vector<int> axes = axes_named(meeting_, names);
  check_dim(meeting_, x, split_dim, axis_size(names));
  check_dim(meeting_, x, join_dim, 1);
  return meeting_.meet(device_, fmt::format("all_to_all({}, {}, {})", text_of(names), split_dim, join_dim),
                       std::move(x), [&](VirtualDevices<T>& devices, const Shards<T>& arrays) {
                         return engine::all_to_all(devices, arrays, axes, split_dim, join_dim, meeting_.dtype());
                       });
}

template <class T>
Array<T> LocalDevice<T>::ppermute(Array<T> x, const AxisNames& name,
                                  const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
  const std::vector<int> axes = axes_named(meeting_, name);
  if (axes.size() != 1) meeting_.refuse("ppermute takes one axis");
  const std::int64_t n = axis_size(name);
  std::vector<char> sends(static_cast<std::size_t>(n), 0), gets(static_cast<std::size_t>(n), 0);
  std::string call = fmt::format("ppermute({}", text_of(name));
  for (const auto& [from, to] : pairs) {
    if (from < 0 || from >= n || to < 0 || to >= n)
      meeting_.refuse(fmt::format("ppermute from {} to {} exceeds an axis of {}", from, to, n));
    if (sends[static_cast<std::size_t>(from)]++ || gets[static_cast<std::size_t>(to)]++)
      meeting_.refuse(fmt::format("ppermute names a device twice in {} to {}", from, to));
    call += fmt::format(", {}>{}", from, to);
  }
  return meeting_.meet(device_, call + ")", std::move(x), [&](VirtualDevices<T>& devices, const Shards<T>& arrays) {
    return permute(devices, arrays, axes.front(), pairs, meeting_.dtype());
  });
}

template <class T>
Result<Shards<T>> shard_map(VirtualDevices<T>& devices, const LocalFunction<T>& function,
                            const std::vector<Shards<T>>& operands, Dtype dtype) {
  constexpr std::size_t most_devices = 1024;  // one thread each
  if (devices.count() > most_devices)
    return fail("shard_map",
                fmt::format("supports up to {} devices, but the mesh has {}", most_devices, devices.count()),
                "use a smaller mesh");
  for (const Shards<T>& shards : operands)
    if (shards.size() != devices.count())
      return fail("shard_map",
                  fmt::format("an operand has {} shards, but there are {} devices", shards.size(), devices.count()));
  Meeting<T> meeting(devices, dtype);
  Shards<T> results(devices.count());
  const auto run = [&](std::size_t device) {
    try {
      LocalDevice<T> local(meeting, device);
      std::vector<Array<T>> mine;
      for (const Shards<T>& shards : operands) mine.push_back(shards[device]);
      results[device] = function(local, mine);
      meeting.leave(device);
    } catch (const Stopped&) {
    } catch (...) {
      meeting.fail_with(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(devices.count());
  for (std::size_t device = 0; device < devices.count(); ++device) {
    try {
      threads.emplace_back(run, device);
    } catch (const std::system_error&) {
      meeting.fail_with(std::current_exception());
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (meeting.error()) std::rethrow_exception(meeting.error());
  if (meeting.fault())
    return fail("shard_map", *meeting.fault(), "every device must call the same collectives in the same order");
  return results;
}

#define ASSAY_INSTANTIATE(T)                                                                                       \
  template class LocalDevice<T>;                                                                                   \
  template Result<Shards<T>> shard_map(VirtualDevices<T>&, const LocalFunction<T>&, const std::vector<Shards<T>>&, \
                                       Dtype);
ASSAY_INSTANTIATE(double)
ASSAY_INSTANTIATE(float)
#undef ASSAY_INSTANTIATE

}  // namespace assay::engine
