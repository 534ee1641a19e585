#include "assay/ask/verbs/ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/hardware/cluster.h"

namespace assay::verbs {

Result<double> parse_varied_count(std::string_view text, std::string_view where) {
  ASSAY_TRY(count, parse_count(text, where));
  return static_cast<double>(count);
}

Result<std::optional<Variation>> read_variation(const Request& request, std::span<const VariedNumber> axes) {
  constexpr std::size_t most = 4096;
  const auto text = request.value("vary");
  if (!text) return std::optional<Variation>();
  const std::size_t equals = text->find('=');
  const std::string name(trim(std::string_view(*text).substr(0, equals)));
  const VariedNumber* axis = nullptr;
  std::vector<std::string> examples;
  for (const VariedNumber& one : axes) {
    if (one.name == name) axis = &one;
    examples.push_back(fmt::format("{}={}", one.name, one.example));
  }
  if (!axis || equals == std::string::npos)
    return fail("--vary", fmt::format("{} is not a sweep", in_quotes(*text)), "e.g. " + join(examples, " or "),
                Error::Kind::usage);
  Variation variation{name, {}};
  const std::string_view values = std::string_view(*text).substr(equals + 1);
  if (const std::size_t dots = values.find(".."); dots != std::string_view::npos) {
    ASSAY_TRY(from, axis->parse(trim(values.substr(0, dots)), "--vary"));
    const std::size_t colon = values.find(':', dots);
    ASSAY_TRY(to, axis->parse(trim(values.substr(dots + 2, colon - std::min(colon, dots + 2))), "--vary"));
    double step = 0;
    if (colon != std::string_view::npos) ASSAY_SET(step, axis->parse(trim(values.substr(colon + 1)), "--vary"));
    if (!(from > 0.0) || from > to)
      return fail("--vary", fmt::format("{} does not go up from a number above 0", in_quotes(values)),
                  "put the smaller end first", Error::Kind::usage);
    for (double at = from; at <= to && variation.values.size() <= most; at += step > 0.0 ? step : at)
      variation.values.push_back(at);
    if (step == 0.0 && variation.values.back() != to) variation.values.push_back(to);
  } else {
    for (const std::string& part : split(values, ',')) {
      ASSAY_TRY(value, axis->parse(trim(part), "--vary"));
      variation.values.push_back(value);
    }
  }
  if (variation.values.size() > most)
    return fail("--vary", fmt::format("more than {} points", most), "give a shorter range, a larger step, or a list",
                Error::Kind::usage);
  return std::optional(std::move(variation));
}

Result<std::vector<std::int64_t>> counts_of_range(std::string_view text, std::string_view where, std::size_t most) {
  const std::size_t dots = text.find("..");
  const std::string_view rest = text.substr(dots + 2);
  const std::size_t colon = rest.find(':');
  ASSAY_TRY(from, parse_count(text.substr(0, dots), where));
  ASSAY_TRY(to, parse_count(rest.substr(0, colon), where));
  std::int64_t step = 0;
  if (colon != std::string_view::npos) ASSAY_SET(step, parse_count(rest.substr(colon + 1), where));
  if (from > to)
    return fail(std::string(where), fmt::format("{} is above {}", from, to), "put the smaller end first",
                Error::Kind::usage);
  std::vector<std::int64_t> out;
  for (std::int64_t n = from; n <= to && out.size() <= most; n += step > 0 ? step : n) out.push_back(n);
  if (step == 0 && out.back() != to) out.push_back(to);
  return out;
}

namespace {

/// "h100-sxm:8" as its chip and its count; nothing where it is written in another way.
struct CountedChip {
  hardware::Chip chip;
  std::int64_t count;
};
std::optional<CountedChip> counted_chip(std::string_view text, const hardware::Catalogue& catalogue) {
  const auto cluster = hardware::parse_cluster(text, catalogue, "--on");
  const bool is_counted = cluster && cluster->slices == 1 && text.find(':') != std::string_view::npos;
  return is_counted ? std::optional(CountedChip{cluster->chip, cluster->chips()}) : std::nullopt;
}

}  // namespace

Result<ClusterRange> parse_cluster_range(std::string_view text, std::string_view where,
                                         const hardware::Catalogue& catalogue) {
  constexpr std::size_t most_clusters = 512, few = 16;
  ClusterRange out;
  for (const std::string& part : split(text, ',')) {
    const std::string one(trim(part));
    // File paths may contain "..": a range is numbers after the chip.
    const std::size_t dots = one.find("..");
    const std::size_t colon = one.find(':');
    if (dots == std::string::npos || colon == std::string::npos || colon > dots) {
      out.clusters.push_back(one);
      out.counted.push_back(false);
      continue;
    }
    ASSAY_TRY(sizes, counts_of_range(std::string_view(one).substr(colon + 1), where, most_clusters));
    const bool steps = one.find(':', dots) != std::string::npos;
    const auto first = counted_chip(fmt::format("{}:{}", one.substr(0, colon), sizes.front()), catalogue);
    if (first && !steps) {
      std::vector<std::int64_t> all = hardware::cluster_sizes(first->chip, sizes.front(), sizes.back(), few + 1);
      const bool is_coarse = all.size() > few;
      out.coarse |= is_coarse;
      // The ends are tried as they are given.
      if (all.empty() || all.front() != sizes.front()) all.insert(all.begin(), sizes.front());
      if (all.back() != sizes.back()) all.push_back(sizes.back());
      if (!is_coarse) sizes = std::move(all);
    }
    for (std::int64_t n : sizes) out.clusters.push_back(fmt::format("{}:{}", one.substr(0, colon), n));
    out.counted.resize(out.clusters.size(), true);
  }
  if (out.clusters.size() > most_clusters)
    return fail(std::string(where), fmt::format("more than {} clusters", most_clusters),
                "A..B doubles where it has many counts; use a larger step in A..B:STEP", Error::Kind::usage);
  return out;
}

std::string finer_range(const ClusterRange& range, std::string_view chosen, const hardware::Catalogue& catalogue) {
  constexpr std::size_t most_between = 8;
  const std::size_t at = static_cast<std::size_t>(std::find(range.clusters.begin(), range.clusters.end(), chosen) -
                                                  range.clusters.begin());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < range.clusters.size(); ++i) {
    out.push_back(range.clusters[i]);
    if ((i != at && i + 1 != at) || i + 1 == range.clusters.size() || !range.counted[i] || !range.counted[i + 1])
      continue;
    const auto from = counted_chip(range.clusters[i], catalogue), to = counted_chip(range.clusters[i + 1], catalogue);
    if (!from || !to || from->chip.id != to->chip.id) continue;
    const std::vector<std::int64_t> between =
        hardware::cluster_sizes(from->chip, from->count + 1, to->count - 1, static_cast<std::size_t>(to->count));
    const std::size_t step = between.size() / most_between + 1;
    for (std::size_t k = step - 1; k < between.size(); k += step)
      out.push_back(fmt::format("{}:{}", range.clusters[i].substr(0, range.clusters[i].find(':')), between[k]));
  }
  return join(out, ",");
}

}  // namespace assay::verbs
