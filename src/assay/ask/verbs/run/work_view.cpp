#include <fmt/format.h>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/run/serving_view.h"

namespace assay::verbs::run {

WorkView work_view(const model::Transformer& model, const engine::Prompt& prompt) {
  draw::Chart chart;
  chart.title = "Work of a token, with a cache and without";
  chart.subtitle = "without one, all tokens of the sequence are read again for each new one";
  chart.x.label = "tokens of the sequence";
  chart.y.label = "work of the next one";
  chart.y.unit = "FLOP";
  chart.series = {{"without a cache"}, {"with a cache"}};
  WorkView view;
  Flops sums[2] = {};
  for (std::int64_t made = 1; made < prompt.wanted; ++made) {
    const std::int64_t tokens = std::ssize(prompt.tokens) + made;
    const Flops each[2] = {engine::next_token_flops(model, tokens, false),
                           engine::next_token_flops(model, tokens, true)};
    for (std::size_t way = 0; way < 2; ++way) {
      sums[way] += each[way];
      chart.series[way].points.push_back({static_cast<double>(tokens), each[way].value()});
    }
    view.rows.emplace_back(report::Members{{"tokens", tokens}, {"without_cache", each[0]}, {"with_cache", each[1]}});
  }
  if (sums[1] > Flops(0))
    view.sentence = fmt::format("without a cache, the tokens after the first of a request take {:.3g} times the work",
                                sums[0] / sums[1]);
  view.picture = draw::draw(chart);
  return view;
}

}  // namespace assay::verbs::run
