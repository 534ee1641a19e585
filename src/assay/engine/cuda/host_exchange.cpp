#include "assay/engine/cuda/host_exchange.h"

#include <cstring>

#include "assay/base/index.h"
#include "assay/engine/cuda/task_builder.h"

namespace assay::engine {
namespace {

float value_at(const std::byte* values, int type, std::size_t i) {
  if (type == assay_cuda_bf16) {
    std::uint16_t half = 0;
    std::memcpy(&half, values + 2 * i, 2);
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  float value = 0;
  std::memcpy(&value, values + 4 * i, 4);
  return value;
}

/// Rounded to the nearest, to even where there are two.
void set_value(std::byte* values, int type, std::size_t i, float value) {
  if (type == assay_cuda_bf16) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const auto half = static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
    std::memcpy(values + 2 * i, &half, 2);
  } else {
    std::memcpy(values + 4 * i, &value, 4);
  }
}

}  // namespace

void HostExchange::send(int to, const std::byte* from, std::size_t bytes) {
  transport_.send(static_cast<std::size_t>(to), device_tag, {from, from + bytes});
}

Message HostExchange::receive(int from) { return transport_.receive(static_cast<std::size_t>(from), device_tag); }

void HostExchange::run(const AssayCudaExchange& what) {
  const auto* in = static_cast<const std::byte*>(what.in);
  auto* out = static_cast<std::byte*>(what.out);
  const auto width = at(bytes_of_type(what.type)), count = static_cast<std::size_t>(what.count);
  const auto own = static_cast<std::size_t>(what.mine);
  if (what.kind == assay_cuda_send) return send(what.ranks[1], in, at(what.elements) * width);
  if (what.kind == assay_cuda_receive) {
    const Message got = receive(what.ranks[0]);
    std::memcpy(out, got.data(), got.size());
    return;
  }
  if (what.kind == assay_cuda_shift) {
    send(what.ranks[(own + 1) % count], in, at(what.elements) * width);
    const Message got = receive(what.ranks[(own + count - 1) % count]);
    std::memcpy(out, got.data(), got.size());
    return;
  }
  const bool whole = what.kind == assay_cuda_all_reduce;
  const auto part_start = [&](std::size_t m) { return whole ? at(what.elements) * m / count : m * at(what.elements); };
  const auto part_bytes = [&](std::size_t m) { return (part_start(m + 1) - part_start(m)) * width; };
  const auto to_all = [&](const std::byte* from, bool same, std::size_t bytes) {
    for (std::size_t m = 0; m < count; ++m)
      if (m != own) send(what.ranks[m], same ? from : from + part_start(m) * width, same ? bytes : part_bytes(m));
  };
  const auto put_all = [&](const std::byte* mine) {
    std::memmove(out + part_start(own) * width, mine, part_bytes(own));
    for (std::size_t m = 0; m < count; ++m)
      if (m != own) {
        const Message got = receive(what.ranks[m]);
        std::memcpy(out + part_start(m) * width, got.data(), got.size());
      }
  };
  if (what.kind == assay_cuda_all_gather) {
    to_all(in, true, part_bytes(own));
    return put_all(in);
  }
  if (what.kind == assay_cuda_all_to_all) {
    to_all(in, false, 0);
    return put_all(in + part_start(own) * width);
  }
  // The sum of everybody's part, which an all-reduce then gathers.
  to_all(in, false, 0);
  std::vector<Message> parts(count);
  for (std::size_t m = 0; m < count; ++m)
    if (m == own)
      parts[m].assign(in + part_start(m) * width, in + part_start(m) * width + part_bytes(m));
    else
      parts[m] = receive(what.ranks[m]);
  std::vector<std::byte> sums(part_bytes(own));
  for (std::size_t i = 0; i < sums.size() / width; ++i) {
    float sum = 0;
    for (const Message& part : parts) sum += value_at(part.data(), what.type, i);
    set_value(sums.data(), what.type, i, sum);
  }
  if (!whole) {
    std::memcpy(out, sums.data(), sums.size());
    return;
  }
  to_all(sums.data(), true, sums.size());
  put_all(sums.data());
}

const char* HostExchange::call(void* self, const AssayCudaExchange* what) {
  static_cast<HostExchange*>(self)->run(*what);
  return nullptr;
}

Bytes exchanged_bytes(int kind, int devices, std::int64_t elements, int type) {
  const double all = static_cast<double>(elements * bytes_of_type(type)), others = devices - 1.0;
  if (kind == assay_cuda_shift) return Bytes(all);
  return Bytes(kind == assay_cuda_all_reduce ? 2.0 * all * others / devices : all * others);
}

}  // namespace assay::engine
