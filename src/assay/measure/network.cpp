#include "assay/measure/network.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "assay/execute/collectives.h"

namespace assay::measure {
namespace {

constexpr const char* collective_names[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};

/// One group of ranks in a row, of which this process is one.
class RankGroup {
 public:
  RankGroup(execute::Transport& ranks, std::size_t first, std::size_t count)
      : count_(count), devices_(program::Mesh{{{"X", static_cast<std::int64_t>(count)}}}, {&ranks, first}) {}

  /// One collective over an array of `bytes`: over all ranks for an exchange, on each rank for a reduction.
  void call(const std::string& op, std::int64_t bytes) {
    const auto array = bytes / static_cast<std::int64_t>(sizeof(float)), ways = static_cast<std::int64_t>(count_);
    const bool is_whole = op == "reduce_scatter" || op == "all_reduce";
    execute::Shards<float> shards(count_);
    shards[devices_.here().front()] = execute::zeros<float>({is_whole ? array : array / ways});
    if (op == "all_gather") execute::all_gather(devices_, shards, {0}, 0, Dtype::fp32);
    if (op == "reduce_scatter") execute::reduce_scatter(devices_, shards, {0}, 0, Dtype::fp32);
    if (op == "all_reduce") execute::all_reduce(devices_, shards, {0}, Dtype::fp32);
    if (op == "all_to_all") execute::all_to_all(devices_, shards, {0}, 0, 0, Dtype::fp32);
  }

 private:
  std::size_t count_;
  execute::VirtualDevices<float> devices_;
};

/// Seconds of the slowest of all ranks; those without a group only keep step.
Seconds timed(execute::Transport& ranks, RankGroup* group, const std::string& op, std::int64_t bytes) {
  execute::gather_values(ranks, {});
  const auto start = std::chrono::steady_clock::now();
  if (group) group->call(op, bytes);
  double slowest = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const std::vector<double>& other : execute::gather_values(ranks, {slowest}))
    slowest = std::max(slowest, other.front());
  return Seconds(slowest);
}

struct Times {
  Seconds median, least;
};
/// The fastest of some batches: ignores ranks that lost their core for a while.
Times repeated(execute::Transport& ranks, RankGroup* group, const std::string& op, std::int64_t bytes, Extent extent) {
  const int batches = extent == Extent::quick ? 3 : 7, calls = extent == Extent::quick ? 5 : 11;
  Times out;
  for (int batch = 0; batch < batches; ++batch) {
    timed(ranks, group, op, bytes);
    std::vector<Seconds> times;
    for (int i = 0; i < calls; ++i) times.push_back(timed(ranks, group, op, bytes));
    if (const Seconds median = median_of(times); batch == 0 || median < out.median) out = {median, times.front()};
  }
  return out;
}

}  // namespace

NetworkMeasurement measure_network(execute::Transport& ranks, Extent extent) {
  const bool quick = extent == Extent::quick;
  const std::int64_t most = std::int64_t{quick ? 4 : 16} << 20;
  NetworkMeasurement out;
  for (const std::string op : collective_names)
    for (std::size_t count = 2; count <= ranks.count(); count *= 2) {
      std::optional<RankGroup> group;
      if (ranks.rank() < count) group.emplace(ranks, 0, count);
      for (const std::int64_t bytes : sizes(4096, most, 4)) {
        const Times times = repeated(ranks, group ? &*group : nullptr, op, bytes, extent);
        out.rows.push_back({op, "fp32", bytes, static_cast<std::int64_t>(count), 0, 0, 0, times.median, times.least});
      }
    }
  const std::size_t half = ranks.count() / 2;
  if (half < 2) return out;
  for (const std::string op : collective_names) {
    constexpr std::int64_t bytes = std::int64_t{1} << 20;
    std::optional<RankGroup> first, both;
    if (ranks.rank() < half) first.emplace(ranks, 0, half);
    if (ranks.rank() < 2 * half) both.emplace(ranks, ranks.rank() < half ? 0 : half, half);
    const Seconds alone = repeated(ranks, first ? &*first : nullptr, op, bytes, extent).median;
    const Seconds together = repeated(ranks, both ? &*both : nullptr, op, bytes, extent).median;
    out.contention.push_back({op, bytes, static_cast<std::int64_t>(half), alone, together});
  }
  return out;
}

}  // namespace assay::measure
