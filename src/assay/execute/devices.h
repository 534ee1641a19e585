// Virtual devices: a mesh in one process, whose devices hold arrays and communicate only by messages.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/execute/layout.h"

namespace assay::execute {

/// Mailboxes between the devices of a mesh, with a count of the bytes each device received.
/// Messages from one device to another arrive in order. Elements count with the size of the dtype, not as held here.
template <class T>
class VirtualDevices {
 public:
  explicit VirtualDevices(program::Mesh mesh);

  const program::Mesh& mesh() const { return mesh_; }
  std::size_t count() const { return places_.size(); }
  const Coordinates& at(std::size_t device) const { return places_[device]; }

  /// The device `steps` further along an axis, wrapping around.
  std::size_t neighbour(std::size_t device, int axis, std::int64_t steps) const;
  /// The devices that differ from this one only on the given axes, in the order of their shards (axes major first).
  std::vector<std::size_t> group(std::size_t device, const std::vector<int>& axes) const;

  void send(std::size_t from, std::size_t to, Array<T> block, Dtype dtype);
  Array<T> receive(std::size_t to, std::size_t from);

  /// Bytes each device received since the start.
  const std::vector<Bytes>& received() const { return received_; }
  bool idle() const { return mail_.empty(); }

 private:
  struct Letter {
    Array<T> block;
    Bytes bytes;
  };
  program::Mesh mesh_;
  std::vector<Coordinates> places_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Letter>> mail_;  ///< by receiver and sender
  std::vector<Bytes> received_;
};

}  // namespace assay::execute
