// Protocol Buffers for tests, written field by field.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::testing {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string field(std::uint32_t number, std::uint64_t value) { return varint(number << 3) + varint(value); }
inline std::string field(std::uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

/// A ShapeProto of bf16.
inline std::string shape_message(std::initializer_list<std::uint64_t> dims) {
  std::string sizes;
  for (const std::uint64_t size : dims) sizes += varint(size);
  return field(2, 16) + field(3, sizes);
}

/// HloModuleProto of jit_step: a product [64,128] x [128,32], and the sum of its result with itself.
inline std::string module_message() {
  const auto instruction = [](std::uint64_t id, std::string_view name, std::string_view opcode,
                              std::initializer_list<std::uint64_t> dims) {
    return field(1, name) + field(2, opcode) + field(3, shape_message(dims)) + field(35, id);
  };
  const std::string dot = instruction(3, "dot.7", "dot", {64, 32}) + field(36, varint(1) + varint(2)) +
                          field(30, field(1, varint(1)) + field(2, varint(0))) +
                          field(7, field(2, "jit(step)/transpose(jvp(layer))/dot_general"));
  const std::string main = field(1, "main") + field(2, instruction(1, "a", "parameter", {64, 128})) +
                           field(2, instruction(2, "b", "parameter", {128, 32}) + field(9, 1)) + field(2, dot) +
                           field(2, instruction(4, "add.1", "add", {64, 32}) + field(36, varint(3) + varint(3))) +
                           field(5, 9) + field(6, 4);
  return field(1, "jit_step") + field(3, main) + field(6, 9);
}

}  // namespace assay::testing
