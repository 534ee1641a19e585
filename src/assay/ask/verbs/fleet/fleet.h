// The parts of `assay fleet`: the traffic, the servers of its clusters, the fleet that is chosen, and what is shown.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/serve/serve.h"
#include "assay/base/sqlite/database.h"
#include "assay/hardware/instance_table.h"
#include "assay/predict/design/owning.h"
#include "assay/predict/serving/load/fleet.h"

namespace assay::verbs::fleet {

/// A log, in the order of arrival.
struct TracedTraffic {
  serving::RequestTrace trace;
  std::optional<serving::PrefixTrie> prefixes;  ///< where its prompts have blocks
};

using DollarsPerToken = Quantity<Dim{.usd = 1, .token = -1}>;

/// What may pay for a fleet beside the list prices of its chips.
struct FleetPrices {
  std::optional<hardware::InstanceTable> table;  ///< of clouds' instances
  bool is_spot = false;
  std::optional<design::OwningFigures> owning;
  struct Api {
    DollarsPerToken prompt, output;
  };
  std::optional<Api> api;  ///< of somebody else's servers
};

/// Whole instances that hold a number of replicas.
struct Rental {
  const hardware::InstanceOffer* offer = nullptr;
  std::int64_t instances = 1;
  DollarsPerSecond price;
};

/// The server of one cluster, as the replay sees it.
struct FleetServer {
  std::unique_ptr<serve::ServeQuery> query;
  serving::ServingPoint point;
  serving::LoadedServer server;
  std::string impossible;                              ///< why there is none; then only the query is set
  bool is_rented = false, is_spot = false;             ///< prices are those of `offers`
  std::vector<const hardware::InstanceOffer*> offers;  ///< of its chip
  Bytes per_token;                                     ///< of cache, where it comes from servers of prompts
  BytesPerSecond link;                                 ///< from one of those
  std::optional<design::Owning<Plain>> owned;          ///< of one of its chips

  const std::string& cluster() const { return query->cluster.text; }
  std::int64_t chips() const { return query->cluster.chips(); }
  /// Engines with batches of their own on each replica.
  std::int64_t engines() const { return std::max<std::int64_t>(1, point.strategy.data); }
  std::int64_t node() const { return query->cluster.chip.host.chips.value; }
  /// The instances of each offer that hold so many replicas, the cheapest first.
  std::vector<Rental> rentals(std::int64_t replicas) const;
  /// What owning whole nodes for so many replicas costs.
  std::optional<DollarsPerSecond> price_of_owning(std::int64_t replicas) const;
  /// What so many replicas cost: rented, owned, or at the list price of their chips; nothing where nobody says.
  std::optional<DollarsPerSecond> price(std::int64_t replicas) const;
};

struct FleetQuery {
  std::shared_ptr<const TracedTraffic> traced;
  serving::TrafficPlan traffic;
  serving::FleetLimits limits;
  serving::FleetRouting routing = serving::FleetRouting::least_loaded;
  std::string routing_text;
  std::vector<std::int64_t> replicas;          ///< that may be chosen, in ascending order
  std::vector<FleetServer> servers;            ///< one a cluster
  std::optional<FleetServer> prefill;          ///< of prompts alone, where they have their own
  std::vector<std::int64_t> prefill_replicas;  ///< that may be chosen, in ascending order
  std::shared_ptr<const FleetPrices> prices;
  bool is_any = false;                      ///< chips, too, are to be found
  report::Items passed_over;                ///< instances that were not tried, and why
  serving::FleetChangePlan changes;         ///< without the time that weights take to load
  std::optional<BytesPerSecond> load_rate;  ///< of weights, onto a replica
  std::optional<std::int64_t> explained;
  std::vector<std::string> notes;

  bool is_search() const { return replicas.size() > 1 || servers.size() > 1 || prefill_replicas.size() > 1; }
  serving::FleetPlan plan(const FleetServer& server, std::int64_t of, std::int64_t prompts = 0) const;
};

/// --prices FILE, --spot, --tco and --api-price.
Result<std::shared_ptr<const FleetPrices>> read_fleet_prices(const Request& request, const Context& context);
/// Gives a server the prices that count for it.
Result<void> add_fleet_prices(const FleetPrices& prices, const Context& context, FleetServer& server);
/// The clusters of --on any: one a chip that the catalogue knows and a size of its replicas. The others are noted.
Result<std::vector<std::string>> clusters_of_any(const Context& context, FleetQuery& query);

Result<FleetQuery> read_fleet_query(const Request& request, const Context& context);

/// --fail, --autoscale and how a replica starts.
Result<void> read_changes(const Request& request, const Context& context, FleetQuery& query);

/// What became of the candidates of one cluster.
struct Candidate {
  const FleetServer* server = nullptr;
  std::int64_t replicas = 1;
  const FleetServer* prefill = nullptr;  ///< of prompts, and how many there are
  std::int64_t prompts = 0;
  std::int64_t fewest = 1;  ///< that have the time for the traffic at all
  std::optional<serving::FleetReplay> replay;
  bool holds = false;

  /// On average over the replay, from the order of each to its end.
  double mean_replicas() const;
  /// What they cost; nothing where nobody says.
  std::optional<DollarsPerSecond> price() const;
  /// "3" or "2 to 7".
  std::string replicas_text() const;
};
struct FleetChoice {
  std::vector<Candidate> candidates;  ///< of each cluster its cheapest that holds, or its largest; the chosen one first
  std::int64_t fleets = 0, proved = 0, replayed = 0;
  std::optional<double> margin;  ///< scale of the traffic up to which the chosen fleet holds
  report::Items passed_over;     ///< what was not tried, and why
};
/// The cheapest fleet that holds; where none does, the one with most requests within the limits.
FleetChoice choose_fleet(const FleetQuery& query);

/// The cheapest instances for fleets that hold, of each type once.
report::Items rent_rows(const FleetChoice& choice);
/// What owning the chosen fleet and asking somebody else's servers would cost.
void add_other_prices(const FleetQuery& query, const Candidate& chosen, std::optional<double> margin,
                      report::Response& response);

/// When replicas came and went; nothing of a fleet that stays as it is.
void add_changes(const FleetQuery& query, const Candidate& chosen, report::Response& response);

/// Queue, batch and cache over time.
draw::Scene fleet_picture(const FleetQuery& query, const Candidate& chosen);
report::Items series_rows(const FleetQuery& query, const Candidate& chosen);

/// Rows under heads, as one of the kinds of files that --rows writes.
struct RowSink {
  std::function<Result<void>(const std::vector<DatabaseCell>&)> add;
  std::function<Result<std::string>()> content;
};
/// A table `requests` in a database of SQLite.
Result<RowSink> database_sink(const std::vector<std::string>& heads, const std::string& file);

/// The files that a replay writes beside its answer: --rows and --steps.
class FleetFiles {
 public:
  /// Has the plan call it; it outlives the replay.
  static Result<FleetFiles> of(const Request& request, serving::FleetPlan& plan);
  Result<void> write(report::Response& response) const;

 private:
  struct Open;
  std::shared_ptr<Open> open_;  ///< also of the plan's functions
};

}  // namespace assay::verbs::fleet
