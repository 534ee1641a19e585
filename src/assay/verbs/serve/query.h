// What `assay serve` was asked: the model, the cluster, the load, what is fixed and what is to be found.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/hardware/cluster.h"
#include "assay/model/import/config_import.h"
#include "assay/search/serving/search.h"
#include "assay/search/serving/speculation.h"
#include "assay/verbs/request.h"

namespace assay::verbs::serve {

struct ServeQuery {
  model::ImportedModel imported;
  hardware::Cluster cluster;
  serving::ServingQuestion question;  ///< its model is set by bind()
  search::ServingChoices choices;
  Dtype compute = Dtype::bf16;
  double memory_share = 1;            ///< of each chip's memory that may be used
  double parameters = 0, active = 0;  ///< of the model, and those that one token passes; given or counted
  bool parameters_given = false;
  double encoder_active = 0;  ///< those that a token of the prompt passes in an encoder

  std::optional<double> prefill_time, step_time;  ///< seconds that were measured, in place of the estimates
  std::optional<double> mfu;                      ///< of prefill
  std::optional<std::int64_t> chunk;              ///< tokens of a prompt that join each decode step
  std::optional<double> rate;                     ///< requests per second
  std::optional<std::int64_t> prefill_servers;    ///< copies of a replica that only work on prompts
  std::optional<std::int64_t> simulated_requests;
  std::optional<search::Draft> draft;
  double acceptance = 0.8;
  std::vector<std::int64_t> draft_lengths, batches;
  std::vector<std::string> compared;    ///< further clusters
  std::vector<std::string> sizes;       ///< those of --on, where there are several: the first that does is answered for
  std::vector<Dtype> compared_formats;  ///< further formats of weights
  std::vector<std::string> notes;
  std::optional<estimate::ServingCalibration>
      steps;               ///< what is known of whole steps; nothing where efficiencies are given
  std::string impossible;  ///< why no answer can meet the request, whatever the strategy; empty: nothing known

  double chips() const { return static_cast<double>(cluster.chips()); }
  const model::Transformer& model() const { return imported.model; }
};

/// Of several clusters in --on, the question of that one; the others are compared with it.
Result<ServeQuery> read_serve_query(const Request& request, const Context& context, std::size_t size = 0);

/// The same question of another cluster, an error where its chip lacks the compute format; with weights in `format`,
/// the cache in the same or 8 bits, and products in it where the chip can.
Result<ServeQuery> on_other_cluster(const ServeQuery& query, const hardware::Cluster& cluster, const Request& request,
                                    const Context& context, std::optional<Dtype> format = std::nullopt);

/// Points the question to the query's own model: after every copy.
void bind(ServeQuery& query);

/// The options of the verb, in the order of its help.
std::vector<OptionSpec> serve_options();

/// "dp 2, tp 4, cache by batch"
std::string strategy_text(const serving::ServingStrategy& strategy);
std::string_view limiter_of(const serving::ServingTime& time);

/// Dollars for a million tokens.
std::optional<Dollars> cost_of_million(const ServeQuery& query, double tokens_per_second);

}  // namespace assay::verbs::serve
