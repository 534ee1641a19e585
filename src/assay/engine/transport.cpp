#include "assay/engine/transport.h"

#include <cstring>

#include "assay/base/result.h"

namespace assay::engine {

void send_array(Transport& transport, std::size_t to, int tag, const Array& array) {
  const std::size_t header = (1 + array.shape.size()) * sizeof(std::int64_t),
                    body = array.values.size() * sizeof(double);
  Message message(header + body);
  const auto rank = static_cast<std::int64_t>(array.shape.size());
  std::memcpy(message.data(), &rank, sizeof rank);
  if (rank > 0) std::memcpy(message.data() + sizeof rank, array.shape.data(), header - sizeof rank);
  if (body > 0) std::memcpy(message.data() + header, array.values.data(), body);
  transport.send(to, tag, std::move(message));
}

Array receive_array(Transport& transport, std::size_t from, int tag) {
  const Message message = transport.receive(from, tag);
  std::int64_t rank = 0;
  if (message.size() < sizeof rank) throw InternalError("a message is too short");
  std::memcpy(&rank, message.data(), sizeof rank);
  const std::size_t header = (1 + static_cast<std::size_t>(rank)) * sizeof(std::int64_t);
  if (rank < 0 || message.size() < header) throw InternalError("a message is no array");
  Array out;
  out.shape.resize(static_cast<std::size_t>(rank));
  if (rank > 0) std::memcpy(out.shape.data(), message.data() + sizeof rank, header - sizeof rank);
  // Headers are as wide as the widest element, so that values lie where such values may.
  const auto* first = reinterpret_cast<const double*>(message.data() + header);
  out.values.assign(first, first + (message.size() - header) / sizeof(double));
  if (static_cast<std::int64_t>(out.values.size()) != element_count(out.shape) && !out.values.empty())
    throw InternalError("a message has not the values of its shape");
  return out;
}

std::vector<std::vector<double>> gather_values(Transport& transport, const std::vector<double>& mine) {
  const Array own{{static_cast<std::int64_t>(mine.size())}, mine};
  std::vector<std::vector<double>> all(transport.count());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (rank != transport.rank()) send_array(transport, rank, control_tag, own);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    all[rank] = rank == transport.rank() ? mine : std::move(receive_array(transport, rank, control_tag).values);
  return all;
}

}  // namespace assay::engine
