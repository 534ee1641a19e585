#include "assay/ask/verbs/verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::verbs {

/// The namespaces of all verbs, in the order of help.
#define ASSAY_VERBS(each)                                                                                              \
  each(chips) each(models) each(clusters) each(software) each(roofline_verb) each(systolic) each(transfer) each(shard) \
      each(collective_verb) each(layer) each(train) each(serve) each(scaling) each(solve) each(validate_verb)          \
          each(measure_verb) each(profile) each(run) each(sweep_verb) each(book)
#define ASSAY_DECLARE_VERB(name) \
  namespace name {               \
  VerbSpec verb();               \
  }
#define ASSAY_CALL_VERB(name) name::verb(),

ASSAY_VERBS(ASSAY_DECLARE_VERB)

std::span<const VerbSpec> verbs() {
  static const std::vector<VerbSpec> all = {ASSAY_VERBS(ASSAY_CALL_VERB)};
  return all;
}

std::span<const OptionSpec> common_options() {
  static const std::vector<OptionSpec> all = {
      OptionSpec{"format", "FORMAT", "table, tree, json, csv, md or svg", false, "table|tree|json|csv|md|svg"}
          .for_terminal(),
      OptionSpec{"output", "FILE", "write to FILE; its extension selects the format"}.for_terminal(),
      OptionSpec{"all", "", "show every result as a table instead of one screen"}.for_terminal(),
      {"explain", "", "show how the result is derived, three levels deep; =all shows every level, =PATH one part",
       false, "", "PATH"},
      OptionSpec{"color", "WHEN", "auto, always or never", false, "auto|always|never"}.for_terminal(),
      OptionSpec{"quiet", "", "results only: no headline, no notes (also -q)"}.for_terminal(),
      {"config", "FILE", "read options from a TOML file; the command line takes precedence"},
      {"catalogue", "DIR|JSON",
       "overlay the built-in catalogue with a directory of files, or with files as JSON: {\"chips/mine\": {\"base\": "
       "\"h100-sxm\", ...}}"},
      {"without-fold", "N",
       "use the numbers that were fitted without this fifth of the measurements, as `assay validate` does", false,
       "0|1|2|3|4"},
      OptionSpec{"help", "", "show help"}.for_terminal(),
  };
  return all;
}

Result<std::vector<hardware::Override>> overrides_of(const Request& request) {
  std::vector<hardware::Override> changes;
  for (const std::string& text : request.values("set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return fail("--set", fmt::format("{} is not KEY=VALUE", in_quotes(text)),
                  "e.g. --set memory.hbm.bandwidth=1.23TB/s", Error::Kind::usage);
    changes.push_back({std::string(trim(std::string_view(text).substr(0, equals))),
                       std::string(trim(std::string_view(text).substr(equals + 1)))});
  }
  return changes;
}

bool sets_efficiency(const Request& request) {
  const auto sets = request.values("set");
  return std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("efficiency."); });
}

Result<hardware::Cluster> cluster_of(const Request& request, const Context& context) {
  const auto on = request.value("on");
  if (!on)
    return fail(std::string(request.verb().name), "--on is missing", "name a chip or a cluster, e.g. --on tpu-v5e",
                Error::Kind::usage);
  ASSAY_TRY(overrides, overrides_of(request));
  return hardware::parse_cluster(*on, context.catalogue, "--on", overrides);
}

}  // namespace assay::verbs
