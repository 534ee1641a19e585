// What is done with the numbers of whole steps: read, write, read the ranges that fits keep them within, visit each.
// A number is one row of visit_training or visit_serving (key, value, meaning); its unit is its type, its file and the
// verbs that it acts on are those of the list. These classes walk such a list.
#pragma once
#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/fit_range.h"
#include "assay/base/record_reader.h"
#include "assay/base/units.h"
#include "assay/predict/numbers/families.h"

namespace assay::numbers {

/// Names of the members of a number that has several. An empty name: the file has none, the member stays neutral.
using Names = std::span<const std::string_view>;

/// Reads the numbers of a file.
class NumbersReader {
 public:
  NumbersReader(RecordReader& reader, MeasuredFamilies& of) : reader_(reader), of_(of) {}

  template <class F>
  void table(std::string_view name, F visit) {
    reader_.table(name, [&](RecordReader& inner) {
      NumbersReader numbers(inner, of_);
      visit(numbers);
    });
  }
  template <class T>
  void number(std::string_view key, Given<T>& value, std::string_view) {
    reader_.number(key, value);
  }
  template <class T, std::size_t n>
  void by_name(std::string_view key, Names names, std::array<Given<T>, n>& values, std::string_view) {
    reader_.numbers(key, names, values);
  }
  template <class T>
  void by_family(std::string_view key, std::vector<Given<T>>& values, std::string_view) {
    reader_.numbers_of(key, "family", of_.family_ids(), of_.measured, values);
  }

 private:
  RecordReader& reader_;
  MeasuredFamilies& of_;
};

/// Writes tables that NumbersReader reads, all of one source.
class NumbersWriter {
 public:
  NumbersWriter(std::string_view source, const MeasuredFamilies& of) : source_(source), of_(of) {}

  template <class F>
  void table(std::string_view name, F visit) {
    text_ += fmt::format("\n[{}]\nsource = \"{}\"\n", name, source_);
    table_ = name;
    visit(*this);
  }
  template <class T>
  void number(std::string_view key, const Given<T>& value, std::string_view) {
    text_ += fmt::format("{} = {}\n", key, in_text(value.value));
  }
  template <class T, std::size_t n>
  void by_name(std::string_view key, Names names, const std::array<Given<T>, n>& values, std::string_view) {
    std::string list;
    for (std::size_t i = 0; i < n; ++i)
      if (!names[i].empty()) add(list, names[i], in_text(values[i].value));
    text_ += fmt::format("{} = {{ {} }}\n", key, list);
  }
  template <class T>
  void by_family(std::string_view key, const std::vector<Given<T>>& values, std::string_view) {
    std::string list;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (of_.measured[i] && of_.range(i, table_, key)) add(list, of_.families[i].id, in_text(values[i].value));
    text_ += fmt::format("{} = {{ {} }}\n", key, list);
  }
  std::string take() { return std::move(text_); }

 private:
  static void add(std::string& list, std::string_view name, const std::string& value);
  static std::string in_text(double value);
  static std::string in_text(Seconds value);
  static std::string in_text(Bytes value);

  std::string source_, text_;
  const MeasuredFamilies& of_;
  std::string_view table_;
};

/// Calls `each(path, number, meaning, family)` for every number; the path of one is "step.launch.fused". The family is
/// nullptr for numbers that all have in common.
template <class F>
class EachNumber {
 public:
  EachNumber(const MeasuredFamilies& of, F each) : of_(of), each_(std::move(each)) {}

  template <class V>
  void table(std::string_view name, V visit) {
    table_ = name;
    visit(*this);
  }
  template <class Number>
  void number(std::string_view key, Number& value, std::string_view meaning) {
    each_(fmt::format("{}.{}", table_, key), value, meaning, nullptr);
  }
  template <class Values>
  void by_name(std::string_view key, Names names, Values& values, std::string_view meaning) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!names[i].empty()) each_(fmt::format("{}.{}.{}", table_, key, names[i]), values[i], meaning, nullptr);
  }
  template <class Values>
  void by_family(std::string_view key, Values& values, std::string_view meaning) {
    for (std::size_t i = 0; i < values.size(); ++i)
      each_(fmt::format("{}.{}", table_, key), values[i], meaning, &of_.families[i]);
  }

 private:
  const MeasuredFamilies& of_;
  F each_;
  std::string_view table_;
};

/// A range in base units.
template <class Q>
FitRange<double> in_base_units(const FitRange<Q>& range) {
  if constexpr (std::is_same_v<Q, double>)
    return range;
  else
    return {range.start.value(), range.low.value(), range.high.value(), range.pull};
}

/// Reads the range of every number that all families have in common: a file of catalogue/fits, with the keys of the
/// file of the numbers.
class RangesReader {
 public:
  RangesReader(RecordReader& reader, FitRanges& out, std::string path = {})
      : reader_(reader), out_(out), path_(std::move(path)) {}

  template <class F>
  void table(std::string_view name, F visit) {
    const auto inside = [&](RecordReader& inner) {
      RangesReader ranges(inner, out_, std::string(name) + ".");
      visit(ranges);
    };
    reader_.optional_table(name, inside);  // absent where all of its numbers are those of families
  }
  template <class T>
  void number(std::string_view key, Given<T>&, std::string_view) {
    FitRange<T> range;
    reader_.range(key, range);
    out_[path_ + std::string(key)] = in_base_units(range);
  }
  template <class T, std::size_t n>
  void by_name(std::string_view key, Names names, std::array<Given<T>, n>& values, std::string_view meaning) {
    reader_.table(key, [&](RecordReader& inner) {
      RangesReader ranges(inner, out_, path_ + std::string(key) + ".");
      for (std::size_t i = 0; i < n; ++i)
        if (!names[i].empty()) ranges.number(names[i], values[i], meaning);
    });
  }
  template <class T>
  void by_family(std::string_view, std::vector<Given<T>>&, std::string_view) {}

 private:
  RecordReader& reader_;
  FitRanges& out_;
  std::string path_;
};

/// Reads the ranges of one family: a table of a file of catalogue/families. Its keys are those of the numbers;
/// the slowdown of a table is known by the table.
class FamilyRangesReader {
 public:
  FamilyRangesReader(RecordReader& reader, FitRanges& out) : reader_(reader), out_(out) {}

  template <class F>
  void table(std::string_view name, F visit) {
    table_ = name;
    visit(*this);
  }
  template <class T>
  void number(std::string_view, Given<T>&, std::string_view) {}
  template <class Values>
  void by_name(std::string_view, Names, Values&, std::string_view) {}
  template <class T>
  void by_family(std::string_view key, std::vector<Given<T>>&, std::string_view) {
    const std::string_view known_by = key == "slowdown" ? table_ : key;
    if (!reader_.has(known_by)) return;
    FitRange<T> range;
    reader_.range(known_by, range);
    out_[fmt::format("{}.{}", table_, key)] = in_base_units(range);
  }

 private:
  RecordReader& reader_;
  FitRanges& out_;
  std::string_view table_;
};

}  // namespace assay::numbers
