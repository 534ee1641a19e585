#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/option_values.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"

namespace assay::verbs::serve {

Result<model::CacheMix> read_cache_mix(const Request& request, std::vector<std::string>& notes) {
  model::CacheMix mix;
  ASSAY_CHECK(read_count(request, "kv-heads", mix.kv_heads));
  ASSAY_CHECK(read_count(request, "window", mix.window));
  if (const auto text = request.value("local-layers")) {
    const auto slash = text->find('/');
    const auto local = parse_number(std::string_view(*text).substr(0, slash)),
               period =
                   slash == std::string::npos ? std::nullopt : parse_number(std::string_view(*text).substr(slash + 1));
    const auto whole = [](const std::optional<double>& number) { return number && std::floor(*number) == *number; };
    if (!whole(local) || !whole(period) || *local < 0 || *period < 1 || *local > *period || *period > 1000)
      return fail("--local-layers", fmt::format("{} is not so many of so many layers", in_quotes(*text)),
                  "e.g. 5/6: five layers with a window, then one without", Error::Kind::usage);
    if (!mix.window)
      return fail("--local-layers", "local layers see a window, and --window is not given", "add --window 1024",
                  Error::Kind::usage);
    mix.local = static_cast<std::int64_t>(*local);
    mix.period = static_cast<std::int64_t>(*period);
  }
  std::optional<std::int64_t> shared;
  ASSAY_CHECK(read_count(request, "share-cache", shared));
  mix.shared_by = shared.value_or(1);
  if (mix.window && mix.local > 0)
    notes.push_back(fmt::format("--window: {} of every {} layers see {} tokens", mix.local, mix.period, *mix.window));
  if (mix.shared_by > 1)
    notes.push_back(
        fmt::format("--share-cache: {} layers in a row use the keys and values of their first", mix.shared_by));
  return mix;
}

namespace {

struct CachedLength {
  std::int64_t tokens = 1;
  Bytes cache, published;
};

/// Doubling up to the context of the model, or to that of the request.
std::vector<CachedLength> cached_lengths(const ServeQuery& query) {
  constexpr std::int64_t shortest = 1024;
  const std::int64_t asked = query.question.prompt + query.question.output;
  const std::int64_t longest = std::max(std::max(query.model().max_context, asked), 4 * shortest);
  const Dtype dtype = query.question.setup.formats.kv_cache;
  const auto bytes = [&](const model::Transformer& model, std::int64_t tokens) {
    return storage(dtype, static_cast<double>(model::kv_values_per_sequence(model, tokens)));
  };
  std::vector<CachedLength> out;
  for (std::int64_t tokens = shortest; tokens < longest; tokens *= 2)
    out.push_back({tokens, bytes(query.model(), tokens), bytes(query.published, tokens)});
  out.push_back({longest, bytes(query.model(), longest), bytes(query.published, longest)});
  return out;
}

}  // namespace

report::Items cache_rows(const ServeQuery& query) {
  return report::rows_of(cached_lengths(query), [&](const CachedLength& at) {
    return report::Members{{"tokens", at.tokens}, {"cache", at.cache}, {"as_published", at.published}};
  });
}

draw::Chart cache_chart(const ServeQuery& query) {
  draw::Chart chart;
  chart.title = fmt::format("The KV cache of a sequence of {}", query.model().id);
  chart.subtitle = fmt::format("in {}", name(query.question.setup.formats.kv_cache));
  chart.x = {"tokens of the sequence", "", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  chart.y = {"bytes", "B", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  draw::ChartSeries published{"as published", {}, draw::SeriesStyle::dashed, 2},
      asked{"as asked", {}, draw::SeriesStyle::line, 1};
  for (const CachedLength& at : cached_lengths(query)) {
    const auto x = static_cast<double>(at.tokens);
    asked.points.push_back({x, at.cache.value()});
    published.points.push_back({x, at.published.value()});
  }
  chart.series = {std::move(asked), std::move(published)};
  return chart;
}

}  // namespace assay::verbs::serve
