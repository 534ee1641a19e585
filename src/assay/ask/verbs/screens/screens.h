// The screens of verbs whose answers are short: what matters of their results, and in which form.
#pragma once
#include <optional>

#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"

namespace assay::verbs::screens {

using Answer = report::Response;

// Nothing where a table of all results is short enough.
std::optional<report::Screen> chips(const Request& request, const Answer& answer);
std::optional<report::Screen> clusters(const Request& request, const Answer& answer);
std::optional<report::Screen> models(const Request& request, const Answer& answer);
std::optional<report::Screen> software(const Request& request, const Answer& answer);
std::optional<report::Screen> roofline(const Request& request, const Answer& answer);
std::optional<report::Screen> systolic(const Request& request, const Answer& answer);
std::optional<report::Screen> transfer(const Request& request, const Answer& answer);
std::optional<report::Screen> collective(const Request& request, const Answer& answer);
std::optional<report::Screen> shard(const Request& request, const Answer& answer);
std::optional<report::Screen> layer(const Request& request, const Answer& answer);
std::optional<report::Screen> scaling(const Request& request, const Answer& answer);
std::optional<report::Screen> solve(const Request& request, const Answer& answer);
std::optional<report::Screen> validate(const Request& request, const Answer& answer);
std::optional<report::Screen> book(const Request& request, const Answer& answer);

}  // namespace assay::verbs::screens
