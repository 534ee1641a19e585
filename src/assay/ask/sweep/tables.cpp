#include "assay/ask/sweep/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "assay/ask/report/render.h"
#include "assay/base/text.h"

namespace assay::sweep {
namespace {

std::string unit_of(const report::Value& value) {
  const auto* quantity = std::get_if<report::QuantityValue>(&value.data());
  return quantity ? base_unit(quantity->quantity.dim) : std::string();
}

/// A number so that it reads back as the same, a truth as yes or no.
std::string plain_text(const report::Value& value) {
  if (const auto* count = std::get_if<std::int64_t>(&value.data())) return std::to_string(*count);
  if (const auto number = report::numeric(value)) return exact_number(*number);
  return report::scalar_text(value);
}

}  // namespace

std::size_t Columns::place_of(const std::string& path, std::size_t guess) const {
  if (guess < results.size() && results[guess].first == path) return guess;
  const auto found =
      std::find_if(results.begin(), results.end(), [&](const auto& column) { return column.first == path; });
  return static_cast<std::size_t>(found - results.begin());
}

void Columns::add(const Row& row) {
  for (const auto& [name, value] : row.arguments)
    if (std::find(arguments.begin(), arguments.end(), name) == arguments.end()) arguments.push_back(name);
  std::size_t at = 0;
  for (const auto& [path, value] : row.results) {
    at = place_of(path, at);
    if (at == results.size()) results.emplace_back(path, std::string());
    if (results[at].second.empty()) results[at].second = unit_of(value);
    ++at;
  }
}

std::vector<const report::Value*> Columns::results_of(const Row& row) const {
  std::vector<const report::Value*> out(results.size(), nullptr);
  std::size_t at = 0;
  for (const auto& [path, value] : row.results) {
    at = place_of(path, at);
    if (at < out.size()) out[at++] = &value;
  }
  return out;
}

Result<void> write_csv(const std::string& path, const Store& store, std::span<const std::string> requests,
                       const Columns& columns) {
  std::ofstream file(path, std::ios::binary);
  std::string line;
  for (const std::string& name : columns.arguments) line += report::csv_quoted("arg." + name) + ",";
  line += "outcome,headline,error";
  for (const auto& [name, unit] : columns.results)
    line += "," + report::csv_quoted(unit.empty() ? name : fmt::format("{} [{}]", name, unit));
  file << line << "\n";
  for (const std::string& request : requests) {
    if (!store.has(request)) continue;
    ASSAY_TRY(row, store.row(request));
    line.clear();
    for (const std::string& name : columns.arguments) line += report::csv_quoted(row.argument(name)) + ",";
    line += fmt::format("{},{},{}", row.outcome, report::csv_quoted(row.headline), report::csv_quoted(row.error));
    for (const report::Value* value : columns.results_of(row))
      line += "," + (value ? report::csv_quoted(plain_text(*value)) : "");
    file << line << "\n";
  }
  file.close();
  if (!file) return fail("--results", fmt::format("{} cannot be written", in_quotes(path)), "is there room?");
  return {};
}

}  // namespace assay::sweep
