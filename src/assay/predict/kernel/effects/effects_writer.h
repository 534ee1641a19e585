// Writes the files of catalogue/steps: tables of numbers with and without unit, all of one source. One list of fields
// serves both this and the reader.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/units.h"

namespace assay::kernel {

/// Writes what RecordReader reads with the same calls.
class EffectsWriter {
 public:
  using Names = std::span<const std::string_view>;
  explicit EffectsWriter(std::string_view source) : source_(source) {}

  template <class F>
  void table(std::string_view name, F write) {
    header(name);
    write(*this);
  }
  void number(std::string_view key, double value) { line(key, in_text(value)); }
  void number(std::string_view key, Seconds value) { line(key, in_text(value)); }
  template <class Values>
  void numbers(std::string_view key, Names names, const Values& values) {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) add(text, names[i], in_text(values[i]));
    line(key, "{ " + text + " }");
  }
  template <class T>
  void numbers_of(std::string_view key, std::string_view, Names names, const std::vector<char>& stated,
                  const std::vector<T>& values) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (stated[i]) add(text, names[i], in_text(values[i]));
    line(key, "{ " + text + " }");
  }
  std::string take() { return std::move(text_); }

 private:
  void header(std::string_view name);
  void line(std::string_view key, const std::string& value);
  static void add(std::string& list, std::string_view name, const std::string& value);
  static std::string in_text(double value);
  static std::string in_text(Seconds value);
  static std::string in_text(Bytes value);

  std::string source_, text_;
};

}  // namespace assay::kernel
