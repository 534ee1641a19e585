#include "assay/lab/fit/bounds.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "assay/base/text.h"
#include "assay/base/toml.h"

namespace assay::validate {
namespace {

/// Where the range of numbers stands. `*` is any key, `+` one that the range's place repeats, in order. The first place
/// of a number counts.
struct RangePlace {
  std::string_view file, number, ranges, range;
};
constexpr std::string_view of_kernels = "fits/kernels.toml", of_training = "fits/training.toml",
                           of_serving = "fits/serving.toml", of_family = "families/+.toml";
constexpr std::string_view training_file = "steps/training.toml", serving_file = "steps/serving.toml";
constexpr RangePlace range_places[] = {
    {"calibration/", "matmul/share/*", of_kernels, "matmul/share"},
    {"calibration/", "matmul/+", of_kernels, "matmul/+"},
    {"calibration/", "pointwise/+", of_kernels, "pointwise/+"},
    {"calibration/", "attention/*/+/+", of_kernels, "attention/+/+"},
    {"calibration/", "collective/roce/latency", of_kernels, "across/latency"},
    {"calibration/", "collective/efa/latency", of_kernels, "across/latency"},
    {"calibration/", "collective/tcpxo/latency", of_kernels, "across/latency"},
    {"calibration/", "collective/infiniband/latency", of_kernels, "across/latency"},
    {"calibration/", "collective/chunk", of_kernels, "across/chunk"},
    {"calibration/", "collective/in_network", of_kernels, "collective/in_network"},
    {"calibration/", "collective/*/+", of_kernels, "collective/+"},
    {"validation/harness.toml", "harness/*/quantise/*/*/+", of_kernels, "quantise/+"},
    {"validation/harness.toml", "harness/*/launch/matmul", of_kernels, "measuring/product_launch"},
    {"validation/harness.toml", "harness/*/launch/collective", of_kernels, "measuring/collective_launch"},
    {"validation/harness.toml", "harness/*/launch/*", of_kernels, "measuring/kernel_launch"},
    {"validation/harness.toml", "harness/*/+", of_kernels, "measuring/+"},
    {training_file, "products/slowdown/+", of_family, "training/products"},
    {training_file, "pointwise/slowdown/+", of_family, "training/pointwise"},
    {training_file, "+/+/+", of_training, "+/+/+"},
    {training_file, "+/+", of_training, "+/+"},
    {serving_file, "products/slowdown/+", of_family, "serving/products"},
    {serving_file, "attention/decode/+", of_family, "serving/decode"},
    {serving_file, "attention/item/+", of_family, "serving/item"},
    {serving_file, "attention/vector_item/+", of_family, "serving/vector_item"},
    {serving_file, "collectives/meet/+", of_family, "serving/meet"},
    {serving_file, "+/+/+", of_serving, "+/+/+"},
    {serving_file, "+/+", of_serving, "+/+"}};

using Keys = std::vector<std::string>;

/// What `+` stands for in a pattern; nothing where the keys do not match it.
std::optional<Keys> matched(std::string_view pattern, const Keys& keys) {
  const Keys parts = split(pattern, '/');
  if (parts.size() != keys.size()) return std::nullopt;
  Keys kept;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "+")
      kept.push_back(keys[i]);
    else if (parts[i] != "*" && parts[i] != keys[i])
      return std::nullopt;
  }
  return kept;
}

/// The pattern with each `+` as the next of the keys.
std::string filled_in(std::string_view pattern, Keys& kept) {
  std::string out;
  for (const char c : pattern) {
    if (c != '+') {
      out += c;
      continue;
    }
    out += kept.front();
    kept.erase(kept.begin());
  }
  return out;
}

/// As the file writes it; empty where it is no number.
std::string text_of(const Toml& node) {
  if (node.kind == Toml::Kind::text) return node.text;
  if (node.kind == Toml::Kind::integer) return fmt::format("{}", node.integer);
  return node.kind == Toml::Kind::number ? fmt::format("{:.6g}", node.number) : "";
}
std::optional<double> value_of(std::string_view text) {
  if (const auto number = parse_number(text)) return number;
  const auto quantity = parse_quantity(text, "");
  return quantity ? std::optional(quantity->value) : std::nullopt;
}

/// The tables of a file.
using RangeFiles = std::map<std::string, Toml>;
Result<const Toml*> range_at(const hardware::Catalogue& catalogue, RangeFiles& read, const std::string& file,
                             std::string_view path) {
  if (!read.contains(file))
    for (const auto& [name, text] : catalogue.files(file)) {
      ASSAY_TRY(document, parse_toml(text, name));
      read.emplace(file, std::move(document));
    }
  const auto known = read.find(file);
  const Toml* node = known == read.end() ? nullptr : &known->second;
  for (const std::string& key : split(path, '/')) node = node ? node->find(key) : nullptr;
  return node;
}

/// The bound that a number is at; empty where it is at none.
std::string bound_of(const RangedNumber& number, const Toml& range) {
  const auto value = value_of(number.value), low = value_of(number.low), high = value_of(number.high);
  if (!value || !low || !high || !(*value > 0.0)) return "";
  const Toml* start = range.find("start");
  if (start && value_of(text_of(*start)) == value) return "";
  constexpr double near = 0.001;
  const double reach = near * std::log(*high / *low);
  if (std::abs(std::log(*value / *low)) < reach) return number.low;
  return std::abs(std::log(*value / *high)) < reach ? number.high : "";
}

class FileNumbers {
 public:
  FileNumbers(const hardware::Catalogue& catalogue, RangeFiles& ranges, std::string file,
              std::vector<RangedNumber>& out)
      : catalogue_(catalogue), ranges_(ranges), file_(std::move(file)), out_(out) {}

  Result<void> add(const Toml& table, const Keys& around) {
    const Toml* source = table.find("source");
    if (source && source->text == "assumed") return {};
    for (const auto& [key, node] : table.members) {
      Keys keys = around;
      keys.push_back(key);
      if (node.kind == Toml::Kind::table)
        ASSAY_CHECK(add(node, keys));
      else if (!text_of(node).empty())
        ASSAY_CHECK(add_number(node, keys));
    }
    return {};
  }

 private:
  Result<void> add_number(const Toml& node, const Keys& keys) {
    for (const RangePlace& place : range_places) {
      if (!file_.starts_with(place.file)) continue;
      std::optional<Keys> kept = matched(place.number, keys);
      if (!kept) continue;
      const std::string file = filled_in(place.ranges, *kept), path = filled_in(place.range, *kept);
      ASSAY_TRY(range, range_at(catalogue_, ranges_, file, path));
      if (!range || !range->find("low") || !range->find("high")) return {};
      RangedNumber number{file_, join(keys, "."), file + ": " + join(split(path, '/'), "."), text_of(node), "", "", ""};
      number.low = text_of(*range->find("low"));
      number.high = text_of(*range->find("high"));
      number.bound = bound_of(number, *range);
      out_.push_back(std::move(number));
      return {};
    }
    return {};
  }

  const hardware::Catalogue& catalogue_;
  RangeFiles& ranges_;
  std::string file_;
  std::vector<RangedNumber>& out_;
};

}  // namespace

Result<std::vector<RangedNumber>> ranged_numbers(const hardware::Catalogue& catalogue) {
  std::vector<RangedNumber> numbers;
  RangeFiles ranges;
  for (const std::string_view fitted :
       {std::string_view("calibration/"), std::string_view("validation/harness.toml"), training_file, serving_file})
    for (const auto& [file, text] : catalogue.files(fitted)) {
      ASSAY_TRY(document, parse_toml(text, file));
      ASSAY_CHECK(FileNumbers(catalogue, ranges, file, numbers).add(document, {}));
    }
  return numbers;
}

Result<std::vector<RangedNumber>> numbers_at_bounds(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(numbers, ranged_numbers(catalogue));
  std::erase_if(numbers, [](const RangedNumber& number) { return number.bound.empty(); });
  return numbers;
}

}  // namespace assay::validate
