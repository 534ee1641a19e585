#include "assay/ask/verbs/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::verbs {
namespace {

/// Distinct chips, in their order.
std::vector<const hardware::Chip*> distinct(const std::vector<const hardware::Chip*>& chips) {
  std::vector<const hardware::Chip*> out;
  for (const hardware::Chip* chip : chips)
    if (std::none_of(out.begin(), out.end(), [&](const auto* known) { return known->id == chip->id; }))
      out.push_back(chip);
  return out;
}

/// To the millionth of a dollar, so that a price reads as it was written.
double hourly(const hardware::Price& price) { return std::round((price.value.value * 1_h).value() * 1e6) / 1e6; }

/// A provider that lists all of the chips, if there is one.
std::string common_provider(const std::vector<const hardware::Chip*>& chips) {
  for (const std::string& provider : hardware::price_providers(*chips.front()))
    if (std::all_of(chips.begin(), chips.end(), [&](const hardware::Chip* chip) {
          const auto known = hardware::price_providers(*chip);
          return std::find(known.begin(), known.end(), provider) != known.end();
        }))
      return provider;
  return {};
}

void note_mixture(const std::vector<const hardware::Chip*>& chips, report::Response& response) {
  std::vector<std::string> whose;
  bool mixed = false;
  const hardware::Price* first = nullptr;
  for (const hardware::Chip* chip : chips) {
    const hardware::Price* price = hardware::newest_price(*chip);
    if (!price) continue;
    if (first && price->provider != first->provider) mixed = true;
    if (!first) first = price;
    whose.push_back(fmt::format("{} for {}", price->provider, chip->id));
  }
  if (!mixed) return;
  const std::string common = common_provider(chips);
  response.notes.push_back(fmt::format(
      "prices of different providers are mixed: {}; {}", join(whose, ", "),
      common.empty() ? "no provider in the catalogue lists all of these chips, --price CHIP=USD gives your own"
                     : fmt::format("--prices '{}' has all of them", common)));
  response.important.push_back(response.notes.back());
}

}  // namespace

Result<hardware::PriceChoice> read_prices(const Request& request, const hardware::Catalogue& catalogue) {
  hardware::PriceChoice choice;
  for (const std::string& text : request.values("price"))
    ASSAY_CHECK(hardware::add_own_price(choice, text, catalogue, "--price"));
  if (const auto name = request.value("prices"))
    ASSAY_SET(choice.provider, hardware::find_provider(*name, catalogue, "--prices"));
  return choice;
}

std::string no_price_text(const hardware::Chip& chip) {
  const auto known = hardware::price_providers(chip);
  if (chip.price_provider.empty() || known.empty())
    return fmt::format("the catalogue has no hourly list price for {}; --price {}=USD gives yours", chip.id, chip.id);
  return fmt::format("{} has no list price for {} in the catalogue; {} {}, and --price {}=USD gives yours",
                     chip.price_provider, chip.id, join(known, ", "), known.size() == 1 ? "has one" : "have one",
                     chip.id);
}

void add_prices(const std::vector<const hardware::Chip*>& chips, std::string_view what, report::Response& response) {
  report::Items rows;
  const std::vector<const hardware::Chip*> each = distinct(chips);
  for (const hardware::Chip* chip : each) {
    const hardware::Price* price = hardware::newest_price(*chip);
    if (!price) {
      response.notes.push_back(fmt::format("no {}: {}", what, no_price_text(*chip)));
      continue;
    }
    const bool own = chip->own_price.has_value();
    rows.emplace_back(report::Members{{"chip", chip->id},
                                      {"usd_per_hour", hourly(*price)},
                                      {"provider", price->provider},
                                      {"date", own ? report::Value() : report::Value(price->date)},
                                      {"source", hardware::price_source(*chip, *price)}});
    response.notes.push_back(own ? fmt::format("{} at {} per {} (--price)", what, human(price->value.value), chip->id)
                                 : fmt::format("{} at {} per {} ({}, {}, {}; {})", what, human(price->value.value),
                                               chip->id, price->provider, price->kind, price->date,
                                               price->value.source.substr(0, price->value.source.find(' '))));
    response.important.push_back(response.notes.back());
  }
  if (rows.empty()) return;
  if (each.size() > 1) note_mixture(each, response);
  response.results.emplace_back("prices", std::move(rows));
}

}  // namespace assay::verbs
