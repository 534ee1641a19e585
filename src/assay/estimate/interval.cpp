#include "assay/estimate/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "assay/base/text.h"

namespace assay::estimate {
namespace {

Error fault(std::string_view file, const Toml& node, std::string_view key, std::string what) {
  return {Error::Kind::input,
          fmt::format("{}:{}:{}: {}", file, node.line, node.column, key),
          std::move(what),
          "`assay validate --fit` writes these tables",
          {}};
}

std::optional<double> number_of(const Toml* node) {
  if (!node || (node->kind != Toml::Kind::number && node->kind != Toml::Kind::integer)) return std::nullopt;
  return node->number;
}

Result<IntervalClass> read_class(const Toml& table, const std::string& key, std::string_view file) {
  IntervalClass out;
  const Toml* name = table.find("class");
  if (!name || name->kind != Toml::Kind::text)
    return tl::unexpected(fault(file, table, key + ".class", "expected text"));
  out.name = name->text;
  const auto spread = number_of(table.find("spread")), rows = number_of(table.find("rows")),
             groups = number_of(table.find("groups"));
  if (!spread || !(*spread >= 0.0))
    return tl::unexpected(fault(file, table, key + ".spread", "expected a number from 0 up"));
  if (!rows || !groups) return tl::unexpected(fault(file, table, key + ".rows", "expected counts of rows and groups"));
  out.spread = *spread;
  out.rows = std::llround(*rows);
  out.groups = std::llround(*groups);
  if (const Toml* seen = table.find("seen"))
    for (const auto& [what, range] : seen->members) {
      if (what == "hardware") {
        for (const Toml& item : range.items) {
          if (item.kind != Toml::Kind::text)
            return tl::unexpected(fault(file, item, key + ".seen.hardware", "expected names of architectures"));
          out.hardware.push_back(item.text);
        }
        continue;
      }
      if (range.items.size() != 2 || !number_of(&range.items[0]) || !number_of(&range.items[1]))
        return tl::unexpected(fault(file, range, key + ".seen." + what, "expected the least and the largest"));
      out.seen.push_back({what, range.items[0].number, range.items[1].number});
    }
  return out;
}

}  // namespace

std::vector<std::string> IntervalClass::beyond(std::span<const Coordinate> at, std::string_view architecture) const {
  std::vector<std::string> out;
  if (std::find(hardware.begin(), hardware.end(), architecture) == hardware.end()) out.emplace_back("hardware");
  for (const Coordinate& one : at)
    for (const Range& range : seen)
      if (range.name == one.name && (one.value < range.low || one.value > range.high)) out.push_back(one.name);
  return out;
}

double residual_spread(std::vector<Residual> residuals, double coverage) {
  std::map<std::string, double> sizes;
  for (const Residual& one : residuals) sizes[one.group] += 1.0;
  std::sort(residuals.begin(), residuals.end(),
            [](const Residual& a, const Residual& b) { return std::abs(a.log_ratio) < std::abs(b.log_ratio); });
  // Weights of all groups and of one future group.
  const double wanted = coverage * (static_cast<double>(sizes.size()) + 1.0);
  double sum = 0.0, widest = 0.0;
  for (const Residual& one : residuals) {
    sum += 1.0 / sizes[one.group];
    widest = std::expm1(std::abs(one.log_ratio));
    if (sum >= wanted) break;
  }
  return widest;
}

std::vector<IntervalClass> interval_classes(const std::vector<Residual>& residuals, double coverage,
                                            std::size_t fewest) {
  std::vector<std::string> order;
  for (const Residual& one : residuals)
    for (const std::string& name : one.classes)
      if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  std::vector<IntervalClass> out;
  for (const std::string& name : order) {
    std::vector<Residual> members;
    std::set<std::string> groups;
    for (const Residual& one : residuals)
      if (std::find(one.classes.begin(), one.classes.end(), name) != one.classes.end()) {
        members.push_back(one);
        groups.insert(one.group);
      }
    if (groups.size() < fewest) continue;
    IntervalClass made;
    made.name = name;
    for (const Residual& one : members) {
      if (std::find(made.hardware.begin(), made.hardware.end(), one.architecture) == made.hardware.end())
        made.hardware.push_back(one.architecture);
      for (const Coordinate& at : one.at) {
        auto range = std::find_if(made.seen.begin(), made.seen.end(), [&](const auto& r) { return r.name == at.name; });
        if (range == made.seen.end()) range = made.seen.insert(range, {at.name, at.value, at.value});
        range->low = std::min(range->low, at.value);
        range->high = std::max(range->high, at.value);
      }
    }
    made.rows = static_cast<std::int64_t>(members.size());
    made.groups = static_cast<std::int64_t>(groups.size());
    made.spread = residual_spread(std::move(members), coverage);
    out.push_back(std::move(made));
  }
  return out;
}

const IntervalClass* interval_of(const std::vector<IntervalClass>& classes, std::span<const std::string> names) {
  for (const std::string& name : names)
    for (const IntervalClass& one : classes)
      if (one.name == name) return &one;
  return nullptr;
}

Result<std::vector<IntervalClass>> read_intervals(const Toml& root, std::string_view key, std::string_view file) {
  std::vector<IntervalClass> out;
  const Toml* tables = root.find(key);
  if (!tables) return out;
  for (const auto& [name, table] : tables->members) {
    ASSAY_TRY(one, read_class(table, fmt::format("{}.{}", key, name), file));
    out.push_back(std::move(one));
  }
  return out;
}

std::string intervals_text(const std::vector<IntervalClass>& classes, std::string_view key, std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const IntervalClass& one = classes[i];
    text += fmt::format("\n[{}.{}]\nsource = \"{}\"\nclass = \"{}\"\nspread = {:.3g}\nrows = {}\ngroups = {}\n", key,
                        i + 1, source, one.name, one.spread, one.rows, one.groups);
    text += "seen = { hardware = [";
    for (std::size_t k = 0; k < one.hardware.size(); ++k)
      text += fmt::format("{}\"{}\"", k ? ", " : "", one.hardware[k]);
    text += "]";
    for (const IntervalClass::Range& range : one.seen)
      text += fmt::format(", {} = [{:.4g}, {:.4g}]", range.name, range.low, range.high);
    text += " }\n";
  }
  return text;
}

}  // namespace assay::estimate
