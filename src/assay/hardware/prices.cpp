#include "assay/hardware/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/cluster_names.h"

namespace assay::hardware {

void PriceChoice::apply(Chip& chip) const {
  chip.price_provider = provider;
  if (const auto mine = own.find(chip.id); mine != own.end()) chip.own_price = mine->second;
}

Result<void> add_own_price(PriceChoice& choice, std::string_view text, const Catalogue& catalogue,
                           std::string_view where) {
  const std::size_t equals = text.find('=');
  const auto bad = [&](std::string what) {
    return fail(std::string(where), std::move(what), "CHIP=USD for an hour of one chip, e.g. h100-sxm=2.50",
                Error::Kind::usage);
  };
  if (equals == std::string_view::npos || equals == 0) return bad(fmt::format("{} is not CHIP=USD", in_quotes(text)));
  const std::string name(trim(text.substr(0, equals)));
  std::string_view amount = trim(text.substr(equals + 1));
  if (amount.starts_with('$')) amount.remove_prefix(1);
  DollarsPerSecond rate;
  if (const auto number = parse_number(amount)) {
    rate = *number * 1_USD / 1_h;
  } else {
    ASSAY_TRY(parsed, parse_as<DollarsPerSecond>(amount, where));
    rate = parsed;
  }
  const double hourly = (rate * 1_h).value();
  if (!(hourly > 0.0 && hourly <= 1e6))
    return bad(fmt::format("{} is not a price above 0 and at most 1,000,000 USD an hour", in_quotes(amount)));
  std::string id = name;
  if (!catalogue.has_chip(name)) {
    ASSAY_TRY(names, catalogue.kept<ClusterNames>("cluster names", [&] { return ClusterNames::read(catalogue); }));
    const auto meant = names->find(name);
    if (!meant || meant->chips > 0) {
      const auto ids = catalogue.chip_ids();
      return fail(std::string(where), fmt::format("unknown chip {}", in_quotes(name)),
                  nearest(name, ids).empty() ? "`assay chips` lists them" : suggestion(name, ids),
                  Error::Kind::missing);
    }
    id = meant->chip;
  }
  if (choice.own.contains(id)) return bad(fmt::format("{} has a price already", id));
  Price price;
  price.value = {rate, std::string(where), "", {}};
  price.kind = "own";
  price.provider = "your own";
  choice.own.emplace(id, std::move(price));
  return {};
}

std::vector<std::string> price_providers(const Chip& chip) {
  std::vector<std::string> providers;
  for (const Price& price : chip.prices)
    if (price.kind == "on-demand" && std::find(providers.begin(), providers.end(), price.provider) == providers.end())
      providers.push_back(price.provider);
  return providers;
}

std::vector<std::string> price_providers(const Catalogue& catalogue) {
  std::set<std::string> all;
  for (const std::string& id : catalogue.chip_ids())
    if (const auto chip = catalogue.chip(id, "catalogue"))
      for (const std::string& provider : price_providers(*chip)) all.insert(provider);
  return {all.begin(), all.end()};
}

Result<std::string> find_provider(std::string_view name, const Catalogue& catalogue, std::string_view where) {
  const std::vector<std::string> known = price_providers(catalogue);
  const std::string wanted = plain_name(name);
  std::vector<std::string> starting;
  for (const std::string& provider : known) {
    if (plain_name(provider) == wanted) return provider;
    if (plain_name(provider).starts_with(wanted)) starting.push_back(provider);
  }
  if (starting.size() == 1) return starting.front();
  const auto near = nearest(name, known);
  return fail(std::string(where), fmt::format("no prices of {} are known", in_quotes(name)),
              fmt::format("{}known: {}; --price CHIP=USD gives one of your own",
                          near.empty() ? "" : suggestion(name, known) + " ", join(known, ", ")),
              Error::Kind::missing);
}

std::string price_source(const Chip& chip, const Price& price) {
  const std::string& place = price.value.source;
  const std::size_t open = place.rfind('('), close = place.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return place;
  const std::string_view key = std::string_view(place).substr(open + 1, close - open - 1);
  for (const SourceEntry& source : chip.sources)
    if (source.key == key) return fmt::format("{}, {}", source.title, trim(std::string_view(place).substr(0, open)));
  return place;
}

}  // namespace assay::hardware
