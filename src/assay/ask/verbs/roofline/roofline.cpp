// assay roofline: what limits an operation on a chip, by how much, and where that changes.
#include "assay/predict/roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/chart/roofline_chart.h"
#include "assay/ask/verbs/roofline/query.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"

namespace assay::verbs::roofline_verb {
namespace {

using Query = RooflineQuery;
using Estimate = std::optional<kernel::OperationEstimate>;

template <class N>
roofline::Work<N> work_of(const N& num, const Query& query, const roofline::Operation* operation) {
  if (!operation) return {num.given("flops", query.flops, "--flops"), num.given("bytes", query.bytes, "--bytes")};
  return roofline::operation_work(num, *operation, query.counting);
}

/// With --pad the matrix unit also multiplies the padding.
roofline::Work<Plain> padded(const Query& query, const roofline::Operation* operation, roofline::Work<Plain> work) {
  if (query.pad && operation)
    if (const auto padding = roofline::pad_to_unit(operation->matmul(), query.cluster.chip))
      work.flops = padding->flops;
  return work;
}

roofline::Bound<Plain> bound_of(const Query& query, const roofline::Operation* operation) {
  return roofline::roofline_bound(Plain{}, padded(query, operation, work_of(Plain{}, query, operation)), query.roof);
}

/// Bounds and estimate; from the chip's calibration where it has one for this.
report::Members time_range(const Estimate& calibrated, const roofline::Bound<Plain>& bound,
                           const roofline::Operation* operation) {
  if (calibrated && operation) return estimate_range(*calibrated, bound, *operation);
  return report::range(bound.lower, bound.estimate, bound.upper);
}

report::Value finite(AnyQuantity q) { return std::isfinite(q.value) ? report::Value(q) : report::Value(); }

void add_padding(const Query& query, const roofline::Operation& operation, report::Members& out) {
  const auto padding = roofline::pad_to_unit(operation.matmul(), query.cluster.chip);
  if (!padding) return;
  out.emplace_back("padding",
                   report::Members{{"m", padding->m},
                                   {"k", padding->k},
                                   {"n", padding->n},
                                   {"flops", padding->flops},
                                   {"utilisation", padding->utilisation},
                                   {"compute_time", padding->flops / (query.roof.chips * query.roof.peak.value)}});
}

void add_tile(const Query& query, const roofline::Operation& operation, report::Members& out) {
  const roofline::Matmul matmul = operation.matmul();
  report::Members tile;
  if (query.counting.tile) {
    tile = {{"m", query.counting.tile->m},
            {"k", query.counting.tile->k},
            {"n", query.counting.tile->n},
            {"intensity_without_store", roofline::tile_intensity(matmul, *query.counting.tile)}};
    tile.emplace_back("compute_bound", roofline::tile_intensity(matmul, *query.counting.tile) >=
                                           query.roof.peak.value / query.roof.bandwidth.value);
  }
  tile.emplace_back("smallest_square", roofline::smallest_square_tile(matmul, query.roof));
  out.emplace_back("tile", std::move(tile));
}

void add_knee(const Query& query, const roofline::Operation& operation, report::Members& out) {
  const roofline::Knee knee = roofline::find_knee(operation, *query.letter, query.counting, query.roof);
  report::Members entry{{"name", *query.letter}, {"value", knee.exact}};
  entry.emplace_back("whole", knee.exact ? report::Value(std::ceil(*knee.exact)) : report::Value());
  entry.emplace_back("approximate", knee.approximate);
  entry.emplace_back("intensity_limit", knee.limit);
  if (!knee.exact)
    entry.emplace_back("verdict",
                       knee.always_compute_bound ? "compute-bound at every size" : "memory-bound at every size");
  out.emplace_back("critical_size", std::move(entry));
}

/// Where an operation with a free size is evaluated: at its knee, or at 1 where it has none.
double evaluation_point(const Query& query, const roofline::Operation& operation) {
  return roofline::find_knee(operation, *query.letter, query.counting, query.roof).exact.value_or(1.0);
}

/// The operation with its free size, if any, at the point of evaluation.
roofline::Operation sized(const Query& query, const roofline::Operation& operation) {
  return query.letter ? operation.with(*query.letter, evaluation_point(query, operation)) : operation;
}

report::Items sweep_rows(const Query& query, const Estimate& calibrated, const roofline::Operation& operation) {
  return report::rows_of(query.sweep->values, [&](double value) {
    const roofline::Operation at = operation.with(query.sweep->name, value);
    const roofline::Work<Plain> work = padded(query, &at, work_of(Plain{}, query, &at));
    const roofline::Bound<Plain> bound = roofline::roofline_bound(Plain{}, work, query.roof);
    return report::Members{{query.sweep->name, static_cast<std::int64_t>(value)},
                           {"flops", work.flops},
                           {"bytes", work.bytes},
                           {"intensity", bound.intensity},
                           {"compute_time", bound.compute},
                           {"memory_time", bound.memory},
                           {"time", time_range(calibrated, bound, &at)},
                           {"achieved", bound.achieved},
                           {"limiter", roofline::roofline_limiter(bound)}};
  });
}

/// "D=4096, F=4096": the letters of an operation with their numbers, but for one.
std::string letter_values(const roofline::Operation& operation, std::string_view except) {
  std::string text;
  for (const std::string& letter : operation.names()) {
    if (letter == except) continue;
    std::optional<double> value;
    for (const roofline::OperationTensor& tensor : operation.operands())
      for (const roofline::OperationSize& size : tensor.sizes)
        if (size.name == letter) value = size.value;
    if (value) text += (text.empty() ? "" : ", ") + fmt::format("{}={}", letter, exact_number(*value));
  }
  return text;
}

/// A point's label: its letters where it has some, else its shape.
std::string point_name(const Query& query, const roofline::Operation& operation) {
  if (query.letter)
    return fmt::format("{} = {}", *query.letter,
                       human_number(std::round(evaluation_point(query, operation) * 10.0) / 10.0));
  const std::string letters = letter_values(operation, "");
  if (!letters.empty()) return letters;
  std::string text;
  for (const roofline::OperationSize& size : operation.operands()[0].sizes)
    text += (text.empty() ? "" : "x") + human_number(size.value.value_or(0));
  return operation.function() ? fmt::format("{}({})", operation.function()->name, text) : text;
}

std::string curve_name(const Query& query, const roofline::Operation& operation) {
  const std::string letters = letter_values(operation, *query.letter);
  return letters.empty() ? operation.text() : letters;
}

std::string where_text(const Query& query) {
  return fmt::format("{}, {}", query.cluster.chips() > 1 ? query.cluster.text : query.cluster.chip.name, query.unit);
}

/// Achieved FLOP/s of an operation over the sizes of the sweep.
draw::SizeCurve size_curve(const Query& query, const roofline::Operation& operation) {
  constexpr int steps = 240;
  const double first = query.sweep->values.front(), last = query.sweep->values.back();
  draw::SizeCurve curve{curve_name(query, operation),
                        {},
                        roofline::find_knee(operation, *query.letter, query.counting, query.roof).exact};
  const auto add = [&](double size) {
    const roofline::Operation at = operation.with(*query.letter, size);
    curve.points.push_back({size, bound_of(query, &at).achieved.value()});
  };
  const bool wide = last > 1100.0 * first;  // the chart turns logarithmic there too
  for (int i = 0; i <= steps; ++i)
    add(wide ? first * std::pow(last / first, i / static_cast<double>(steps))
             : first + (last - first) * i / static_cast<double>(steps));
  if (curve.knee && *curve.knee > first && *curve.knee < last) add(*curve.knee);
  std::sort(curve.points.begin(), curve.points.end(),
            [](const draw::PlotPoint& a, const draw::PlotPoint& b) { return a.x < b.x; });
  return curve;
}

draw::Scene sweep_picture(const Query& query) {
  std::vector<draw::SizeCurve> curves;
  for (const roofline::Operation& operation : query.operations) curves.push_back(size_curve(query, operation));
  const std::string title = query.operations.size() == 1 ? query.operations.front().text()
                                                         : fmt::format("Achieved FLOP/s against {}", *query.letter);
  return draw::draw(
      draw::size_chart(title, fmt::format("lower bound of the time, {} from {}", where_text(query), query.roof.level),
                       *query.letter, curves, query.roof.chips * query.roof.peak.value));
}

std::vector<draw::RoofLine> shown_roofs(const Query& query) {
  std::vector<draw::RoofLine> roofs{{fmt::format("{}", query.roof.level), query.roof.chips * query.roof.peak.value,
                                     query.roof.chips * query.roof.bandwidth.value}};
  for (const hardware::MemoryRoof& other : query.shown_roofs)
    if (other.name != query.roof.level)
      roofs.push_back({other.name, roofs.front().peak, query.roof.chips * other.bandwidth.value});
  return roofs;
}

draw::Scene picture_of(const Query& query) {
  if (query.sweep) return sweep_picture(query);
  std::vector<draw::RoofPoint> points;
  for (const roofline::Operation& operation : query.operations) {
    const roofline::Operation at = sized(query, operation);
    const roofline::Bound<Plain> bound = bound_of(query, &at);
    points.push_back({point_name(query, operation), bound.intensity, bound.achieved});
  }
  if (query.operations.empty())
    points.push_back({"this work", bound_of(query, nullptr).intensity, bound_of(query, nullptr).achieved});
  const std::string title = query.operations.empty()       ? "Roofline"
                            : query.operations.size() == 1 ? query.operations.front().text()
                                                           : fmt::format("{} operations", query.operations.size());
  return draw::draw(draw::roofline_chart(title, where_text(query), shown_roofs(query), points));
}

/// The operation that the answer is about (the first; none for raw work), at the size where it is evaluated.
struct Evaluated {
  const roofline::Operation* first = nullptr;
  std::optional<roofline::Operation> at;
  roofline::Work<Plain> work;
  roofline::Bound<Plain> bound;

  const roofline::Operation* operation() const { return at ? &*at : nullptr; }
};
Evaluated evaluate(const Query& query) {
  Evaluated all;
  if (!query.operations.empty()) all.first = &query.operations.front();
  if (all.first) all.at = sized(query, *all.first);
  all.work = padded(query, all.operation(), work_of(Plain{}, query, all.operation()));
  all.bound = roofline::roofline_bound(Plain{}, all.work, query.roof);
  return all;
}

/// What is asked and what it amounts to in FLOP and bytes.
void add_work(const Query& query, const Evaluated& all, report::Members& out) {
  const roofline::Operation* operation = all.operation();
  if (all.first) out.emplace_back("operation", all.first->text());
  if (query.letter)
    out.emplace_back("at", report::Members{{"name", *query.letter}, {"value", evaluation_point(query, *all.first)}});
  out.emplace_back("chip", query.cluster.chip.id);
  out.emplace_back("chips", query.cluster.chips());
  out.emplace_back("unit", query.unit);
  out.emplace_back("memory", query.roof.level);
  out.emplace_back("flops", all.work.flops);
  if (operation && operation->is_matmul() && query.counting.split_chips == 1) {
    const roofline::Matmul m = operation->matmul();
    out.emplace_back("exact_flops", Flops(m.batch * m.m * m.n * (2.0 * m.k - 1.0)));
  }
  out.emplace_back("bytes", all.work.bytes);
  if (query.roof.chips > 1) {
    out.emplace_back("flops_per_chip", all.work.flops / query.roof.chips);
    out.emplace_back("bytes_per_chip", all.work.bytes / query.roof.chips);
  }
  out.emplace_back("peak", report::Value(query.roof.peak));
  out.emplace_back("bandwidth", report::Value(query.roof.bandwidth));
  report::Items levels;
  for (const hardware::MemoryRoof& level : hardware::memory_roofs(query.cluster.chip))
    levels.emplace_back(report::Members{{"name", level.name},
                                        {"bandwidth", report::Value(level.bandwidth)},
                                        {"critical_intensity", query.roof.peak.value / level.bandwidth.value}});
  out.emplace_back("levels", std::move(levels));
}

void add_bound(const Query& query, const Estimate& calibrated, const Evaluated& all, report::Members& out) {
  const roofline::Bound<Plain>& bound = all.bound;
  const std::string limiter(roofline::roofline_limiter(bound));
  out.emplace_back("intensity", finite(bound.intensity));
  out.emplace_back("critical_intensity", bound.critical_intensity);
  out.emplace_back("compute_time", bound.compute);
  out.emplace_back("memory_time", bound.memory);
  out.emplace_back("time", time_range(calibrated, bound, all.operation()));
  out.emplace_back("upper_over_lower", bound.upper / bound.lower);
  out.emplace_back("limiter", limiter);
  const bool by_compute = limiter == "compute";
  const Seconds winner = by_compute ? bound.compute : bound.memory, other = by_compute ? bound.memory : bound.compute;
  out.emplace_back("headroom", finite(AnyQuantity{winner / other, Dim{}}));
  out.emplace_back("achieved", bound.achieved);
  out.emplace_back("peak_share", (bound.compute / bound.lower));
  const roofline::Operation* operation = all.operation();
  if (operation && operation->function())
    out.emplace_back("elements_per_second", operation->pointwise().elements / bound.lower.value());
  if (operation && operation->is_matmul() && query.counting.split_chips == 1) {
    add_padding(query, *operation, out);
    add_tile(query, *operation, out);
  }
}

/// One row per operation that is compared.
report::Items operation_rows(const Query& query, const Estimate& calibrated) {
  return report::rows_of(query.operations, [&](const roofline::Operation& operation) {
    const roofline::Operation here = sized(query, operation);
    const roofline::Bound<Plain> bound = bound_of(query, &here);
    report::Members row{{"operation", here.text()},
                        {"intensity", bound.intensity},
                        {"time", time_range(calibrated, bound, &here)},
                        {"limiter", roofline::roofline_limiter(bound)}};
    if (query.letter) add_knee(query, operation, row);
    return row;
  });
}

void explain(const Query& query, const Estimate& calibrated, const Evaluated& all, report::Response& response) {
  const Traced num{&response.ledger};
  const roofline::Bound<Traced> traced =
      roofline::roofline_bound(num, work_of(num, query, all.operation()), query.roof);
  const int estimate = calibrated ? calibrated->traced(num, *all.operation()).id : traced.estimate.id;
  response.derived = {traced.lower.id, traced.upper.id, estimate, traced.intensity.id, traced.critical_intensity.id};
  if (query.letter)
    if (const auto knee = roofline::traced_knee(num, *all.first, *query.letter, query.counting, query.roof))
      response.derived.push_back(knee->id);
}

std::string headline(const Query& query, const Evaluated& all) {
  const std::string where =
      fmt::format("{} ({}, {} at {})", query.cluster.chips() > 1 ? query.cluster.text : query.cluster.chip.id,
                  query.unit, query.roof.level, human(query.roof.bandwidth.value));
  if (!query.letter)
    return fmt::format("{}-bound, at least {} on {}", roofline::roofline_limiter(all.bound), human(all.bound.lower),
                       where);
  const roofline::Knee knee = roofline::find_knee(*all.first, *query.letter, query.counting, query.roof);
  if (knee.exact)
    return fmt::format("compute-bound from {} = {} up on {}", *query.letter, human_number(std::ceil(*knee.exact)),
                       where);
  return fmt::format("{} at every {} on {}", knee.always_compute_bound ? "compute-bound" : "memory-bound",
                     *query.letter, where);
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_roofline_query(request, context));
  ASSAY_TRY(calibrated, calibrated_estimate(request, context, query));
  const Evaluated all = evaluate(query);
  report::Response response;
  report::Members& out = response.results;
  add_work(query, all, out);
  add_bound(query, calibrated, all, out);
  response.notes = query.notes;
  if (calibrated) {
    out.emplace_back("calibration", estimate_details(*calibrated, *all.operation()));
    response.notes.push_back(estimate_note(*calibrated, query));
    for (const roofline::Operation& operation : query.operations)
      if (std::string note = padding_note(*calibrated, sized(query, operation)); !note.empty())
        response.notes.push_back(std::move(note));
  }
  if (query.letter) add_knee(query, *all.first, out);
  if (query.operations.size() > 1) {
    out.emplace_back("operations", operation_rows(query, calibrated));
    response.table_key = "operations";
  }
  if (query.sweep) {
    out.emplace_back("sweep", sweep_rows(query, calibrated, *all.first));
    response.table_key = "sweep";
  }
  if (request.explain()) {
    explain(query, calibrated, all, response);
    if (query.pad) response.notes.emplace_back("the derivation counts useful arithmetic; padding is shown above");
  }
  if (request.picture()) response.picture = picture_of(query);
  response.headline = headline(query, all);
  response.notes.insert(response.notes.end(), query.cluster.notes.begin(), query.cluster.notes.end());
  return response;
}

}  // namespace assay::verbs::roofline_verb
