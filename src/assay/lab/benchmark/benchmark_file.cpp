#include "assay/lab/benchmark/benchmark_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "assay/base/text.h"
#include "assay/lab/benchmark/parts.h"

namespace assay::benchmark {
namespace {

constexpr double most_failed = 0.01;  ///< share of requests; more of them free the server for the others

/// The texts of a number that JSON of Python and logs have: thousands in commas, infinities and no number.
std::optional<double> number_of(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  const double infinity = std::numeric_limits<double>::infinity();
  if (text == "inf" || text == "infinity") return infinity;
  if (text == "-inf" || text == "-infinity") return -infinity;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return parse_number(text);
}

/// Seconds in a unit, by any of its names.
std::optional<double> seconds_of(std::string_view unit) {
  if (unit == "sec" || unit == "seconds") unit = "s";
  const auto one = parse_as<Seconds>(fmt::format("1 {}", unit), "");
  return one ? std::optional(one->value()) : std::nullopt;
}

Result<void> add_figure(const Figure& figure, const FigureFacts& facts, const Part& part, BenchmarkRow& row) {
  for (const Figure::Place& place : figure.places) {
    const std::optional<std::string> text = part.find(place.path);
    if (!text || text->empty()) continue;
    if (facts.kind == FigureKind::text) {
      row.texts.emplace(figure.name, *text);
      return {};
    }
    const auto refuse = [&](std::string_view rule, std::string_view remedy) {
      return fail(fmt::format("{}: {}", row.place, place.path), fmt::format("{}, got {}", rule, in_quotes(*text)),
                  std::string(remedy));
    };
    const std::optional<double> value = number_of(*text);
    if (!value) return refuse("it is a number", "take the file as its program wrote it");
    if (std::isnan(*value) || *value < 0.0 || (facts.measured && (*value == 0.0 || std::isinf(*value))))
      return refuse(facts.measured ? "a measured figure is above 0 and finite" : "it is not below 0",
                    "the run measured nothing there: repeat it");
    double unit = 1.0;
    if (!place.unit.empty()) {
      const bool stated = place.unit.front() == '@';
      const std::string name = stated ? part.find(place.unit.substr(1)).value_or("") : place.unit;
      const auto seconds = seconds_of(name);
      if (!seconds)
        return fail(fmt::format("{}: {}", row.place, place.path), fmt::format("{} is no unit of time", in_quotes(name)),
                    "ns, us, ms or s");
      unit = *seconds;
    }
    row.numbers.emplace(figure.name, *value * unit);
    return {};
  }
  return {};
}

/// Figures that follow from others.
void add_derived(BenchmarkRow& row) {
  const auto derive = [&](std::string_view name, std::optional<double> value) {
    if (value && !row.number(name)) row.numbers.emplace(name, *value);
  };
  const auto each = [&](std::string_view all) -> std::optional<double> {
    const auto total = row.number(all), requests = row.number("requests");
    return total && requests && *requests > 0.0 ? std::optional(*total / *requests) : std::nullopt;
  };
  derive("prompt", each("prompts"));
  derive("output", each("outputs"));
  const auto of_chip = row.number("sequences_of_chip"), chips = row.number("chips");
  if (of_chip && chips) derive("sequences", *of_chip * *chips);
}

Result<void> check_row(const BenchmarkRow& row, std::vector<std::string>& notes) {
  const double failed = row.number("failed").value_or(0.0), requests = row.number("requests").value_or(1.0);
  if (requests == 0.0)
    return fail(row.place, "no request of this run was answered", "look into the server's log, and run it again");
  if (failed > most_failed * (failed + requests))
    return fail(row.place,
                fmt::format("{:.0f} of {:.0f} requests failed: the others had the server to themselves", failed,
                            failed + requests),
                "repeat the run until at most 1 % fail");
  if (failed > 0.0) notes.push_back(fmt::format("{}: {:.0f} failed requests are left out", row.place, failed));
  const auto latency = row.number("latency"), first = row.number("first_token");
  if (latency && first && *latency < *first)
    return fail(
        row.place,
        fmt::format("a request takes {} and its first token {}", human(Seconds(*latency)), human(Seconds(*first))),
        "one of the two is in another unit: seconds or milliseconds");
  for (const FigureFacts& figure : all_figures)
    if (figure.measured && row.number(figure.name)) return {};
  return fail(row.place, "it has no measured time or throughput", "take the file as its program wrote it");
}

Result<BenchmarkRow> row_of(const Part& part, const Writer& writer) {
  BenchmarkRow row;
  row.place = part.place;
  for (const Figure& figure : writer.figures) ASSAY_CHECK(add_figure(figure, *find_figure(figure.name), part, row));
  return row;
}

/// The steps of a run as one row: the median of each figure over those that are warm.
Result<BenchmarkRow> run_of(const std::vector<BenchmarkRow>& steps, const Writer& writer, std::string_view file) {
  const auto cold = static_cast<std::size_t>(writer.warm_up);
  if (steps.size() <= cold)
    return fail(std::string(file), fmt::format("it has {} steps, and the first {} warm up", steps.size(), cold),
                "run a few more steps");
  BenchmarkRow row;
  for (const BenchmarkRow& step : steps) {
    for (const auto& [name, text] : step.texts) row.texts.emplace(name, text);
    for (const auto& [name, number] : step.numbers) row.numbers.emplace(name, number);
  }
  row.place = file;
  for (auto& [name, number] : row.numbers) {
    if (!find_figure(name)->measured) continue;
    std::vector<double> values;
    for (std::size_t i = cold; i < steps.size(); ++i)
      if (const auto value = steps[i].number(name)) values.push_back(*value);
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    number = values[values.size() / 2];
  }
  return row;
}

/// The writer that knows the file; else an error that says what the nearest one misses.
Result<const Writer*> writer_of(std::string_view file, const Document& document, const std::vector<Writer>& writers) {
  const Writer *best = nullptr, *nearest = nullptr;
  std::vector<std::string> missing;
  double most = 0.0;
  for (const Writer& writer : writers) {
    std::vector<std::string> lacks;
    const std::vector<Part> parts = document.parts(writer);
    for (const std::string& path : writer.has) {
      const std::vector<std::string> names = split(path, '|');
      if (parts.empty() ||
          std::none_of(names.begin(), names.end(), [&](const auto& name) { return parts.front().has(name); }))
        lacks.push_back(names.front());
    }
    const double share = 1.0 - static_cast<double>(lacks.size()) / static_cast<double>(writer.has.size());
    if (lacks.empty() && (!best || writer.has.size() > best->has.size())) best = &writer;
    if (share > most) nearest = &writer, most = share, missing = lacks;
  }
  if (best) return best;
  std::vector<std::string> names;
  for (const Writer& writer : writers) names.push_back(writer.name);
  if (nearest)
    return fail(std::string(file),
                fmt::format("it looks like a file of {}, but lacks {}", nearest->name, join(missing, ", ")),
                "take the file as its program wrote it");
  return fail(std::string(file), "it is a file of no benchmark that is known", "known: " + join(names, ", "));
}

}  // namespace

std::optional<double> BenchmarkRow::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

std::string BenchmarkRow::text(std::string_view name) const {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

Result<BenchmarkFile> read_benchmark(std::string_view text, std::string_view file, const std::vector<Writer>& writers) {
  ASSAY_TRY(document, Document::parse(text, file));
  ASSAY_TRY(writer, writer_of(file, document, writers));
  BenchmarkFile out{*writer, {}, {}};
  for (const Part& part : document.parts(*writer)) {
    ASSAY_TRY(row, row_of(part, *writer));
    out.rows.push_back(std::move(row));
  }
  if (!writer->step.empty()) {
    ASSAY_TRY(run, run_of(out.rows, *writer, file));
    out.rows = {std::move(run)};
  }
  for (BenchmarkRow& row : out.rows) {
    add_derived(row);
    ASSAY_CHECK(check_row(row, out.notes));
  }
  return out;
}

}  // namespace assay::benchmark
