// Values of options that several verbs read: left as they are where the request does not give them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "assay/api/request.h"
#include "assay/base/dtype.h"

namespace assay {

Result<void> read_count(const Request& request, std::string_view option, std::optional<std::int64_t>& out);
Result<void> read_dtype(const Request& request, std::string_view option, Dtype& out);

}  // namespace assay
