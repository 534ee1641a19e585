// Files of catalogue/steps: tables of numbers and times, each table with its source. One list of fields serves both the
// reader and the writer.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/toml.h"
#include "assay/base/units.h"
#include "assay/estimate/families.h"

namespace assay::estimate {

/// Reads numbers by table and key; keeps the first fault and its place.
class EffectsReader {
 public:
  using Names = std::span<const std::string_view>;
  EffectsReader(const Toml& root, std::string_view file) : root_(root), file_(file) {}

  void table(std::string_view name);
  void number(std::string_view key, double& value) { read_number(table_, key, value); }
  void time(std::string_view key, Seconds& value) { read_time(table_, key, value); }
  /// A table inside of the table: one value for each name.
  void numbers(std::string_view key, Names names, std::span<double> values);
  void times(std::string_view key, Names names, std::span<Seconds> values);
  void sizes(std::string_view key, Names names, std::span<Bytes> values);
  /// The same by id of a family. The first such table of a file says which families were measured; the others have
  /// numbers of the same ones.
  void family_numbers(std::string_view key, const Families& families, std::vector<char>& measured,
                      std::vector<double>& values);
  void family_times(std::string_view key, const Families& families, std::vector<char>& measured,
                    std::vector<Seconds>& values);
  const std::optional<Error>& first_fault() const { return fault_; }

 private:
  void read_number(const Toml* table, std::string_view key, double& value);
  void read_time(const Toml* table, std::string_view key, Seconds& value);
  void read_size(const Toml* table, std::string_view key, Bytes& value);
  void fault(const Toml& node, std::string_view key, std::string what);
  template <class F>
  void read_families(std::string_view key, const Families& families, std::vector<char>& measured, F read);

  const Toml& root_;
  std::string file_, name_;
  const Toml* table_ = nullptr;
  bool measured_known_ = false;
  std::optional<Error> fault_;
};

/// Writes what EffectsReader reads; all tables name one source.
class EffectsWriter {
 public:
  using Names = EffectsReader::Names;
  explicit EffectsWriter(std::string_view source) : source_(source) {}

  void table(std::string_view name);
  void number(std::string_view key, double value);
  void time(std::string_view key, Seconds value);
  void numbers(std::string_view key, Names names, std::span<const double> values);
  void times(std::string_view key, Names names, std::span<const Seconds> values);
  void sizes(std::string_view key, Names names, std::span<const Bytes> values);
  void family_numbers(std::string_view key, const Families& families, const std::vector<char>& measured,
                      const std::vector<double>& values);
  void family_times(std::string_view key, const Families& families, const std::vector<char>& measured,
                    const std::vector<Seconds>& values);
  std::string take() { return std::move(text_); }

 private:
  std::string source_, text_;
};

}  // namespace assay::estimate
