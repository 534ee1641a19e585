// What a chip costs: the options that say so, and the prices that an answer used.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/chip.h"

namespace assay::verbs {

/// Options of every verb that prints costs.
inline constexpr OptionSpec price_option{"price", "CHIP=USD", "what an hour of a chip costs you, e.g. h100-sxm=2.50",
                                         true};
inline constexpr OptionSpec prices_option{"prices", "PROVIDER", "use the list prices of this provider, e.g. AWS"};

/// What --price and --prices say.
Result<hardware::PriceChoice> read_prices(const Request& request, const hardware::Catalogue& catalogue);

/// Adds `prices` with each price that was used, and what a reader should know: sources and dates, chips without a
/// price, providers that are mixed. `what` the prices are for: "cost".
void add_prices(const std::vector<const hardware::Chip*>& chips, std::string_view what, report::Response& response);

/// Why a chip has no price, and what to do about it.
std::string no_price_text(const hardware::Chip& chip);

}  // namespace assay::verbs
