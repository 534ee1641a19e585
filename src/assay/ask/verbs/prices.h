// What a chip costs: the options that say so, and the prices that an answer used.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/chip.h"

namespace assay::verbs {

/// What --price and --prices say; chips that are compared have prices of one provider, where one lists all of them.
Result<hardware::PriceChoice> read_prices(const Request& request, const hardware::Catalogue& catalogue);

/// Adds `prices` with each price that was used, and what a reader should know: sources and dates, chips without a
/// price, providers that are mixed. `what` the prices are for: "cost".
void add_prices(const std::vector<const hardware::Chip*>& chips, std::string_view what, report::Response& response);

/// Why a chip has no price, and what to do about it.
std::string no_price_text(const hardware::Chip& chip);

}  // namespace assay::verbs
