// The parts of `assay fleet`: the traffic, the servers of its clusters, the fleet that is chosen, and what is shown.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/serve/serve.h"
#include "assay/predict/serving/load/fleet.h"

namespace assay::verbs::fleet {

/// A log, in the order of arrival.
struct TracedTraffic {
  serving::RequestTrace trace;
  std::optional<serving::PrefixTrie> prefixes;  ///< where its prompts have blocks
};

/// The server of one cluster, as the replay sees it.
struct FleetServer {
  std::unique_ptr<serve::ServeQuery> query;
  serving::ServingPoint point;
  serving::LoadedServer server;
  std::string impossible;  ///< why there is none; then only the query is set

  const std::string& cluster() const { return query->cluster.text; }
  std::int64_t chips() const { return query->cluster.chips(); }
  /// Engines with batches of their own on each replica.
  std::int64_t engines() const { return std::max<std::int64_t>(1, point.strategy.data); }
  /// What one replica costs; nothing where the chip has no price.
  std::optional<DollarsPerSecond> price() const;
};

struct FleetQuery {
  std::shared_ptr<const TracedTraffic> traced;
  serving::TrafficPlan traffic;
  serving::FleetLimits limits;
  serving::FleetRouting routing = serving::FleetRouting::least_loaded;
  std::string routing_text;
  std::vector<std::int64_t> replicas;  ///< that may be chosen, in ascending order
  std::vector<FleetServer> servers;    ///< one a cluster
  std::optional<std::int64_t> explained;
  std::vector<std::string> notes;

  bool is_search() const { return replicas.size() > 1 || servers.size() > 1; }
  serving::FleetPlan plan(const FleetServer& server, std::int64_t of) const;
};

Result<FleetQuery> read_fleet_query(const Request& request, const Context& context);

/// What became of the candidates of one cluster.
struct Candidate {
  const FleetServer* server = nullptr;
  std::int64_t replicas = 1;
  std::int64_t fewest = 1;  ///< that have the time for the traffic at all
  std::optional<serving::FleetReplay> replay;
  bool holds = false;
};
struct FleetChoice {
  std::vector<Candidate> candidates;  ///< of each cluster its cheapest that holds, or its largest; the chosen one first
  std::int64_t fleets = 0, proved = 0, replayed = 0;
  std::optional<double> margin;  ///< scale of the traffic up to which the chosen fleet holds
};
/// The cheapest fleet that holds; where none does, the one with most requests within the limits.
FleetChoice choose_fleet(const FleetQuery& query);

/// Queue, batch and cache over time.
draw::Scene fleet_picture(const FleetQuery& query, const Candidate& chosen);
report::Items series_rows(const Candidate& chosen);

}  // namespace assay::verbs::fleet
