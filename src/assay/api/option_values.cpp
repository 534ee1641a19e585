#include "assay/api/option_values.h"

#include <fmt/format.h>

#include "assay/base/text.h"

namespace assay {

Result<void> read_count(const Request& request, std::string_view option, std::optional<std::int64_t>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(count, parse_count(*text, fmt::format("--{}", option)));
  out = count;
  return {};
}

Result<void> read_dtype(const Request& request, std::string_view option, Dtype& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(dtype, parse_dtype(*text, fmt::format("--{}", option)));
  out = dtype;
  return {};
}

}  // namespace assay
