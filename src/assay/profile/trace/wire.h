// The wire format of Protocol Buffers: fields one by one, without a schema.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace assay::trace {

/// Takes the number that a text starts with; nothing at its end, or where it is cut off.
inline std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    bytes.remove_prefix(i + 1);
    return value;
  }
  return std::nullopt;
}

/// Walks over the fields of one message. Text and messages are views into the bytes. A message that ends too early or
/// has a field of an unknown type is damaged; its fields up to there are valid.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : message_(message) {}

  /// Moves to the next field; false at the end, or where the message is damaged.
  bool next() {
    if (damaged_ || at_ >= message_.size()) return false;
    const std::uint64_t key = varint();
    field_ = static_cast<std::uint32_t>(key >> 3);
    number_ = 0;
    bytes_ = {};
    switch (key & 7) {
      case 0:
        number_ = varint();
        break;
      case 1:
        fixed(8);
        break;
      case 2:
        take(varint());
        break;
      case 5:
        fixed(4);
        break;
      default:
        damaged_ = true;
    }
    return !damaged_;
  }

  std::uint32_t field() const { return field_; }
  std::uint64_t number() const { return number_; }  ///< of an integer
  std::int64_t whole() const { return static_cast<std::int64_t>(number_); }
  std::string_view bytes() const { return bytes_; }  ///< of a text, a message or a float
  double real() const {
    double value = 0.0;
    if (bytes_.size() == sizeof value) std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }
  bool damaged() const { return damaged_; }
  /// Where the reader is, for errors.
  const char* position() const { return message_.data() + at_; }

 private:
  std::uint64_t varint() {
    std::string_view rest = message_.substr(at_);
    const auto value = take_varint(rest);
    damaged_ |= !value;
    at_ = value ? message_.size() - rest.size() : message_.size();
    return value.value_or(0);
  }
  void take(std::uint64_t size) {
    if (damaged_ || size > message_.size() - at_) {
      damaged_ = true;
      return;
    }
    bytes_ = message_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
  }
  void fixed(std::size_t size) { take(size); }

  std::string_view message_;
  std::size_t at_ = 0;
  std::uint32_t field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
  bool damaged_ = false;
};

}  // namespace assay::trace
