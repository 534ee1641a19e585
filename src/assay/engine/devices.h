// Virtual devices: a mesh whose devices hold arrays and communicate only by messages. All of them live in one process,
// or every process has one and a transport carries the messages between them.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/engine/layout.h"
#include "assay/engine/transport.h"

namespace assay::engine {

/// Which devices of a mesh this process has: all of them or, with a transport, the one of its rank; the first device
/// has rank `first`.
struct Placement {
  Transport* transport = nullptr;
  std::size_t first = 0;
  int tag = device_tag;  ///< of its messages
};

/// Mailboxes between the devices of a mesh, with a count of the bytes each device received.
/// Messages from one device to another arrive in order. Elements count with the size of the dtype, not as held here.
class VirtualDevices {
 public:
  explicit VirtualDevices(program::Mesh mesh, Placement placement = {});

  const program::Mesh& mesh() const { return mesh_; }
  std::size_t count() const { return places_.size(); }
  const Coordinates& at(std::size_t device) const { return places_[device]; }

  /// The devices of this process. Arrays of all others are empty.
  const std::vector<std::size_t>& here() const { return here_; }
  bool is_here(std::size_t device) const { return !placement_.transport || device == here_.front(); }

  /// The device `steps` further along an axis, wrapping around.
  std::size_t neighbour(std::size_t device, int axis, std::int64_t steps) const;
  /// The devices that differ from this one only on the given axes, in the order of their shards (axes major first).
  std::vector<std::size_t> group(std::size_t device, const std::vector<int>& axes) const;

  void send(std::size_t from, std::size_t to, const Array& block, Dtype dtype);
  void send(std::size_t from, std::size_t to, Array&& block, Dtype dtype);
  Array receive(std::size_t to, std::size_t from);
  /// The arrays of all devices, in every process; not counted as received.
  Shards gathered(Shards shards);

  /// Bytes each device received since the start.
  const std::vector<Bytes>& received() const { return received_; }
  bool idle() const { return mail_.empty(); }

 private:
  struct Letter {
    Array block;
    Bytes bytes;
  };
  program::Mesh mesh_;
  Placement placement_;
  std::vector<Coordinates> places_;
  std::vector<std::size_t> here_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Letter>> mail_;  ///< by receiver and sender
  std::vector<Bytes> received_;
};

}  // namespace assay::engine
