// What `assay serve` is asked: the model, the cluster, the load, what is fixed and what is searched.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/ask/verbs/assumed_software.h"
#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/model/import/config_import.h"
#include "assay/predict/search/serving/search.h"
#include "assay/predict/search/serving/speculation.h"
#include "assay/predict/serving/load/prefix_cache.h"

namespace assay::verbs::serve {

/// Requests that share prefixes, and the memory that keeps them.
struct PrefixCaching {
  serving::RequestTrace trace;
  std::optional<Bytes> memory, host;  ///< for prefixes, over all chips of a replica, and of its hosts; nothing: enough
  Bytes block;                        ///< of cache
  serving::PrefixReplay replay;       ///< with that memory
};

struct ServeQuery {
  model::ImportedModel imported;
  model::Transformer published;  ///< the model without what-ifs of its cache
  hardware::Cluster cluster;
  serving::ServingQuestion question;  ///< its model is set by bind()
  search::ServingChoices choices;
  Dtype compute = Dtype::bf16;
  std::string memory_margin = "interval";
  kernel::MemoryShare memory{};       ///< of each chip that the server may use: all but the margin
  double parameters = 0, active = 0;  ///< total, and active per token; given or counted
  bool parameters_given = false;
  double encoder_active = 0;  ///< active per prompt token in an encoder

  std::optional<Seconds> prefill_time, step_time;  ///< measured, in place of estimates
  std::optional<double> mfu;                       ///< of prefill
  std::optional<Hertz> rate;                       ///< of requests
  std::optional<std::int64_t> prefill_servers;     ///< replicas that only run prefill
  std::optional<std::int64_t> simulated_requests;
  std::optional<PrefixCaching> prefixes;  ///< of real requests
  std::optional<search::Draft> draft;
  double acceptance = 0.8;
  std::vector<std::int64_t> draft_lengths, batches;
  std::vector<std::string> compared;    ///< further clusters
  std::vector<std::string> sizes;       ///< of --on, if several: the answer is for the first that meets the request
  std::vector<Dtype> compared_formats;  ///< further weight formats
  std::vector<std::string> notes;
  AssumedSoftware software;
  std::optional<numbers::ServingCalibration> steps;  ///< calibration of whole steps; none if efficiencies are given
  std::string impossible;                            ///< why no strategy can meet the request; else empty

  double chips() const { return static_cast<double>(cluster.chips()); }
  /// Sets what of a chip's memory may be used.
  void set_memory(kernel::MemoryShare used);
  const model::Transformer& model() const { return imported.model; }
};

/// The question for the cluster at `size` of --on; the others are compared with it.
Result<ServeQuery> read_serve_query(const Request& request, const Context& context, std::size_t size = 0);

/// The same question for another cluster; an error if its chip lacks the compute format. With `format`: weights in it,
/// the cache in it or 8 bits, and matrix products in it if the chip supports it.
Result<ServeQuery> on_other_cluster(const ServeQuery& query, const hardware::Cluster& cluster, const Request& request,
                                    const Context& context, std::optional<Dtype> format = std::nullopt);

/// Points the question to the query's own model: after every copy.
void bind(ServeQuery& query);

/// The options of the verb, in the order of its help.
std::vector<OptionSpec> serve_options();

/// "dp 2, tp 4, cache by batch"
std::string strategy_text(const serving::ServingStrategy& strategy);

/// Dollars for a million tokens.
std::optional<Dollars> cost_of_million(const ServeQuery& query, TokensPerSecond rate);

}  // namespace assay::verbs::serve
