#include "assay/ask/verbs/cluster_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::verbs {
namespace {

constexpr std::size_t most_clusters = 512;

/// Chips "8..4096" double up to and including the end; "8..64:8" takes steps.
Result<std::vector<std::int64_t>> counted(std::string_view text, std::string_view where) {
  const std::size_t dots = text.find("..");
  const std::string_view rest = text.substr(dots + 2);
  const std::size_t colon = rest.find(':');
  ASSAY_TRY(from, parse_count(text.substr(0, dots), where));
  ASSAY_TRY(to, parse_count(rest.substr(0, colon), where));
  std::int64_t step = 0;
  if (colon != std::string_view::npos) {
    ASSAY_TRY(parsed, parse_count(rest.substr(colon + 1), where));
    step = parsed;
  }
  if (from > to)
    return fail(std::string(where), fmt::format("{} is above {}", from, to), "put the smaller end first",
                Error::Kind::usage);
  std::vector<std::int64_t> out;
  for (std::int64_t n = from; n <= to && out.size() <= most_clusters; n += step > 0 ? step : n) out.push_back(n);
  if (step == 0 && out.back() != to) out.push_back(to);
  return out;
}

}  // namespace

Result<ClusterRange> parse_cluster_range(std::string_view text, std::string_view where) {
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
    ASSAY_TRY(sizes, counted(std::string_view(one).substr(colon + 1), where));
    for (std::int64_t n : sizes) out.clusters.push_back(fmt::format("{}:{}", one.substr(0, colon), n));
    out.counted.resize(out.clusters.size(), true);
  }
  if (out.clusters.size() > most_clusters)
    return fail(std::string(where), fmt::format("more than {} clusters", most_clusters),
                "A..B doubles; use a larger step in A..B:STEP", Error::Kind::usage);
  return out;
}

}  // namespace assay::verbs
