#include "assay/verbs/models/attention_share.h"

#include "assay/draw/chart/chart.h"

namespace assay::verbs::models {

report::Items length_rows(const model::Transformer& model, model::MaskCount mask, Dtype cache,
                          const Variation& lengths) {
  report::Items rows;
  for (const double length : lengths.values) {
    const auto tokens = static_cast<std::int64_t>(length);
    const model::TokenFlops<Plain> flops = model::token_flops(Plain{}, model, tokens, mask);
    rows.emplace_back(report::Members{
        {"sequence", tokens},
        {"forward", flops.forward},
        {"attention", flops.attention},
        {"attention_share", flops.attention / flops.forward},
        {"kv_bytes_per_sequence", storage(cache, static_cast<double>(model::kv_values_per_sequence(model, tokens)))}});
  }
  return rows;
}

draw::Scene length_picture(const model::Transformer& model, const report::Items& rows) {
  draw::Chart chart;
  chart.title = "Attention's share of the work";
  chart.subtitle = model.name + ", forward pass of one token";
  chart.x = {"tokens of a sequence", "", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::compact};
  chart.y = {"attention over all FLOP", "", draw::ScaleKind::linear, draw::AxisRange{0.0, 1.0},
             draw::NumberStyle::compact};
  draw::ChartSeries share{"attention", {}, draw::SeriesStyle::area, 1};
  const auto at = [](const report::Value& row, std::string_view key) {
    return report::numeric(*row.find(key)).value_or(0.0);
  };
  for (const report::Value& row : rows) share.points.push_back({at(row, "sequence"), at(row, "attention_share")});
  chart.series.push_back(std::move(share));
  if (model.max_context > 0)
    chart.lines.push_back({draw::Orientation::vertical, static_cast<double>(model.max_context), "context"});
  chart.lines.push_back({draw::Orientation::horizontal, 0.5, "half"});
  return draw::draw(chart);
}

}  // namespace assay::verbs::models
