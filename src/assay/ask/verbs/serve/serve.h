// The parts of `assay serve`: the question, its points, the load, and what is shown of them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/draw/scene.h"
#include "assay/ask/launch/target.h"
#include "assay/ask/report/document.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/assumed_software.h"
#include "assay/ask/verbs/request.h"
#include "assay/base/explain.h"
#include "assay/hardware/cluster.h"
#include "assay/model/cache_mix.h"
#include "assay/model/import/config_import.h"
#include "assay/predict/search/serving/search.h"
#include "assay/predict/search/serving/slices.h"
#include "assay/predict/search/serving/speculation.h"
#include "assay/predict/serving/bounds.h"
#include "assay/predict/serving/load/prefix_cache.h"
#include "assay/predict/serving/load/queueing.h"
#include "assay/predict/serving/throughput.h"

namespace assay::verbs::serve {

// What `assay serve` is asked: the model, the cluster, the load, what is fixed and what is searched.

/// Requests, and what caches of their prefixes hit.
struct PrefixRequests {
  serving::RequestTrace trace;
  serving::PrefixTrie trie{trace};
  serving::PrefixReuse reuse{trie};
};

/// Requests that share prefixes, and the memory that keeps them.
struct PrefixCaching {
  std::shared_ptr<const PrefixRequests> requests;  ///< shared by the copies of a query, one a cluster that is compared
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
  double encoder_active = 0;           ///< active per prompt token in an encoder
  bool is_encoder = false;             ///< all tokens see each other, and none is generated
  std::int64_t redundant_experts = 0;  ///< further copies of experts, in the model already

  std::optional<Seconds> prefill_time, step_time;  ///< measured, in place of estimates
  std::optional<double> mfu;                       ///< of prefill
  std::optional<Hertz> rate;                       ///< of requests
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
  /// With those of the prefill servers of a plan, each of which is as large as a replica.
  double all_chips(const serving::ServingStrategy& strategy) const {
    return chips() + question.prefill_servers * static_cast<double>(strategy.replica_chips());
  }
  /// Sets what of a chip's memory may be used.
  void set_memory(kernel::MemoryShare used);
  const model::Transformer& model() const { return imported.model; }
};

/// Requests per second as --rate says; nothing where it is not given.
Result<std::optional<Hertz>> request_rate(const Request& request);

/// The question for the cluster at `size` of --on; the others are compared with it.
Result<ServeQuery> read_serve_query(const Request& request, const Context& context, std::size_t size = 0);

/// The same question for another cluster; an error if its chip lacks the compute format. With `format`: weights in it,
/// the cache in it or 8 bits, and matrix products in it if the chip supports it.
Result<ServeQuery> on_other_cluster(const ServeQuery& query, const hardware::Cluster& cluster, const Request& request,
                                    const Context& context, std::optional<Dtype> format = std::nullopt);

/// Points the question to the query's own model: after every copy.
void bind(ServeQuery& query);

/// "dp 2, tp 4, cache by batch"
std::string strategy_text(const serving::ServingStrategy& strategy);

/// Dollars for a million tokens of so many chips.
std::optional<Dollars> cost_of_million(const ServeQuery& query, double chips, TokensPerSecond rate);
/// Of all chips of a plan.
std::optional<Dollars> cost_of_million(const ServeQuery& query, const serving::ServingPoint& point,
                                       TokensPerSecond rate);

// What-if of the KV cache: fewer heads, windows, layers that share.

/// --kv-heads, --window, --local-layers and --share-cache.
Result<model::CacheMix> read_cache_mix(const Request& request, std::vector<std::string>& notes);

/// The cache of a sequence at several lengths, and of the model without what-ifs.
report::Items cache_rows(const ServeQuery& query);
draw::Chart cache_chart(const ServeQuery& query);

// --requests: real requests, the prefixes that they share, and a cache of them.

/// The text of requests, or of the file or the attached one that the value of an option names; gzip is inflated.
Result<std::string> text_of_requests(const std::string& value, std::string_view where, const Context& context);
/// Reads the requests of --requests, from a file, an attached one, or the text itself.
Result<void> read_requests(const Request& request, const Context& context, ServeQuery& query);
/// Plays them on the cache of prefixes: what it hits is the cached part of prompts. The formats must be known.
Result<void> replay_requests(const Request& request, ServeQuery& query);

report::Members prefix_section(const ServeQuery& query, const serving::ServingPoint& point);
/// An error where the chips or hosts of a replica have less than what is to keep prefixes; a note on the screen where
/// they cannot keep all, which is the default.
Result<void> check_prefix_memory(const ServeQuery& query, const search::ServingSearch& found,
                                 const serving::ServingPoint& point, report::Response& response);
/// The trie of the prefixes.
draw::Scene prefix_picture(const ServeQuery& query);

// The load: lengths and rate of requests, and how the server does under it.

/// Reads prompts, outputs, pages, rate and batch into the query.
Result<void> read_serve_load(const Request& request, ServeQuery& query);

/// Lengths at the mean and at percentiles, and the time to the first token of each.
Result<report::Items> lengths_list(const ServeQuery& query, const serving::ServingPoint& point);

/// The server of a point, as the queueing model sees it.
Result<serving::LoadedServer> server_under_load(const ServeQuery& query, const serving::ServingPoint& point);
/// The point of a search that serves the rate best, and how it does.
struct PointUnderLoad {
  serving::ServingPoint point;
  serving::LoadedTimes times;
  bool meets = false;                ///< keeps up with the rate, within the latency limits
  Hertz most_requests;               ///< within the latency limits
  std::optional<Dollars> cost = {};  ///< of a million tokens at the rate
};
Result<PointUnderLoad> best_under_rate(const ServeQuery& query, const search::ServingSearch& found);
/// Times of the point at the given rate; the headline is that of the loaded server.
Result<report::Members> load_section(const ServeQuery& query, const serving::ServingPoint& point,
                                     report::Response& response);

/// The parts of a time to the first token, without those that take no time.
report::Members first_token_parts(const serving::FirstToken& first);

// Serving software, and how far whole steps are from their estimate.

/// Sets what whole steps cost beyond their kernels, for the requested software or good software, which it returns.
Result<kernel::EngineSoftware> read_serving_software(const Request& request, const Context& context, ServeQuery& query);

/// Whether a number's source is the request itself or a calibrated deployment, in place of what nobody measured.
bool is_measured_here(std::string_view source);
/// Whose the fitted numbers of a point are: of the chip, of the engine's release, of a deployment that nobody measured,
/// or of the request.
report::Items origin_rows(const ServeQuery& query);

/// The interval of four in five measured steps of this class, and in which ways the step extrapolates; empty if nothing
/// is known.
report::Members step_interval(const ServeQuery& query, const serving::ServingStrategy& strategy,
                              const serving::ServingTime& time, bool prefill, double batch);
/// Notes what the intervals of a point are based on.
void note_intervals(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response);

// A point as a row of an answer: where measurements put its time per token, whether it fits, and the request that asks
// for it.

std::string_view cache_name(lower::CacheScheme scheme);
/// As --cache takes it.
std::string cache_name(const serving::ServingStrategy& strategy);
/// As --ep-over takes it, or none.
std::string expert_axes(const serving::ServingStrategy& strategy);

/// Whether a server fits with the margin, only without it, or not at all: fits, tight, no.
std::string_view memory_verdict(const ServeQuery& query, Bytes total);

/// The request that asks for this point alone: every choice is written out, what else was asked for is left out.
Request plan_request(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

/// Adds interval, memory and arguments of a point; no arguments without a request that asks for it.
void add_plan(const std::optional<Request>& request, const ServeQuery& query, const serving::ServingPoint& point,
              report::Members& row);

// Embeddings and rankings: prompts alone, nothing is generated.

/// An error for what only decoding has.
Result<void> check_prompts_only(const Request& request, const ServeQuery& query);
/// The server that takes the most prompts.
Result<report::Response> answer_prompts(const ServeQuery& query);

/// A phase of so many tokens at once.
report::Members phase_members(const serving::ServingTime& time, report::Members interval, double tokens, double chips);

// The parts of serve's answer, each a table or a list of its own.

serving::ServingBounds bounds_of(const ServeQuery& query, double batch);

/// The search for what was asked, with measured times in place of estimates where they are given. `known`: profiles of
/// the query's question, to be shared with further searches.
Result<search::ServingSearch> search_as_measured(const ServeQuery& query, serving::KnownProfiles* known = nullptr);
/// Notes measured times below the lower bound of the chips.
void note_measured(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response);

/// The time to the first token by the client's clock, of a server whose other places are taken.
serving::FirstToken first_token_of(const ServeQuery& query, const serving::ServingPoint& point);
report::Members first_token_section(const ServeQuery& query, const serving::ServingPoint& point);
report::Members bounds_section(const ServeQuery& query, const serving::ServingPoint& point);
/// What the server yields that both prefills and decodes, and what it costs.
report::Members served_section(const ServeQuery& query, const serving::ServingPoint& point);
/// What the chips of such a server draw, and the energy of a step and of a token; empty where nobody says their power.
Result<report::Members> power_section(const ServeQuery& query, const Context& context,
                                      const serving::ServingPoint& point);
/// A batch from its prompts to its last tokens, without others in between; in turns if not all of it fits.
Result<report::Members> batch_section(const ServeQuery& query, const serving::ServingPoint& point);
/// How prefill and decode balance, and prefill on separate chips.
report::Members batching_section(const ServeQuery& query, const search::ServingSearch& found,
                                 const serving::ServingPoint& point);
/// "draft llama-3.2-1b, 3 tokens".
std::string draft_text(const search::Draft& draft, const search::Speculation& found);
/// Speculative decoding with the draft. A searched batch shrinks until the draft fits, too; a given one is infeasible.
Result<search::Speculation> with_draft(const ServeQuery& query, serving::ServingPoint& point,
                                       report::Response& response);
report::Members speculation_section(const ServeQuery& query, const serving::ServingPoint& point,
                                    const search::Speculation& found);
/// Collectives of one pass through each kind of layer.
report::Items collectives_list(const ServeQuery& query, const serving::ServingPoint& point);
/// Every matrix product of a decode step: its intensity, and the batch at which it becomes compute-bound.
report::Items balance_list(const ServeQuery& query, const serving::ServingPoint& point);
/// A step's time at the memory: keys and values, ideally, and all else, which weights outweigh.
struct MemoryTime {
  Seconds weights, cache;
};
MemoryTime memory_time(const ServeQuery& query, const serving::ServingTime& step);
/// The chosen strategy at the batches of --vary.
Result<report::Items> sweep_list(const ServeQuery& query, const serving::ServingPoint& point);
/// Weights and caches in formats of 16, 8 and 4 bits.
report::Items fits_list(const ServeQuery& query, double batch);
/// The question on other slices of the same chip, and a slice in the grammar of clusters.
search::SliceQuestion slice_question(const ServeQuery& query, const Request& request, const Context& context);
std::string slice_text(const ServeQuery& query, const search::SliceSize& slice);
/// Says why nothing fits, and where it would.
void say_too_large(const ServeQuery& query, const serving::ServingPoint& point, const Request& request,
                   const Context& context, report::Response& response);
/// Says the minimum latencies of this hardware, and the first slice that meets the limits, with narrower weights if
/// needed.
void say_too_slow(const ServeQuery& query, const search::ServingSearch& found, const Request& request,
                  const Context& context, report::Response& response);
/// The clusters of --compare in the formats of --formats: the best point of each, most tokens per dollar first, and the
/// front of time per token against cost over all of them.
struct Comparison {
  struct Front {
    std::string name;
    ServeQuery query;
    search::ServingSearch found;
  };
  report::Items best, front;
  std::vector<Front> fronts;  ///< of each, the question's own first
};
/// Takes the first cluster of --on that meets the request, and compares it with the others.
Result<search::ServingSearch> first_that_serves(ServeQuery& query, search::ServingSearch found, const Request& request,
                                                const Context& context);
Result<Comparison> comparison(const ServeQuery& query, const search::ServingSearch& found, const Request& request,
                              const Context& context);

// The steps of a server kernel by kernel: what --list shows and --explain derives.

/// The steps of a point, derived from their kernels and collectives, and its memory.
struct DerivedSteps {
  NumberOf<Traced, Seconds> decode, prefill;
  NumberOf<Traced, Seconds> mixed;  ///< a step with prompts
  NumberOf<Traced, Bytes> memory;
};
Result<DerivedSteps> derive_steps(const Traced& num, const ServeQuery& query, const serving::ServingPoint& point);

/// The kernels and collectives of a decode step and of a prefill.
struct ListedSteps {
  std::vector<serving::PricedStep> decode, prefill;
};
Result<ListedSteps> listed_steps(const ServeQuery& query, const serving::ServingPoint& point);

/// Adds the kernels and collectives of a decode step and of a prefill.
Result<void> list_steps(const ServeQuery& query, const serving::ServingPoint& point, report::Members& out);

// What would be better than the answered point of `assay serve`: other plans for the same request, and other formats,
// batches and hardware for the same plan.

/// Rows of plans that differ in one choice and produce more tokens, at the same batch or another one.
Result<report::Items> change_rows(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

/// Rows of what would help most: the plan of a point with narrower formats, twice the batch, faster chips and links, or
/// twice the chips. Each is priced as the point itself; those that help come first. `profiles` are those of the query.
Result<report::Items> help_rows(const Request& request, const Context& context, const ServeQuery& query,
                                const serving::ServingPoint& point, serving::KnownProfiles* profiles);

// `assay serve --emit`: the answered plan as something to run.

/// The request with what the target of --emit takes for granted; the same where nothing is to be emitted.
Result<Request> to_run(const Request& request, const Context& context);

/// A point and its question as fields of a plan.
launch::Settings plan_of(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

/// Bounds the search by what one server of the named software runs, as the file of its options says.
Result<void> keep_to_software(const Request& request, const Context& context, ServeQuery& query);

/// The script of --emit, as the answer.
Result<void> add_launch(const Request& request, const Context& context, const ServeQuery& query,
                        const serving::ServingPoint& point, const std::optional<search::Speculation>& speculation,
                        report::Response& response);

// Pictures of serving: the front, the parts of a step against the batch, cost against latency, lengths of drafts, load.

/// Time per token and of a loop against the number of drafted tokens.
draw::Chart draft_chart(const ServeQuery& query, const serving::ServingPoint& point, const search::Speculation& found);

/// Percentiles of both latencies against the rate of requests.
Result<draw::Scene> load_picture(const ServeQuery& query, const serving::ServingPoint& point);

/// `what` is front, step or cost. `fronts` has all compared clusters and formats; empty if none.
Result<draw::Chart> serve_chart(const ServeQuery& query, const search::ServingSearch& found,
                                const serving::ServingPoint& point, std::string_view what,
                                const std::vector<Comparison::Front>& fronts);

// The one screen that `assay serve` answers with.

/// From the results; `plan` is the strategy that they show.
report::Screen serve_screen(const Request& request, const report::Response& response, const std::string& plan);

}  // namespace assay::verbs::serve
