// What pays for a fleet: instances of clouds, chips of one's own, or somebody else's servers by the token.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/ask/verbs/fleet/fleet.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/text.h"
#include "assay/predict/design/figures.h"

namespace assay::verbs::fleet {
namespace {

/// "$0.6/Mtok", "0.6 USD/Mtoken", or a number of dollars per million.
Result<DollarsPerToken> token_price(std::string_view text) {
  std::string spelled(trim(text));
  if (spelled.starts_with('$')) {
    spelled.erase(0, 1);
    const std::size_t slash = spelled.find('/');
    if (slash != spelled.npos) spelled.insert(slash, " USD");
  }
  if (spelled.ends_with("tok")) spelled += "en";
  DollarsPerToken price;
  if (const auto number = parse_number(spelled)) {
    price = *number * 1_USD / Tokens(1e6);
  } else {
    ASSAY_SET(price, parse_as<DollarsPerToken>(spelled, "--api-price"));
  }
  if (!(price.value() >= 0.0) || price > 1_USD / Tokens(1))
    return fail("--api-price", fmt::format("{} is no price from 0 to 1 USD a token", in_quotes(text)),
                "e.g. '$0.6/Mtok', or '$0.15/Mtok,$0.6/Mtok' for prompts and outputs");
  return price;
}

/// What it takes to make a chip whose parts are known.
Result<std::optional<Dollars>> made_for(const hardware::Chip& chip, const Context& context) {
  ASSAY_TRY(known, design::known_designs(context.catalogue));
  ASSAY_TRY(technology, design::technology_of(context.catalogue));
  for (const design::ChipDesign& one : *known) {
    if (one.id != chip.id && one.base != chip.id) continue;
    const design::Calibration calibration = design::calibrate(*known, *technology, one.id);
    return design::chip_figures(Plain{}, {one, *technology, calibration}).cost.all;
  }
  return std::nullopt;
}

/// A chip with its server; nothing where neither a price nor the parts of it are known.
Result<std::optional<design::Installed>> installed_of(const hardware::Chip& chip, const design::OwningFigures& figures,
                                                      const Context& context) {
  design::Installed out = design::with_networks_of(chip);
  out.chips = static_cast<double>(design::usual_chips);
  if (!chip.power) return std::nullopt;
  out.power = chip.power->chip.value;
  if (chip.power->system) out.beside = std::max(Watts(), chip.power->system->value - chip.power->chip.value);
  for (const auto& [id, price] : figures.prices)
    if (id == chip.id) out.price = price;
  if (out.price) return out;
  ASSAY_TRY(made, made_for(chip, context));
  if (!made) return std::nullopt;
  out.made = *made;
  return out;
}

/// What asking somebody else costs beside a price of one's own, and from which rate of requests on one's own is less.
report::Members beside_api(const FleetPrices::Api& api, const serving::FleetReplay& replay, DollarsPerSecond own,
                           std::optional<double> margin) {
  const auto tokens = [&](std::int64_t n) { return Tokens(replay.per_second(static_cast<double>(n))) / 1_s; };
  const DollarsPerSecond asked = api.prompt * tokens(replay.prompt_tokens) + api.output * tokens(replay.output_tokens);
  report::Members out{{"per_day", asked * 1_day}, {"over_fleet", asked / own}};
  const double scale = own / asked;
  if (!(asked > DollarsPerSecond())) return out;
  out.emplace_back("break_even_scale", scale);
  out.emplace_back("break_even_requests_per_second", scale * replay.served_per_second().value());
  if (scale <= 1.0)
    out.emplace_back("verdict", "the fleet is cheaper");
  else if (margin && scale > *margin)
    out.emplace_back("verdict", "the API is cheaper for all the traffic that this fleet holds");
  else
    out.emplace_back("verdict", "the API is cheaper");
  return out;
}

/// Instances that nobody tries, counted by the reason.
class PassedOver {
 public:
  void add(const std::string& name, const std::string& why) { ++counts_[{why, name}]; }
  report::Items rows() const {
    std::map<std::string, std::pair<std::int64_t, std::vector<std::string>>> by_reason;
    for (const auto& [key, count] : counts_) {
      by_reason[key.first].first += count;
      by_reason[key.first].second.push_back(key.second);
    }
    report::Items out;
    for (const auto& [why, of] : by_reason)
      out.emplace_back(report::Members{{"offers", of.first}, {"why", why}, {"what", join(of.second, ", ")}});
    return out;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::int64_t> counts_;
};

}  // namespace

namespace {

/// --clouds: offers of these alone.
Result<void> keep_clouds(const Request& request, hardware::InstanceTable& table) {
  const auto text = request.value("clouds");
  if (!text) return {};
  std::vector<std::string> known;
  for (const hardware::InstanceOffer& offer : table.offers)
    if (std::find(known.begin(), known.end(), offer.cloud) == known.end()) known.push_back(offer.cloud);
  const std::vector<std::string> wanted = split(*text, ',');
  for (const std::string& cloud : wanted)
    if (std::find(known.begin(), known.end(), cloud) == known.end())
      return fail("--clouds", fmt::format("{} has no instances of {}", table.file, in_quotes(cloud)),
                  "it lists " + join(known, ", "), Error::Kind::missing);
  std::erase_if(table.offers, [&](const hardware::InstanceOffer& offer) {
    return std::find(wanted.begin(), wanted.end(), offer.cloud) == wanted.end();
  });
  return {};
}

/// A price far below what others ask for the chip: bait of a broker, or the floor of an auction.
void note_bait(const FleetPrices& prices, const FleetServer& server, const Rental& rental, report::Response& response) {
  std::vector<DollarsPerSecond> each;
  for (const hardware::InstanceOffer* offer : server.offers)
    each.push_back(*offer->price(prices.is_spot) / static_cast<double>(offer->chips));
  std::nth_element(each.begin(), each.begin() + std::ssize(each) / 2, each.end());
  const DollarsPerSecond median = each[each.size() / 2],
                         own = *rental.offer->price(prices.is_spot) / static_cast<double>(rental.offer->chips);
  constexpr double far_below = 0.2;
  if (own >= far_below * median) return;
  response.notes.push_back(fmt::format(
      "{} asks {} per {}, and half of all offers at least {}: if nobody gets it for that, --clouds names others",
      rental.offer->text(), human(own), server.query->cluster.chip.id, human(median)));
  response.important.push_back(response.notes.back());
}

}  // namespace

Result<std::shared_ptr<const FleetPrices>> read_fleet_prices(const Request& request, const Context& context) {
  auto out = std::make_shared<FleetPrices>();
  out->is_spot = request.flag("spot").value_or(false);
  if (names_path(request, "prices")) {
    const std::string file = *request.value("prices");
    ASSAY_TRY(text, serve::text_of_requests(file, "--prices", context));
    ASSAY_SET(out->table, hardware::read_instance_table(text, file, context.catalogue));
    ASSAY_CHECK(keep_clouds(request, *out->table));
  } else if (request.has("clouds")) {
    return fail("--clouds", "list prices of chips are those of one provider", "--prices names it", Error::Kind::usage);
  } else if (out->is_spot) {
    return fail("--spot", "list prices of chips are on demand", "give a table of instances: --prices FILE.csv",
                Error::Kind::usage);
  }
  if (const auto file = request.value("tco")) {
    ASSAY_TRY(text, serve::text_of_requests(*file, "--tco", context));
    ASSAY_SET(out->owning, design::owning_figures(context.catalogue, text, *file));
    for (const auto& [id, price] : out->owning->prices)
      if (!context.catalogue.has_chip(id))
        return fail(*file + ": prices", fmt::format("unknown chip {}", in_quotes(id)),
                    suggestion(id, context.catalogue.chip_ids()), Error::Kind::missing);
  }
  if (const auto text = request.value("api-price")) {
    const std::vector<std::string> parts = split(*text, ',');
    if (parts.size() > 2)
      return fail("--api-price", "more than two prices",
                  "one for all tokens, or those of prompts and outputs: 0.15,0.6");
    ASSAY_TRY(first, token_price(parts.front()));
    ASSAY_TRY(last, token_price(parts.back()));
    out->api = FleetPrices::Api{first, last};
  }
  return out;
}

Result<void> add_fleet_prices(const FleetPrices& prices, const Context& context, FleetServer& server) {
  const hardware::Chip& chip = server.query->cluster.chip;
  if (prices.table) {
    server.is_rented = true;
    server.is_spot = prices.is_spot;
    for (const hardware::InstanceOffer& offer : prices.table->offers)
      if (offer.chip == chip.id && offer.price(prices.is_spot)) server.offers.push_back(&offer);
  }
  if (!prices.owning) return {};
  ASSAY_TRY(at, installed_of(chip, *prices.owning, context));
  if (at) server.owned = design::owning(Plain{}, *prices.owning, *at);
  return {};
}

std::vector<Rental> FleetServer::rentals(std::int64_t replicas) const {
  std::vector<Rental> out;
  for (const hardware::InstanceOffer* offer : offers)
    if (const auto instances = hardware::instances_for(offer->chips, replicas, chips(), node()))
      out.push_back({offer, *instances, static_cast<double>(*instances) * *offer->price(is_spot)});
  std::stable_sort(out.begin(), out.end(), [](const Rental& a, const Rental& b) { return a.price < b.price; });
  return out;
}

std::optional<DollarsPerSecond> FleetServer::price_of_owning(std::int64_t replicas) const {
  if (!owned) return std::nullopt;
  const std::int64_t nodes = (replicas * chips() + node() - 1) / node();
  return static_cast<double>(nodes * node()) * owned->all;
}

std::optional<DollarsPerSecond> FleetServer::price(std::int64_t replicas) const {
  if (is_rented) {
    const std::vector<Rental> all = rentals(replicas);
    return all.empty() ? std::nullopt : std::optional(all.front().price);
  }
  if (owned) return price_of_owning(replicas);
  const hardware::Price* price = hardware::newest_price(query->cluster.chip);
  if (!price) return std::nullopt;
  return static_cast<double>(replicas * chips()) * price->value.value;
}

Result<std::vector<std::string>> clusters_of_any(const Context& context, FleetQuery& query) {
  const FleetPrices& prices = *query.prices;
  if (!prices.table)
    return fail("--on", "any means any chip that can be rented, and nobody says what is on offer",
                "give a table of instances: --prices FILE.csv", Error::Kind::usage);
  PassedOver passed;
  std::map<std::string, std::int64_t> largest;  // instance by chip
  for (const hardware::InstanceOffer& offer : prices.table->offers)
    if (offer.chips == 0)
      passed.add(offer.accelerator, "a share of a chip");
    else if (offer.chip.empty())
      passed.add(offer.accelerator, "the catalogue does not know the chip");
    else if (!offer.price(prices.is_spot))
      passed.add(offer.accelerator, prices.is_spot ? "not offered as spot" : "not offered on demand");
    else
      largest[offer.chip] = std::max(largest[offer.chip], offer.chips);
  query.passed_over = passed.rows();
  std::vector<std::string> out;
  for (const auto& [id, most] : largest) {
    ASSAY_TRY(chip, context.catalogue.chip(id, "--on"));
    for (std::int64_t chips = 1; chips <= std::min(most, std::max<std::int64_t>(8, chip.host.chips.value)); chips *= 2)
      if (const auto cluster = hardware::parse_cluster(fmt::format("{}:{}", id, chips), context.catalogue, "--on"))
        out.push_back(cluster->text);
  }
  if (out.empty()) return fail("--on", "no instance of the table has a chip that is known", "name a cluster instead");
  return out;
}

report::Items rent_rows(const FleetChoice& choice) {
  struct Row {
    Rental rental;
    const Candidate* of;
  };
  std::map<const hardware::InstanceOffer*, Row> best;
  for (const Candidate& one : choice.candidates) {
    if (!one.holds) continue;
    for (const Rental& rental : one.server->rentals(one.replicas)) {
      const auto [at, is_new] = best.try_emplace(rental.offer, Row{rental, &one});
      if (!is_new && rental.price < at->second.rental.price) at->second = {rental, &one};
    }
  }
  std::vector<Row> rows;
  for (const auto& [offer, row] : best) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.rental.price != b.rental.price) return a.rental.price < b.rental.price;
    return a.rental.offer->line < b.rental.offer->line;
  });
  constexpr std::size_t most = 10;
  if (rows.size() > most) rows.resize(most);
  return report::rows_of(rows, [](const Row& row) {
    const Rental& rental = row.rental;
    const std::int64_t rented = rental.instances * rental.offer->chips,
                       used = row.of->replicas * row.of->server->chips();
    const TokensPerSecond tokens = row.of->replay->tokens_per_second();
    return report::Members{{"offer", rental.offer->text()},
                           {"instances", rental.instances},
                           {"chips", rented},
                           {"used", static_cast<double>(used) / static_cast<double>(rented)},
                           {"cluster", row.of->server->cluster()},
                           {"replicas", row.of->replicas},
                           {"time_to_first_token", row.of->replay->first_token.spread().p99},
                           {"time_per_token", row.of->replay->per_token.spread().p99},
                           {"per_hour", *rental.offer->price(row.of->server->is_spot) * 1_h},
                           {"cost_per_day", rental.price * 1_day},
                           {"per_million_output_tokens", Tokens(1e6) * (rental.price / tokens)},
                           {"line", static_cast<std::int64_t>(rental.offer->line)}};
  });
}

void add_other_prices(const FleetQuery& query, const Candidate& chosen, std::optional<double> margin,
                      report::Response& response) {
  const FleetPrices& prices = *query.prices;
  const FleetServer& server = *chosen.server;
  const auto price = chosen.price();
  const auto owning = chosen.prefill ? std::nullopt : server.price_of_owning(chosen.replicas);
  if (prices.owning && !owning && !chosen.prefill)
    response.notes.push_back(
        fmt::format("no cost of owning: what {} costs, or draws, is not known; [prices] {} = \"27000 USD\" in the file "
                    "of --tco says it",
                    server.query->cluster.chip.id, server.query->cluster.chip.id));
  if (owning) {
    const std::int64_t chips = (chosen.replicas * server.chips() + server.node() - 1) / server.node() * server.node();
    report::Members own{{"per_chip_hour", server.owned->all * 1_h},
                        {"chips", chips},
                        {"per_day", *owning * 1_day},
                        {"capital", static_cast<double>(chips) * server.owned->capital}};
    // What renting costs beyond energy pays off the price.
    const DollarsPerSecond energy = static_cast<double>(chips) * server.owned->energy;
    if (server.is_rented && price && *price > energy)
      own.emplace_back("pays_off_after", static_cast<double>(chips) * server.owned->capital / (*price - energy));
    if (prices.api) own.emplace_back("api", beside_api(*prices.api, *chosen.replay, *owning, margin));
    response.results.emplace_back("own", std::move(own));
    response.notes.push_back(
        fmt::format("owning as of --tco, in whole nodes of {} chips, in a cluster of 1,024", server.node()));
  }
  if (prices.api && price)
    response.results.emplace_back("api", beside_api(*prices.api, *chosen.replay, *price, margin));
  if (!prices.table) return;
  if (price && !chosen.prefill) note_bait(prices, server, server.rentals(chosen.replicas).front(), response);
  if (!price)
    response.notes.push_back(fmt::format("no cost: {} has no instance for {}{}", prices.table->file, server.cluster(),
                                         prices.is_spot ? " as spot" : ""));
  response.notes.push_back(fmt::format(
      "prices of {}, {}: {}, in the cheapest region; instances are paid whole", prices.table->file,
      prices.table->date.empty() ? "which has no date" : prices.table->date, prices.is_spot ? "spot" : "on demand"));
  response.important.push_back(response.notes.back());
}

}  // namespace assay::verbs::fleet
