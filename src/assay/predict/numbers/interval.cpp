#include "assay/predict/numbers/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::numbers {
std::vector<std::string> IntervalClass::beyond(std::span<const Coordinate> at, std::string_view architecture) const {
  std::vector<std::string> out;
  if (std::find(hardware.begin(), hardware.end(), architecture) == hardware.end()) out.emplace_back("hardware");
  for (const Coordinate& one : at)
    for (const Range& range : seen)
      if (range.name == one.name && (one.value < range.low || one.value > range.high)) out.push_back(one.name);
  return out;
}

double residual_spread(std::vector<Residual> residuals, double coverage) {
  const auto unit_of = [](const Residual& one) -> const std::string& {
    return one.unit.empty() ? one.group : one.unit;
  };
  std::map<std::string, std::map<std::string, double>> units;
  for (const Residual& one : residuals) units[unit_of(one)][one.group] += 1.0;
  std::sort(residuals.begin(), residuals.end(),
            [](const Residual& a, const Residual& b) { return std::abs(a.log_ratio) < std::abs(b.log_ratio); });
  // One more group or unit may lie outside of all. Of few units no more than halfway from `coverage` to all is asked
  // for.
  const auto n = static_cast<double>(units.size());
  const bool by_unit =
      std::any_of(residuals.begin(), residuals.end(), [](const Residual& r) { return !r.unit.empty(); });
  const double wanted = by_unit ? std::min(coverage * (n + 1.0), 0.5 * (1.0 + coverage) * n) : coverage * (n + 1.0);
  double sum = 0.0, widest = 0.0;
  for (const Residual& one : residuals) {
    const std::map<std::string, double>& groups = units[unit_of(one)];
    sum += 1.0 / groups.at(one.group) / static_cast<double>(groups.size());
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

bool UnseenIntervals::has_rows_of(std::string_view name) const {
  return std::find(known.begin(), known.end(), name) != known.end();
}

std::string unseen_file(std::string_view set, std::string_view what) {
  return fmt::format("steps/unseen/{}-{}.toml", set, what);
}

Result<UnseenIntervals> unseen_intervals(const hardware::Catalogue& catalogue, std::string_view set,
                                         std::string_view what) {
  UnseenIntervals unseen{.file = {}, .what = std::string(what), .known = {}, .on_top = false, .classes = {}};
  for (const auto& [path, text] : catalogue.files(unseen_file(set, what))) {
    RecordFile file{.name = path};
    ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
      reader.sources();
      reader.table("rows", [&](RecordReader& inner) {
        if (inner.has("on_top"))
          inner.flag("on_top", unseen.on_top);
        else
          inner.texts("of", unseen.known);
      });
      read_intervals(reader, "interval", unseen.classes);
    }));
    unseen.file = path;
  }
  return unseen;
}

std::string unseen_text(const UnseenIntervals& unseen, std::string_view title, std::string_view command) {
  return fmt::format(
             "# Intervals for a {} without a row of its own (docs/validation.md).\n[source.fit]\ntitle = \"{}\"\n"
             "command = \"{}\"\n\n[rows]\nsource = \"fit\"\nof = [\"{}\"]\n",
             unseen.what, title, command, join(unseen.known, "\", \"")) +
         intervals_text(unseen.classes, "interval", "fit");
}

std::optional<IntervalBasis> interval_basis(const std::vector<IntervalClass>& classes,
                                            std::span<const std::string> names, std::string_view file,
                                            std::span<const AskedAbout> about) {
  const IntervalClass* own = interval_of(classes, names);
  if (!own) return std::nullopt;
  IntervalBasis basis{*own, std::string(file)};
  for (const AskedAbout& one : about) {
    if (one.unseen->file.empty() || one.name.empty() || one.unseen->has_rows_of(one.name)) continue;
    const IntervalClass* wider = interval_of(one.unseen->classes, names);
    if (wider && one.unseen->on_top) {
      basis.of.spread = std::expm1(std::hypot(std::log1p(basis.of.spread), std::log1p(wider->spread)));
      basis.file += fmt::format(" and {}", one.unseen->file);
      basis.beyond.push_back(one.unseen->what);
      continue;
    }
    if (!wider || wider->spread <= basis.of.spread) continue;
    basis = {*wider, fmt::format("{} (no measured row is of this {})", one.unseen->file, one.unseen->what)};
    basis.of.hardware = own->hardware;
    basis.of.seen = own->seen;
  }
  return basis;
}

void read_intervals(RecordReader& root, std::string_view key, std::vector<IntervalClass>& classes) {
  root.each_table(key, [&](const std::string&, RecordReader& reader) {
    IntervalClass& one = classes.emplace_back();
    reader.text("class", one.name);
    reader.number("spread", one.spread);
    reader.count("rows", one.rows);
    reader.count("groups", one.groups);
    reader.each_key("seen", [&](const std::string& name, RecordReader& seen) {
      if (name == "hardware") return seen.texts(name, one.hardware);
      IntervalClass::Range& range = one.seen.emplace_back();
      range.name = name;
      seen.span(name, range.low, range.high);
    });
  });
}

std::string intervals_text(const std::vector<IntervalClass>& classes, std::string_view key, std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const IntervalClass& one = classes[i];
    text += fmt::format("\n[{}.{}]\nsource = \"{}\"\nclass = \"{}\"\nspread = {:.3g}\nrows = {}\ngroups = {}\n", key,
                        i + 1, source, one.name, one.spread, one.rows, one.groups);
    std::vector<std::string> seen;
    if (!one.hardware.empty()) seen.push_back(fmt::format("hardware = [\"{}\"]", join(one.hardware, "\", \"")));
    for (const IntervalClass::Range& range : one.seen)
      seen.push_back(fmt::format("{} = [{:.4g}, {:.4g}]", range.name, range.low, range.high));
    text += fmt::format("seen = {{ {} }}\n", join(seen, ", "));
  }
  return text;
}

}  // namespace assay::numbers
