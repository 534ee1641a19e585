// An answer as one page that needs nothing else: its screen, its pictures, and all of its lists as tables that sort and
// search.
#pragma once
#include <string>

#include "assay/ask/report/response.h"

namespace assay::report {

std::string render_html(const Response& response);

}  // namespace assay::report
