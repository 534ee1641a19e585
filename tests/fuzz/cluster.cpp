// Clusters and places, "CLUSTER|FROM|TO": any text gives a cluster or an error; a cluster reads back from its text.
#include <string>
#include <string_view>

#include "assay/base/text.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/roofline/transfer.h"
#include "target.h"

namespace {

using namespace assay;
using fuzz::require;

constexpr std::int64_t few_chips = 20'000;  // above that, paths through a torus take seconds under the sanitizers

void check_totals(const hardware::Cluster& cluster) {
  require(cluster.chips() >= 1 && hardware::host_count(cluster) >= 1 && hardware::core_count(cluster) >= 1);
  require(hardware::switch_count(cluster) >= 0 && hardware::scale_up_links(cluster) >= 0 &&
          hardware::diameter(cluster) >= 0);
  require(hardware::total_memory(cluster) > Bytes(0) && hardware::total_memory_bandwidth(cluster) > BytesPerSecond(0));
  if (const auto bisection = hardware::bisection_bandwidth(cluster)) require(*bisection > BytesPerSecond(0));
  for (const hardware::Level& level : cluster.levels)
    require(level.chip_bandwidth > BytesPerSecond(0) && level.degree >= 1);
}

void check_route(const hardware::Cluster& cluster, const std::string& from_text, const std::string& to_text) {
  const auto from = roofline::parse_place(from_text, cluster, "from"),
             to = roofline::parse_place(to_text, cluster, "to");
  if (!from || !to || cluster.chips() > few_chips) return;
  const Result<roofline::Route> route = roofline::plan_route(cluster, *from, *to);
  if (!route) return require(!route.error().what.empty());
  const roofline::TransferTimes<Plain> times = roofline::transfer_times(Plain{}, *route, 1_GB, std::nullopt);
  require(times.lower > Seconds(0) && times.lower <= times.upper);
}

const fuzz::Target cluster_target("cluster", [](std::string_view text) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  if (text.find('@') != std::string_view::npos) return;  // names a file
  const auto parts = split(text, '|');
  const Result<hardware::Cluster> cluster = hardware::parse_cluster(parts[0], catalogue, "fuzz");
  if (!cluster) {
    require(!cluster.error().what.empty());
    return;
  }
  const Result<hardware::Cluster> again = hardware::parse_cluster(cluster->text, catalogue, "text");
  require(again && again->text == cluster->text && again->chips() == cluster->chips());
  check_totals(*cluster);
  if (parts.size() == 3) check_route(*cluster, parts[1], parts[2]);
});

}  // namespace
