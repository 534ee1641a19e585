#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/sweep/tables.h"
#include "assay/base/sqlite/database.h"

namespace assay::sweep {
namespace {

DatabaseCell cell_of(const report::Value& value) {
  if (const auto* truth = std::get_if<bool>(&value.data())) return std::int64_t{*truth};
  if (const auto* count = std::get_if<std::int64_t>(&value.data())) return *count;
  if (const auto* text = std::get_if<std::string>(&value.data())) return *text;
  if (const auto number = report::numeric(value)) return *number;
  return {};
}

std::string sql_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

Result<void> write_database(const std::string& path, const Store& store, std::span<const std::string> requests,
                            const Columns& columns) {
  // What SQLite holds in one table, less the four of every row.
  constexpr std::size_t most_columns = 1990;
  Columns held = columns;
  if (held.results.size() + held.arguments.size() > most_columns)
    held.results.resize(most_columns - std::min(most_columns, held.arguments.size()));
  ASSAY_TRY(database, Database::create(path));
  std::string names = "request, outcome, headline, error", marks = "?, ?, ?, ?";
  for (const std::string& name : held.arguments) names += ", " + sql_name("arg." + name), marks += ", ?";
  for (const auto& [name, unit] : held.results) names += ", " + sql_name(name), marks += ", ?";
  ASSAY_CHECK(database.run("BEGIN"));
  ASSAY_CHECK(database.run("CREATE TABLE units (name TEXT PRIMARY KEY, unit TEXT)"));
  ASSAY_CHECK(database.prepare("INSERT INTO units VALUES (?, ?)"));
  for (const auto& [name, unit] : held.results) {
    if (unit.empty()) continue;
    database.bind(0, name);
    database.bind(1, unit);
    ASSAY_CHECK(database.put());
  }
  ASSAY_CHECK(database.run(fmt::format("CREATE TABLE answers ({})", names)));
  ASSAY_CHECK(database.prepare(fmt::format("INSERT INTO answers ({}) VALUES ({})", names, marks)));
  for (const std::string& request : requests) {
    if (!store.has(request)) continue;
    ASSAY_TRY(row, store.row(request));
    int column = 0;
    for (const std::string& text : {row.request, row.outcome, row.headline, row.error})
      database.bind(column++, text.empty() ? DatabaseCell() : DatabaseCell(text));
    for (const std::string& name : held.arguments) {
      const std::string text = row.argument(name);
      database.bind(column++, text.empty() ? DatabaseCell() : DatabaseCell(text));
    }
    for (const report::Value* value : held.results_of(row))
      database.bind(column++, value ? cell_of(*value) : DatabaseCell());
    ASSAY_CHECK(database.put());
  }
  return database.run("COMMIT");
}

}  // namespace assay::sweep
