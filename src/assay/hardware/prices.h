// Which price of a chip an answer uses: a user's own, a provider's, or the newest of any.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/chip.h"

namespace assay::hardware {

class Catalogue;

/// What a request says about prices.
struct PriceChoice {
  std::map<std::string, Price> own;  ///< by the chip's id
  std::string provider;              ///< as the catalogue writes it; empty: any

  void apply(Chip& chip) const;
};

/// `CHIP=2.50` (USD an hour, or with its unit), added to a choice; `where` names the option in errors.
Result<void> add_own_price(PriceChoice& choice, std::string_view text, const Catalogue& catalogue,
                           std::string_view where);

/// A provider by its name or the start of it, as the catalogue writes it; the error lists those known.
Result<std::string> find_provider(std::string_view name, const Catalogue& catalogue, std::string_view where);
/// The providers of a chip's prices, in the order of its file; those of all chips, in alphabetical order.
std::vector<std::string> price_providers(const Chip& chip);
std::vector<std::string> price_providers(const Catalogue& catalogue);

/// Where a price was found, for people: the title of its source and its place.
std::string price_source(const Chip& chip, const Price& price);

}  // namespace assay::hardware
