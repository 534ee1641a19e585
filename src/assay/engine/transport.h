// Messages between the processes of a run, each of which has one device.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "assay/engine/array.h"

namespace assay::engine {

/// Leaves memory as it is where a vector would fill it with zeros, and something else is written next.
template <class T>
struct Unfilled : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Unfilled<U>;
  };
  void construct(T* place) noexcept { ::new (static_cast<void*>(place)) T; }
  void construct(T* place, const T& value) noexcept { ::new (static_cast<void*>(place)) T(value); }
};
using Message = std::vector<std::byte, Unfilled<std::byte>>;

/// What carries messages, of several threads. Messages of one tag from one rank to another arrive in order. A message
/// that does not come ends the run with an exception, never with a hang.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::size_t rank() const = 0;
  virtual std::size_t count() const = 0;
  /// Returns at once; what is sent travels while the caller computes.
  virtual void send(std::size_t to, int tag, Message message) = 0;
  virtual Message receive(std::size_t from, int tag) = 0;
};

/// Some ranks of a transport that follow each other, as a transport of their own.
class TransportPart : public Transport {
 public:
  TransportPart(Transport& all, std::size_t first, std::size_t count) : all_(all), first_(first), count_(count) {}
  std::size_t rank() const override { return all_.rank() - first_; }
  std::size_t count() const override { return count_; }
  void send(std::size_t to, int tag, Message message) override { all_.send(first_ + to, tag, std::move(message)); }
  Message receive(std::size_t from, int tag) override { return all_.receive(first_ + from, tag); }

 private:
  Transport& all_;
  std::size_t first_, count_;
};

/// Tags of messages: between the devices of a mesh, the same while others compute, and of everything else that
/// processes tell each other. Stages of a pipeline use numbers from `first_stage_tag` on.
inline constexpr int device_tag = 1, background_tag = 2, control_tag = 3, first_stage_tag = 16;

/// An array as a message: its rank and sizes, then its values.
void send_array(Transport& transport, std::size_t to, int tag, const Array& array);
Array receive_array(Transport& transport, std::size_t from, int tag);

/// The values of all ranks, in order, in every process.
std::vector<std::vector<double>> gather_values(Transport& transport, const std::vector<double>& mine);

}  // namespace assay::engine
