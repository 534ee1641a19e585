#include "assay/verbs/option_values.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay::verbs {

Result<void> read_count(const Request& request, std::string_view option, std::optional<std::int64_t>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(count, parse_count(*text, fmt::format("--{}", option)));
  out = count;
  return {};
}

Result<void> read_time(const Request& request, std::string_view option, std::optional<double>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(time, parse_as<Seconds>(*text, fmt::format("--{}", option)));
  if (!(time > Seconds(0))) return fail(fmt::format("--{}", option), "a time must be positive", "e.g. 50ms");
  out = time.value();
  return {};
}

Result<void> read_share(const Request& request, std::string_view option, double& out, bool one_allowed) {
  const auto text = request.value(option);
  if (!text) return {};
  const auto share = parse_number(*text);
  if (!share || *share < 0.0 || *share > 1.0 || (!one_allowed && *share == 1.0))
    return fail(fmt::format("--{}", option),
                fmt::format("{} is not a share from 0 to {}1", in_quotes(*text), one_allowed ? "" : "below "),
                "e.g. 0.5");
  out = *share;
  return {};
}

Result<void> read_dtype(const Request& request, std::string_view option, Dtype& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(dtype, parse_dtype(*text, fmt::format("--{}", option)));
  out = dtype;
  return {};
}

}  // namespace assay::verbs
