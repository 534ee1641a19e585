#include "assay/ask/verbs/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/text.h"
#include "assay/hardware/cluster.h"

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

/// The date of the oldest of a provider's newest prices for these chips; empty where it does not list all of them.
std::string oldest_price(std::string_view provider, const std::vector<const hardware::Chip*>& chips) {
  std::string oldest;
  for (const hardware::Chip* chip : chips) {
    hardware::Chip there = *chip;
    there.price_provider = provider;
    const hardware::Price* price = hardware::newest_price(there);
    if (!price) return {};
    if (oldest.empty() || price->date < oldest) oldest = price->date;
  }
  return oldest;
}

/// The provider that lists all of the chips that anybody lists; of several the one whose oldest price is newest; empty
/// where there is none.
std::string common_provider(std::vector<const hardware::Chip*> chips) {
  std::erase_if(chips, [](const hardware::Chip* chip) { return hardware::price_providers(*chip).empty(); });
  std::string best, newest;
  if (chips.empty()) return best;
  for (const std::string& provider : hardware::price_providers(*chips.front()))
    if (const std::string oldest = oldest_price(provider, chips); oldest > newest) {
      best = provider;
      newest = oldest;
    }
  return best;
}

/// The chips that a request compares: those of --on and --compare, and the arguments of `chips`.
std::vector<hardware::Chip> compared_chips(const Request& request, const hardware::Catalogue& catalogue) {
  std::vector<std::string> texts;
  for (const char* option : {"on", "compare"})
    for (const std::string& value : request.values(option))
      for (std::string& one : split(value, ',')) texts.push_back(std::move(one));
  if (request.verb().name == "chips") texts.insert(texts.end(), request.arguments().begin(), request.arguments().end());
  std::vector<hardware::Chip> out;
  if (texts.size() < 2) return out;
  for (const std::string& text : texts)
    if (auto cluster = hardware::parse_cluster(trim(text.substr(0, text.find(".."))), catalogue, "--on"))
      out.push_back(std::move(cluster->chip));
  return out;
}

/// Whose prices a comparison uses.
void note_providers(const std::vector<const hardware::Chip*>& chips, report::Response& response) {
  std::vector<std::string> whose;
  const hardware::Price* first = nullptr;
  bool mixed = false;
  for (const hardware::Chip* chip : chips) {
    const hardware::Price* price = hardware::newest_price(*chip);
    if (!price) continue;
    if (first && price->provider != first->provider) mixed = true;
    if (!first) first = price;
    whose.push_back(fmt::format("{} for {}", price->provider, chip->id));
  }
  if (whose.size() < 2) return;
  response.notes.push_back(
      mixed ? fmt::format("prices of different providers are mixed: {}; --price CHIP=USD gives your own",
                          join(whose, ", "))
            : fmt::format("all prices are {}'s; --prices names another provider, --price CHIP=USD gives your own",
                          first->provider));
  response.important.push_back(response.notes.back());
}

}  // namespace

Result<hardware::PriceChoice> read_prices(const Request& request, const hardware::Catalogue& catalogue) {
  hardware::PriceChoice choice;
  for (const std::string& text : request.values("price"))
    ASSAY_CHECK(hardware::add_own_price(choice, text, catalogue, "--price"));
  if (const auto name = request.value("prices"); name && !names_path(request, "prices"))
    ASSAY_SET(choice.provider, hardware::find_provider(*name, catalogue, "--prices"));
  if (!choice.provider.empty()) return choice;
  const std::vector<hardware::Chip> chips = compared_chips(request, catalogue);
  std::vector<const hardware::Chip*> open;
  for (const hardware::Chip& chip : chips)
    if (!choice.own.contains(chip.id)) open.push_back(&chip);
  if (distinct(open).size() > 1) choice.provider = common_provider(distinct(open));
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
  if (each.size() > 1) note_providers(each, response);
  response.results.emplace_back("prices", std::move(rows));
}

}  // namespace assay::verbs
