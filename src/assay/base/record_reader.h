// The one reader of data files. A file is read field by field; every fault is kept with its place, and a key that no
// field asked for is a fault, too.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/explain.h"
#include "assay/base/fit_range.h"
#include "assay/base/result.h"
#include "assay/base/toml.h"
#include "assay/base/units.h"

namespace assay {

/// The source of a number set by --set, which has no line in the file; others have "FILE:LINE (KEY)".
inline constexpr std::string_view override_source = "--set";
/// The key of numbers that a user's own file states without a source.
inline constexpr std::string_view own_source = "your own";

/// What the tables of one file share.
struct RecordFile {
  std::string name;
  std::string keys_hint = {};       ///< where the keys are listed; the hint of a missing one
  bool sourced_tables = true;       ///< a table below the root names the source of its numbers; else each number does
  bool own = false;                 ///< a user's own file: its numbers may have no source
  double largest = 1e6;             ///< upper limit of numbers without a unit
  std::set<std::string> sources{};  ///< keys of the file's [source.KEY] tables
  /// Where the numbers of tables with a source come from, by table and by key: "FILE:LINE (KEY)".
  SourceTable origins{};
  std::vector<Error> faults{};
};

/// One table. A field that is absent or wrong leaves its value alone.
class RecordReader {
 public:
  using Names = std::span<const std::string_view>;
  RecordReader(RecordFile& file, const Toml& table, std::string path = {}, std::string source = {})
      : file_(file), table_(table), path_(std::move(path)), source_(std::move(source)) {}

  bool has(std::string_view key) { return find(key) != nullptr; }
  /// The source of this table's numbers, and "FILE:LINE (KEY)"; the key is empty where it names none.
  const std::string& source() const { return source_; }
  std::string origin() const;
  /// Where a key of this table stands: "FILE:LINE (KEY)". Empty where the table names no source, or has no such key.
  std::string origin_of(std::string_view key) const;
  /// The value of a key, which then counts as known; nullptr if absent.
  const Toml* find(std::string_view key);
  /// The value of a key; a fault if absent.
  const Toml* required(std::string_view key);

  void text(std::string_view key, std::string& value);
  void text(std::string_view key, std::optional<std::string>& value);
  void texts(std::string_view key, std::vector<std::string>& values);
  void texts(std::string_view key, std::optional<std::vector<std::string>>& values);
  /// A table of texts with keys of the file's own. None where it is absent.
  void pairs(std::string_view key, std::vector<std::pair<std::string, std::string>>& values);
  /// One of a few words, each with what it means.
  template <class Word, std::size_t N>
  void word(std::string_view key, const std::pair<std::string_view, Word> (&words)[N], Word& value) {
    std::vector<std::string> known;
    const Toml* node = required(key);
    for (const auto& [word, meaning] : words) {
      if (node && node->kind == Toml::Kind::text && node->text == word) return void(value = meaning);
      known.emplace_back(word);
    }
    if (node) unknown_word(*node, key, known);
  }
  void date(std::string_view key, std::string& value);
  /// A boolean that keeps its default if absent.
  void flag(std::string_view key, bool& value);
  /// A whole number of at least 1.
  void count(std::string_view key, std::int64_t& value);
  void count(std::string_view key, std::optional<std::int64_t>& value);
  /// A number of at least 0.
  void number(std::string_view key, double& value);
  /// A quantity of at least 0, as a text with its unit.
  template <Dim D>
  void number(std::string_view key, Quantity<D>& value) {
    double base = value.value();
    if (const Toml* node = required(key)) plain_quantity(*node, key, D, base);
    value = Quantity<D>(base);
  }
  /// A number with the place where it was read.
  template <class T>
  void number(std::string_view key, Given<T>& value) {
    number(key, value.value);
    value.source = origin_of(key);
  }
  /// A number with its own source, or that of the nearest table around it: { value = "80 GiB", source = "datasheet" }.
  template <class T>
  void number(std::string_view key, Sourced<T>& value) {
    if (const Toml* node = required(key)) read_sourced(*node, key, value);
  }
  template <class T>
  void number(std::string_view key, std::optional<T>& value) {
    if (find(key)) number(key, value.emplace());
  }
  /// A share of an ideal rate. Links sometimes exceed their nominal rate, so slightly above 1 is allowed.
  void share(std::string_view key, double& value);
  void share(std::string_view key, Given<double>& value) {
    share(key, value.value);
    value.source = origin_of(key);
  }
  /// A table with the shares of some number formats.
  void formats(std::string_view key, std::array<double, 12>& shares);
  /// Two numbers: the least and the largest.
  void span(std::string_view key, double& low, double& high);
  /// A table with a number for each name; none for an empty name.
  template <class Values>
  void numbers(std::string_view key, Names names, Values& values) {
    inner_table(required(key), key, false, [&](RecordReader& inner) {
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!names[i].empty()) inner.number(names[i], values[i]);
    });
  }
  /// A table with a number for some of the names, those of `what`; marks them in `stated`.
  template <class T>
  void numbers_of(std::string_view key, std::string_view what, Names names, std::vector<char>& stated,
                  std::vector<T>& values) {
    inner_table(required(key), key, false, [&](RecordReader& inner) {
      inner.check_names(what, names);
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (!inner.has(names[i])) continue;
        inner.number(names[i], values[i]);
        stated[i] = 1;
      }
    });
  }
  /// Numbers that have one source.
  template <std::size_t n>
  void numbers(std::string_view key, Names names, Given<std::array<double, n>>& values) {
    numbers(key, names, values.value);
    values.source = origin_of(key);
  }
  /// { start = 1, low = 0.5, high = 2 }; `start` alone is a number that is not fitted.
  template <class Q>
  void range(std::string_view key, FitRange<Q>& range) {
    table(key, [&range](RecordReader& inner) {
      inner.number("start", range.start);
      inner.limits(range);
    });
  }
  /// { low = 0.5, high = 2 } of a number whose start is given elsewhere.
  template <class Q>
  void bounds(std::string_view key, FitRange<Q>& range) {
    table(key, [&range](RecordReader& inner) {
      inner.number("low", range.low);
      inner.number("high", range.high);
    });
  }

  /// A table inside of this one: `read(inner)`, or `read(value, inner)`.
  template <class F>
  void table(std::string_view key, F read) {
    inner_table(required(key), key, path_.empty() && file_.sourced_tables, read);
  }
  template <class T, class F>
  void table(std::string_view key, T& value, F read) {
    table(key, [&](RecordReader& inner) { read(value, inner); });
  }
  template <class F>
  void optional_table(std::string_view key, F read) {
    if (find(key)) table(key, read);
  }
  template <class T, class F>
  void optional_table(std::string_view key, T& value, F read) {
    if (find(key)) table(key, value, read);
  }
  template <class T, class F>
  void optional_table(std::string_view key, std::optional<T>& value, F read) {
    if (find(key)) table(key, value.emplace(), read);
  }
  /// [[key]]: a list of tables; empty where it is absent.
  template <class T, class F>
  void items(std::string_view key, std::vector<T>& values, F read) {
    const Toml* list = list_of_tables(key);
    if (!list) return;
    for (const Toml& item : list->items)
      inner_table(&item, key, file_.sourced_tables, [&](RecordReader& inner) { read(values.emplace_back(), inner); });
  }
  /// [key.NAME] for some of the names, in their order.
  template <class T, class F>
  void named_tables(std::string_view key, std::vector<T>& values, Names names, F read) {
    inner_table(required(key), key, false, [&](RecordReader& inner) {
      for (std::string_view name : names)
        inner.optional_table(name, [&](RecordReader& member) {
          T& value = values.emplace_back();
          value.name = name;
          read(value, member);
        });
    });
  }
  /// [key.NAME] with names of the file's own: `read(name, inner)`. None where it is absent.
  template <class F>
  void each_table(std::string_view key, F read) {
    inner_table(find(key), key, false,
                [&](RecordReader& inner) { inner.member_tables(read, path_.empty() && file_.sourced_tables); });
  }
  /// All members of this table are tables: `read(name, inner)`.
  template <class F>
  void member_tables(F read, bool need_source = false) {
    for (const auto& [name, member] : table_.members)
      inner_table(find(name), name, need_source, [&, &name_ = name](RecordReader& inner) { read(name_, inner); });
  }
  /// A table with keys of the file's own: `read(key, inner)` reads each. None where it is absent.
  template <class F>
  void each_key(std::string_view key, F read) {
    inner_table(find(key), key, false, [&](RecordReader& inner) {
      for (const auto& [name, member] : inner.table_.members) read(name, inner);
    });
  }
  /// [source.KEY] tables of the root, read first: other tables and numbers name them. `read(key, inner)`.
  template <class F>
  void sources(F read) {
    inner_table(required("source"), "source", false, [&](RecordReader& inner) {
      for (const auto& [key, member] : inner.table_.members)
        if (inner.add_source(key))
          inner.inner_table(&member, key, false, [&, &key_ = key](RecordReader& source) { read(key_, source); });
    });
  }
  /// Sources that have a title and whatever else helps to find them.
  void sources();

  /// The id of a record is the name of its file.
  void check_id(std::string_view id);
  /// Keys that were never asked for are faults.
  void finish();
  void fault(std::string_view key, std::string what, std::string hint = {});
  void fault_at(const Toml& node, std::string_view key, std::string what, std::string hint = {});

 private:
  struct SourcedParts {
    const Toml* value = nullptr;
    const Toml* also = nullptr;
    std::string source;
    bool inherited = true;
  };

  std::string join_path(std::string_view key) const;
  bool is_kind(const Toml& node, std::string_view key, Toml::Kind wanted, std::string hint = {});
  bool is_known_source(const Toml& node, std::string_view key, const std::string& source);
  bool add_source(const std::string& key);
  void read_source(bool needed);
  const Toml* list_of_tables(std::string_view key);
  void check_names(std::string_view what, Names names);
  void unknown_word(const Toml& node, std::string_view key, const std::vector<std::string>& known);
  void add_origin(const Toml& node, std::string_view key);

  template <class F>
  void inner_table(const Toml* node, std::string_view key, bool needs_source, F read) {
    if (!node || !is_kind(*node, key, Toml::Kind::table)) return;
    RecordReader inner(file_, *node, join_path(key), source_);
    inner.source_file_ = source_file_;
    const bool inside_sources = path_ == "source" || (path_.empty() && key == "source");
    if (!inside_sources) inner.read_source(needs_source);
    if (needs_source) file_.origins.add(inner.path_, inner.origin());
    read(inner);
    inner.finish();
  }
  template <class Q>
  void limits(FitRange<Q>& range) {
    if (has("low") || has("high")) {
      number("low", range.low);
      number("high", range.high);
      if (!(Q{} < range.low && range.low <= range.start && range.start <= range.high))
        fault("low", "bounds lie above 0 and on both sides of the start");
    }
    if (has("pull")) number("pull", range.pull);
  }

  void plain_number(const Toml& node, std::string_view key, double& value, double low, double high,
                    std::string_view wanted);
  void plain_quantity(const Toml& node, std::string_view key, Dim dim, double& value);
  std::optional<double> parsed_quantity(const Toml& node, const Toml& at, std::string_view key, Dim dim);

  SourcedParts parts_of(const Toml& node, std::string_view key, std::string& note);
  /// The value of an entry of `also`; nullptr, and a fault, where it is not one.
  const Toml* other_value(const Toml& item, std::string_view key);
  std::string source_of(const SourcedParts& parts, const Toml& node, std::string_view key, const std::string& note);
  template <class T>
  void read_sourced(const Toml& node, std::string_view key, Sourced<T>& value) {
    const SourcedParts parts = parts_of(node, key, value.note);
    if (parts.also)
      for (const Toml& item : parts.also->items)
        if (const Toml* number = other_value(item, key)) {
          auto& other = value.also.emplace_back();
          read_value(*number, item, key, other.value);
          other.source = item.find("source")->text;
        }
    if (parts.value) read_value(*parts.value, parts.value->line > 0 ? node : *parts.value, key, value.value);
    value.source = source_of(parts, node, key, value.note);
  }
  void positive_quantity(const Toml& node, const Toml& at, std::string_view key, Dim dim, double& value);
  template <Dim D>
  void read_value(const Toml& node, const Toml& at, std::string_view key, Quantity<D>& value) {
    double base = value.value();
    positive_quantity(node, at, key, D, base);
    value = Quantity<D>(base);
  }
  void read_value(const Toml& node, const Toml& at, std::string_view key, std::int64_t& value);
  void read_value(const Toml& node, const Toml& at, std::string_view key, double& value);
  void read_value(const Toml& node, const Toml& at, std::string_view key, bool& value);
  template <class T>
  void read_value(const Toml& node, const Toml& at, std::string_view key, std::vector<T>& values) {
    if (node.kind != Toml::Kind::array || node.items.empty() || node.items.size() > 64)
      return wrong_list(node, at, key);
    for (const Toml& item : node.items) read_value(item, at, key, values.emplace_back());
  }
  void wrong_list(const Toml& node, const Toml& at, std::string_view key);

  RecordFile& file_;
  const Toml& table_;
  std::string path_, source_;
  std::string source_file_;  ///< where the source is named, as in Toml
  std::vector<std::string> known_;
};

/// Parses a document and reads its root with `read(root)`; fails with all of its faults.
template <class F>
Result<void> read_record(std::string_view document, RecordFile& file, F read) {
  ASSAY_TRY(root, parse_toml(document, file.name));
  RecordReader reader(file, root);
  read(reader);
  reader.finish();
  return joined(std::move(file.faults));
}

}  // namespace assay
