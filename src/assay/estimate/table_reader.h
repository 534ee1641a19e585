// Reads the tables of a data file key by key. Every fault is kept with its place, and keys that were never read are
// faults.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/toml.h"
#include "assay/base/units.h"

namespace assay::estimate {

/// Where a fit of one number starts, and the bounds that it stays within.
template <class Q>
struct FitRange {
  Q start{}, low{}, high{};
  double pull = 0;  ///< error charged for a factor of 1.5 away from the start; 0: the fit's default

  /// Else the number stays where it starts.
  bool is_fitted() const { return low < high; }
};

/// What the tables of one file share.
struct TableDocument {
  std::string file;
  std::set<std::string> sources = {};
  std::vector<Error> faults = {};

  /// All faults as one error, the first at its head.
  Result<void> result() const;
};

/// One table. Numbers are from 0 up; times, sizes and rates are texts with a unit.
class TableReader {
 public:
  TableReader(TableDocument& document, const Toml& table, std::string path = "")
      : document_(document), table_(table), path_(std::move(path)) {}

  /// [source.KEY] tables of the file, each with a title; other tables name one of them. Called on the root.
  void sources();
  bool has(std::string_view key) const { return table_.find(key) != nullptr; }

  void text(std::string_view key, std::string& value);
  void texts(std::string_view key, std::vector<std::string>& values);
  /// False where it is absent.
  void flag(std::string_view key, bool& value);
  void value(std::string_view key, double& value);
  void value(std::string_view key, Seconds& value);
  void value(std::string_view key, Bytes& value);
  void value(std::string_view key, BytesPerSecond& value);
  void value(std::string_view key, Watts& value);

  /// { start = 1, low = 0.5, high = 2 }; `start` alone is a number that is not fitted.
  template <class Q>
  void range(std::string_view key, FitRange<Q>& range) {
    table(key, [&range](TableReader& inner) {
      inner.value("start", range.start);
      inner.limits(range);
    });
  }
  /// { low = 0.5, high = 2 } of a number whose start is given elsewhere.
  template <class Q>
  void bounds(std::string_view key, FitRange<Q>& range) {
    table(key, [&range](TableReader& inner) {
      inner.value("low", range.low);
      inner.value("high", range.high);
    });
  }
  /// A table inside of this one; below the root it names its source.
  template <class F>
  void table(std::string_view key, F read) {
    const Toml* node = required(key);
    if (!node) return;
    if (node->kind != Toml::Kind::table) return wrong_kind(*node, key, Toml::Kind::table);
    TableReader inner(document_, *node, join_path(key));
    if (path_.empty()) inner.source();
    read(inner);
    inner.finish();
  }
  /// [[key]]: a list of tables.
  template <class F>
  void tables(std::string_view key, F read) {
    const Toml* node = required(key);
    if (!node) return;
    if (node->kind != Toml::Kind::array) return wrong_kind(*node, key, Toml::Kind::array);
    for (const Toml& item : node->items) {
      if (item.kind != Toml::Kind::table) return wrong_kind(item, key, Toml::Kind::table);
      TableReader inner(document_, item, join_path(key));
      inner.source();
      read(inner);
      inner.finish();
    }
  }
  /// Calls `read` with each key of a table and a reader of it.
  template <class F>
  void members(std::string_view key, F read) {
    table(key, [&](TableReader& inner) {
      for (const auto& [name, node] : inner.table_.members) read(name, inner);
    });
  }

  /// Keys that were never read are faults.
  void finish();
  void fault(std::string_view key, std::string what, std::string hint = "");

 private:
  const Toml* find(std::string_view key);
  const Toml* required(std::string_view key);
  std::string join_path(std::string_view key) const;
  void source();
  void wrong_kind(const Toml& node, std::string_view key, Toml::Kind wanted);
  void fault_at(const Toml& node, std::string_view key, std::string what, std::string hint);
  template <class Q>
  void quantity(std::string_view key, Q& value, std::string_view example);
  template <class Q>
  void limits(FitRange<Q>& range) {
    if (has("low") || has("high")) {
      value("low", range.low);
      value("high", range.high);
      if (!(Q{} < range.low && range.low <= range.start && range.start <= range.high))
        fault("low", "bounds lie above 0 and on both sides of the start");
    }
    if (has("pull")) value("pull", range.pull);
  }

  TableDocument& document_;
  const Toml& table_;
  std::string path_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace assay::estimate
