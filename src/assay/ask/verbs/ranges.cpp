#include "assay/ask/verbs/ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::verbs {

Result<double> parse_varied_count(std::string_view text, std::string_view where) {
  ASSAY_TRY(count, parse_count(text, where));
  return static_cast<double>(count);
}

Result<std::optional<Variation>> read_variation(const Request& request, std::span<const VariedNumber> axes) {
  constexpr std::size_t most = 256;
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
    ASSAY_TRY(to, axis->parse(trim(values.substr(dots + 2)), "--vary"));
    if (!(from > 0.0) || from > to)
      return fail("--vary", fmt::format("{} does not go up from a number above 0", in_quotes(values)),
                  "put the smaller end first", Error::Kind::usage);
    for (double at = from; at < to; at *= 2.0) variation.values.push_back(at);
    variation.values.push_back(to);
  } else {
    for (const std::string& part : split(values, ',')) {
      ASSAY_TRY(value, axis->parse(trim(part), "--vary"));
      variation.values.push_back(value);
    }
  }
  if (variation.values.size() > most)
    return fail("--vary", fmt::format("{} points, and at most {} are asked for", variation.values.size(), most),
                "give a shorter range, or a list", Error::Kind::usage);
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

Result<ClusterRange> parse_cluster_range(std::string_view text, std::string_view where) {
  constexpr std::size_t most_clusters = 512;
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
    for (std::int64_t n : sizes) out.clusters.push_back(fmt::format("{}:{}", one.substr(0, colon), n));
    out.counted.resize(out.clusters.size(), true);
  }
  if (out.clusters.size() > most_clusters)
    return fail(std::string(where), fmt::format("more than {} clusters", most_clusters),
                "A..B doubles; use a larger step in A..B:STEP", Error::Kind::usage);
  return out;
}

}  // namespace assay::verbs
