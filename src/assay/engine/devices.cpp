#include "assay/engine/devices.h"

#include "assay/base/result.h"

namespace assay::engine {

VirtualDevices::VirtualDevices(program::Mesh mesh, Placement placement)
    : mesh_(std::move(mesh)), placement_(placement) {
  const std::int64_t devices = mesh_.devices();
  for (std::int64_t device = 0; device < devices; ++device) places_.push_back(coordinates(mesh_, device));
  if (placement_.transport) {
    here_ = {placement_.transport->rank() - placement_.first};
    if (here_.front() >= places_.size()) throw InternalError("a process has no device of this mesh");
  } else {
    for (std::size_t d = 0; d < places_.size(); ++d) here_.push_back(d);
  }
  received_.resize(places_.size());
}

std::size_t VirtualDevices::neighbour(std::size_t device, int axis, std::int64_t steps) const {
  Coordinates place = places_[device];
  std::int64_t& here = place[static_cast<std::size_t>(axis)];
  const std::int64_t n = mesh_.size(axis);
  here = ((here + steps) % n + n) % n;
  return static_cast<std::size_t>(device_at(mesh_, place));
}

std::vector<std::size_t> VirtualDevices::group(std::size_t device, const std::vector<int>& axes) const {
  program::AxisSet set = 0;
  for (int axis : axes) set |= program::axis_bit(axis);
  const auto members = static_cast<std::int64_t>(program::shard_count(mesh_, set));
  std::vector<std::size_t> out;
  Coordinates place = places_[device];
  for (std::int64_t index = 0; index < members; ++index) {
    std::int64_t rest = index;
    for (std::size_t i = axes.size(); i-- > 0; rest /= mesh_.size(axes[i]))
      place[static_cast<std::size_t>(axes[i])] = rest % mesh_.size(axes[i]);
    out.push_back(static_cast<std::size_t>(device_at(mesh_, place)));
  }
  return out;
}

void VirtualDevices::send(std::size_t from, std::size_t to, const Array& block, Dtype dtype) {
  if (is_here(to)) return send(from, to, Array(block), dtype);
  send_array(*placement_.transport, placement_.first + to, placement_.tag, block);
}

void VirtualDevices::send(std::size_t from, std::size_t to, Array&& block, Dtype dtype) {
  if (from == to) throw InternalError("a device sends to itself");
  if (!is_here(to)) return send_array(*placement_.transport, placement_.first + to, placement_.tag, block);
  const Bytes bytes = storage(dtype, static_cast<double>(block.values.size()));
  mail_[{to, from}].push_back({std::move(block), bytes});
}

Array VirtualDevices::receive(std::size_t to, std::size_t from) {
  if (!is_here(from)) {
    Array block = receive_array(*placement_.transport, placement_.first + from, placement_.tag);
    received_[to] += Bytes(static_cast<double>(block.values.size() * sizeof(double)));  // as they travelled
    return block;
  }
  const auto box = mail_.find({to, from});
  if (box == mail_.end()) throw InternalError("a device waits for a message that was never sent");
  Letter letter = std::move(box->second.front());
  box->second.pop_front();
  if (box->second.empty()) mail_.erase(box);
  received_[to] += letter.bytes;
  return std::move(letter.block);
}

Shards VirtualDevices::gathered(Shards shards) {
  if (!placement_.transport) return shards;
  const std::size_t mine = here_.front();
  for (std::size_t d = 0; d < count(); ++d)
    if (d != mine) send_array(*placement_.transport, placement_.first + d, placement_.tag, shards[mine]);
  for (std::size_t d = 0; d < count(); ++d)
    if (d != mine) shards[d] = receive_array(*placement_.transport, placement_.first + d, placement_.tag);
  return shards;
}

}  // namespace assay::engine
