// The parts of serve's answer, each a table or a list of its own.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/serve/query.h"
#include "assay/predict/search/serving/slices.h"
#include "assay/predict/search/serving/speculation.h"
#include "assay/predict/serving/bounds.h"
#include "assay/predict/serving/throughput.h"

namespace assay::verbs::serve {

serving::ServingBounds bounds_of(const ServeQuery& query, double batch);

/// The search for what was asked, with measured times in place of estimates where they are given.
Result<search::ServingSearch> search_as_measured(const ServeQuery& query);
/// Notes measured times below the lower bound of the chips.
void note_measured(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response);

report::Members bounds_section(const ServeQuery& query, const serving::ServingPoint& point);
/// What the server yields that both prefills and decodes, and what it costs.
report::Members served_section(const ServeQuery& query, const serving::ServingPoint& point);
/// A batch from its prompts to its last tokens, without others in between; in turns if not all of it fits.
Result<report::Members> batch_section(const ServeQuery& query, const serving::ServingPoint& point);
/// How prefill and decode balance, and prefill on separate chips.
report::Members batching_section(const ServeQuery& query, const search::ServingSearch& found,
                                 const serving::ServingPoint& point);
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

}  // namespace assay::verbs::serve
