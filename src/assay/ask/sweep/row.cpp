#include "assay/ask/sweep/row.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "assay/ask/report/render.h"
#include "assay/base/text.h"

namespace assay::sweep {
namespace {

using RowJson = nlohmann::ordered_json;

void add_singles(const std::string& path, const report::Value& value, report::Members& out) {
  if (value.items()) return;
  if (const report::Members* members = value.members()) {
    for (const auto& [key, member] : *members) add_singles(path.empty() ? key : path + "." + key, member, out);
  } else if (const auto* quantity = std::get_if<report::QuantityValue>(&value.data())) {
    out.emplace_back(path, quantity->quantity);  // without its sources, which are the same in all rows
  } else {
    out.emplace_back(path, value);
  }
}

report::Value value_of(const RowJson& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    report::Items items;
    for (const RowJson& item : json) items.push_back(value_of(item));
    return items;
  }
  if (!json.is_object()) return {};
  if (json.size() == 2 && json.contains("value") && json.contains("unit") && json["unit"].is_string()) {
    const auto unit = parse_quantity("1 " + json["unit"].get<std::string>(), "");
    if (unit && json["value"].is_number()) return AnyQuantity(json["value"].get<double>(), unit->dim);
    return {};
  }
  report::Members members;
  for (const auto& [key, member] : json.items()) members.emplace_back(key, value_of(member));
  return members;
}

std::string one_line(const report::Value& value) {
  std::string text = report::render_json(value, report::Layout::one_line);
  text.pop_back();
  return text;
}

report::Members arguments_of(const report::Value& request) {
  report::Members out{{"verb", *request.find("verb")}};
  for (const auto& argument : *request.find("arguments")->members()) out.push_back(argument);
  return out;
}

}  // namespace

std::optional<double> Row::number(std::string_view path) const {
  for (const auto& [key, value] : results)
    if (key == path) return report::numeric(value);
  return std::nullopt;
}

std::string Row::argument(std::string_view name) const {
  for (const auto& [key, value] : arguments) {
    if (key != name) continue;
    const report::Items* items = value.items();
    if (!items) return report::scalar_text(value);
    std::vector<std::string> parts;
    for (const report::Value& item : *items) parts.push_back(report::scalar_text(item));
    return join(parts, ", ");
  }
  return {};
}

Row make_row(const report::Value& request, const Result<report::Response>& answer) {
  Row row;
  row.request = one_line(request);
  row.arguments = arguments_of(request);
  if (answer) {
    row.headline = report::headline(*answer);
    row.outcome = report::name(answer->outcome);
    add_singles("", report::Value(answer->results), row.results);
  } else {
    const Error& error = answer.error();
    row.outcome = "error";
    row.error = error.where.empty() ? error.what : fmt::format("{}: {}", error.where, error.what);
  }
  return row;
}

std::string line_of(const Row& row) {
  const std::string rest =
      row.is_answered()
          ? report::render_json(
                report::Members{{"headline", row.headline}, {"outcome", row.outcome}, {"results", row.results}},
                report::Layout::one_line)
          : report::render_json(report::Members{{"outcome", row.outcome}, {"error", row.error}},
                                report::Layout::one_line);
  return fmt::format("{{\"request\":{},{}", row.request, std::string_view(rest).substr(1));
}

std::optional<Row> read_row(std::string_view line) {
  const RowJson json = RowJson::parse(line, nullptr, false);
  const auto is_object = [&](const char* key) { return json.contains(key) && json[key].is_object(); };
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string{};
  };
  if (!json.is_object() || !is_object("request")) return std::nullopt;
  const report::Value request = value_of(json["request"]);
  const report::Value *verb = request.find("verb"), *arguments = request.find("arguments");
  if (!verb || !arguments || !arguments->members()) return std::nullopt;
  Row row{one_line(request), arguments_of(request), text("headline"), text("outcome"), text("error"), {}};
  if (is_object("results"))
    for (const auto& [path, value] : json["results"].items()) row.results.emplace_back(path, value_of(value));
  return row;
}

}  // namespace assay::sweep
