// Serve's answers about other hardware: what fits in which format, which slice would do, which cluster is cheapest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/api/serve_sections.h"
#include "assay/api/verbs.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/search/serving_fit.h"

namespace assay {
namespace {

std::string chip_text(const Cluster& cluster) {
  std::string text = cluster.text;
  if (const auto star = text.find('*'); star != std::string::npos) text = text.substr(star + 1);
  return text.substr(0, text.find(':'));
}

// Beyond this, splitting one copy of a model further no longer helps decoding.
constexpr std::int64_t most_chips = 512;

/// Asks `look` about the search on every slice of the chip, from `above` chips on, until it says that this is enough.
template <class F>
void each_slice(const ServeQuery& query, const Request& request, const Context& context, std::int64_t above,
                const ServingChoices& choices, F look) {
  const auto overrides = overrides_of(request);
  if (!overrides) return;
  for (const SliceSize& slice : slice_sizes(query.cluster.chip)) {
    if (slice.chips < above || slice.chips > most_chips) continue;
    const std::string text = chip_text(query.cluster) + ":" + slice.text;
    const auto cluster = parse_cluster(text, context.catalogue, "--on", *overrides);
    if (!cluster) continue;
    ServeQuery there = query;
    bind(there);
    const auto found = search_serving(there.question, *cluster, choices);
    if (found && look(text, *found)) return;
  }
}

/// What was asked for, without the sharding: that is another one on another slice.
ServingChoices any_sharding(const ServeQuery& query) {
  ServingChoices choices = query.choices;
  choices.tensor.reset(), choices.pipeline.reset(), choices.data.reset(), choices.expert.reset();
  choices.second.reset();
  return choices;
}

}  // namespace

Dtype narrow_format(const Chip& chip, int bits) {
  const Dtype floating = bits == 8 ? Dtype::fp8 : Dtype::fp4;
  return chip.peak[static_cast<std::size_t>(floating)] ? floating : bits == 8 ? Dtype::int8 : Dtype::int4;
}

Items fits_list(const ServeQuery& query, double batch) {
  const Chip& chip = query.cluster.chip;
  const double capacity = query.question.capacity;
  const std::int64_t context = query.question.prompt + query.question.output;
  Items rows;
  for (Dtype dtype : {Dtype::bf16, narrow_format(chip, 8), narrow_format(chip, 4)}) {
    const double weights = storage(dtype, query.parameters).value();
    const double sequence = storage(dtype, static_cast<double>(kv_values_per_sequence(query.model(), context))).value();
    Members row{{"format", name(dtype)},
                {"weights", Bytes(weights)},
                {"kv_bytes_per_token", storage(dtype, static_cast<double>(kv_values_per_token(query.model())))},
                {"kv_cache_of_a_sequence", Bytes(sequence)},
                {"chips_for_weights", weights / capacity},
                {"least_chips", static_cast<std::int64_t>(std::ceil(weights / capacity))}};
    if (const auto slice = smallest_slice(chip, weights)) {
      const double left = static_cast<double>(slice->chips) * capacity - weights;
      row.emplace_back("smallest_slice", slice->text);
      row.emplace_back("slice_chips", slice->chips);
      row.emplace_back("left_for_caches", Bytes(left));
      if (sequence > 0.0) row.emplace_back("caches", static_cast<std::int64_t>(std::floor(left / sequence)));
    }
    if (const auto slice = smallest_slice(chip, weights + batch * sequence))
      row.emplace_back("slice_for_batch", slice->text), row.emplace_back("slice_for_batch_chips", slice->chips);
    const double left = query.chips() * capacity - weights;
    if (sequence > 0.0) row.emplace_back("max_batch_here", std::max(0.0, std::floor(left / sequence)));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

std::optional<SliceFound> first_slice(const ServeQuery& query, const Request& request, const Context& context,
                                      std::int64_t above, bool (*wanted)(const ServingSearch&)) {
  std::optional<SliceFound> out;
  each_slice(query, request, context, above, any_sharding(query),
             [&](const std::string& text, const ServingSearch& found) {
               if (!wanted(found)) return false;
               out = SliceFound{text, found.best ? *found.best : *found.closest};
               return true;
             });
  return out;
}

std::optional<SliceFound> fastest_slice(const ServeQuery& query, const Request& request, const Context& context) {
  std::optional<SliceFound> out;
  ServingChoices choices = any_sharding(query);
  choices.first_token.reset(), choices.per_token.reset();
  each_slice(query, request, context, 1, choices, [&](const std::string& text, const ServingSearch& found) {
    if (found.fastest_token && (!out || found.fastest_token->decode.estimate < out->point.decode.estimate))
      out = SliceFound{text, *found.fastest_token};
    return false;
  });
  return out;
}

Result<Items> comparison(const ServeQuery& query, const ServingSearch& found, const Request& request,
                         const Context& context) {
  struct Row {
    double tokens_per_dollar = -1.0;
    Members members;
  };
  std::vector<Row> rows;
  const auto add = [&](const ServeQuery& q, const ServingSearch& s) {
    Row row;
    row.members = {{"cluster", q.cluster.text}, {"chips", q.cluster.chips()}, {"meets", s.best.has_value()}};
    if (const ServingPoint* p = s.best ? &*s.best : s.closest ? &*s.closest : nullptr) {
      const double rate = p->tokens_per_second();
      row.members.emplace_back("fits", p->memory.total() <= q.question.capacity);
      row.members.emplace_back("batch", p->batch);
      row.members.emplace_back("latency", Seconds(p->decode.estimate));
      row.members.emplace_back("ttft", Seconds(p->prefill.estimate));
      row.members.emplace_back("throughput", TokensPerSecond(rate));
      row.members.emplace_back("throughput_per_chip", TokensPerSecond(rate / q.chips()));
      if (const auto cost = cost_of_million(q, rate)) {
        if (s.best) row.tokens_per_dollar = 1e6 / cost->value();
        row.members.emplace_back("cost", *cost);
        row.members.emplace_back("tokens_per_dollar", Tokens(1e6) / *cost);
      }
      row.members.emplace_back("strategy", strategy_text(p->strategy));
    }
    rows.push_back(std::move(row));
  };
  add(query, found);
  for (const std::string& text : query.compared) {
    ASSAY_TRY(cluster, parse_cluster(text, context.catalogue, "--compare"));
    // A chip without the format, or chips that the given sharding does not split: a row that says so.
    const auto cannot = [&](const Error& error) {
      rows.push_back({-1.0,
                      {{"cluster", cluster.text},
                       {"chips", cluster.chips()},
                       {"meets", false},
                       {"why", error.what + "; " + error.hint}}});
    };
    auto other = on_other_cluster(query, cluster, request, context);
    if (!other) {
      cannot(other.error());
      continue;
    }
    bind(*other);
    const auto there = search_serving(other->question, cluster, query.choices);
    if (there)
      add(*other, *there);
    else
      cannot(there.error());
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.tokens_per_dollar > b.tokens_per_dollar; });
  Items out;
  for (Row& row : rows) out.emplace_back(std::move(row.members));
  return out;
}

}  // namespace assay
