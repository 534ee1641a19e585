// Reads one configuration object: typed access that collects every fault, every default taken, and every unread
// key.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/model/checkpoint/json_reader.h"

namespace assay::model {

/// Reads the keys of one object. A fault does not stop reading: a valid placeholder is returned and `finish` reports
/// all faults at once. Each default taken leaves a note.
class ConfigReader {
 public:
  /// Names of one value, the usual one first: n_embd, hidden_size.
  using Keys = std::span<const std::string>;

  ConfigReader(const Json& object, std::string file, std::string prefix = {});

  /// Present, and not null.
  bool has(std::string_view key) const;
  bool was_read(std::string_view key) const;
  /// What is given at a key, even null; nullptr where it is absent.
  const Json* find(std::string_view key) const { return object_->find(key); }

  /// A size of at least one. Required unless there is a fallback.
  std::int64_t size(Keys keys);
  std::int64_t size(Keys keys, std::int64_t fallback);
  std::int64_t size(const std::string& key, std::int64_t fallback) { return size(Keys(&key, 1), fallback); }
  /// A size, or a list of equal ones: one for each layer.
  std::int64_t same_size(const std::string& key, std::int64_t fallback);
  /// A size whose fallback is derived from other keys, and its formula: "hidden_size / num_attention_heads".
  std::int64_t derived(std::string_view key, std::int64_t fallback, std::string_view how);
  /// A count that may be zero; null is zero.
  std::int64_t count(Keys keys, std::int64_t fallback);
  std::int64_t count(const std::string& key) { return count(Keys(&key, 1), 0); }
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::int64_t> sizes(std::string_view key, std::int64_t lowest = 0);
  double factor(std::string_view key, double fallback);
  /// A list of positive numbers.
  std::vector<double> factors(std::string_view key);
  /// An object inside this one, or null. It needs its own reader.
  const Json* object(std::string_view key);
  /// A list of objects.
  std::vector<const Json*> objects(std::string_view key);

  /// A key that is known and changes no shape.
  void ignore(std::string_view key) { read_.emplace_back(key); }
  void fault(std::string_view key, std::string what, std::string hint = {});
  void note(std::string text) { notes_.push_back(std::move(text)); }

  bool failed() const { return !faults_.empty(); }
  /// Unread keys that look as if they changed a shape are also faults. A key that changes none but has a value that the
  /// library does not know leaves a note. `lenient`: so do the unread keys.
  void check_unread(bool lenient = false);
  /// Takes the faults and notes of an inner object's reader from it.
  void take(ConfigReader& inner);
  Result<void> finish();

  const std::string& file() const { return file_; }
  std::vector<std::string>& notes() { return notes_; }

 private:
  const Json* read(Keys keys, std::string_view& found);
  const Json* read(std::string_view key);
  std::int64_t whole(const Json& value, std::string_view key, std::int64_t lowest);
  double positive(const Json& value, std::string_view key);

  const Json* object_;
  std::string file_, prefix_;
  std::vector<std::string> read_;
  std::vector<Error> faults_;
  std::vector<std::string> notes_;
};

/// The largest accepted size; the product of two still fits in 64 bits.
inline constexpr std::int64_t most_size = std::int64_t{1} << 30;

}  // namespace assay::model
