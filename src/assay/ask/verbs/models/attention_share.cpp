#include "assay/ask/verbs/models/models.h"

#include "assay/ask/draw/chart/chart.h"

namespace assay::verbs::models {
namespace {

/// Elements of queries and of results of attention, per token over all layers.
double query_values(const model::Transformer& model) {
  double values = 0.0;
  for (std::size_t i = 0; i < model.decoder.kinds.size(); ++i)
    if (const auto& a = model.decoder.kinds[i].attention)
      values += static_cast<double>(model.decoder.count(i) * a->heads * (a->head_dim + a->value_dim));
  return values;
}

}  // namespace

report::Items length_rows(const model::Transformer& model, model::MaskCount mask, Dtype cache,
                          const Variation& lengths) {
  return report::rows_of(lengths.values, [&](const double length) {
    const auto tokens = static_cast<std::int64_t>(length);
    const model::TokenFlops<Plain> flops = model::token_flops(Plain{}, model, tokens, mask);
    const Bytes kept = storage(cache, static_cast<double>(model::kv_values_per_sequence(model, tokens)));
    const Bytes queries = storage(Dtype::bf16, query_values(model));
    report::Members row{{"sequence", tokens},
                        {"forward", flops.forward},
                        {"attention", flops.attention},
                        {"attention_share", flops.attention / flops.forward},
                        {"kv_bytes_per_sequence", kept}};
    if (kept > Bytes(0)) {
      const Flops last = model::token_flops(Plain{}, model, tokens, model::MaskCount::full).attention;
      row.emplace_back("prefill_intensity", length * flops.attention / (kept + length * queries));
      row.emplace_back("decode_intensity", last / (kept + queries));
    }
    return row;
  });
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
