// JSON: the contract between front ends. Quantities are {"value", "unit"} in base units.
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "assay/ask/report/render.h"
#include "assay/base/text.h"
#include "assay/base/version.h"

namespace assay::report {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// An object with room for so many members. They are appended: looking for each key first, as [] does, takes longer
/// than all else of an answer.
Json object_of(std::size_t members) {
  Json json = Json::object();
  json.get_ref<Json::object_t&>().reserve(members);
  return json;
}

template <class T>
void append(Json& json, const std::string& key, T&& value) {
  json.get_ref<Json::object_t&>().emplace_back(key, std::forward<T>(value));
}

Json quantity(AnyQuantity q) {
  Json json = object_of(2);
  append(json, "value", number(q.value));
  append(json, "unit", base_unit(q.dim));
  return json;
}

Json convert(const Value& value) {
  const Value::Variant& data = value.data();
  if (const auto* truth = std::get_if<bool>(&data)) return *truth;
  if (const auto* count = std::get_if<std::int64_t>(&data)) return *count;
  if (const auto* ratio = std::get_if<double>(&data)) return number(*ratio);
  if (const auto* text = std::get_if<std::string>(&data)) return *text;
  if (const auto* q = std::get_if<QuantityValue>(&data)) {
    Json json = quantity(q->quantity);
    if (!q->source.empty()) json["source"] = q->source;
    if (!q->note.empty()) json["note"] = q->note;
    for (const auto& [other, source] : q->also) {
      Json entry = quantity(other);
      entry["source"] = source;
      json["also"].push_back(std::move(entry));
    }
    return json;
  }
  if (const Items* items = value.items()) {
    Json json = Json::array();
    json.get_ref<Json::array_t&>().reserve(items->size());
    for (const Value& item : *items) json.push_back(convert(item));
    return json;
  }
  if (const Members* members = value.members()) {
    Json json = object_of(members->size());
    for (const auto& [key, member] : *members) append(json, key, convert(member));
    return json;
  }
  return nullptr;
}

/// One tree per root. Lines come depth first; the stack holds the open ancestors.
Json derivation_json(const Response& response) {
  Json trees = Json::array();
  std::vector<Json> stack;
  const auto close = [&](std::size_t depth) {
    while (stack.size() > depth) {
      Json done = std::move(stack.back());
      stack.pop_back();
      (stack.empty() ? trees : stack.back()["from"]).push_back(std::move(done));
    }
  };
  for (const DerivationLine& line : derivation(response.ledger, response.derived)) {
    close(static_cast<std::size_t>(line.depth));
    Json node = {{"name", line.name}};
    node.update(quantity(line.quantity));
    if (!line.formula.empty()) node["formula"] = line.formula;
    if (!line.source.empty()) node["source"] = line.source;
    if (!line.bound_by.empty()) node["bound_by"] = line.bound_by;
    if (line.repeated) node["repeated"] = true;
    stack.push_back(std::move(node));
  }
  close(0);
  return trees;
}

Json error_json(const Error& error) {
  Json json = {{"kind", name(error.kind)}, {"where", error.where}, {"what", error.what}, {"hint", error.hint}};
  for (const Error& other : error.also) json["also"].push_back(error_json(other));
  return json;
}

std::string dump(const Json& json, Layout layout) {
  return json.dump(layout == Layout::indented ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::infeasible:
      return "infeasible";
    case Outcome::check_failed:
      break;
  }
  return "check failed";
}

std::string_view name(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::usage:
      return "usage";
    case Error::Kind::input:
      return "input";
    case Error::Kind::missing:
      return "missing";
    case Error::Kind::internal:
      break;
  }
  return "internal";
}

std::string headline(const Response& response) {
  if (!response.screen || response.screen->headline.empty()) return response.headline;
  std::string text;
  for (const Phrase& phrase : response.screen->headline) text += (text.empty() ? "" : ", ") + phrase.text;
  constexpr std::string_view held = "\u00a0";  // keeps words on one line of a screen
  for (std::size_t at = 0; (at = text.find(held, at)) != std::string::npos;) text.replace(at, held.size(), " ");
  return text;
}

std::string render_json(const Response& response, bool explain, Layout layout) {
  Json json = object_of(8);
  append(json, "schema", 1);
  append(json, "version", version);
  append(json, "headline", headline(response));
  append(json, "outcome", name(response.outcome));
  append(json, "inputs", convert(Value(response.inputs)));
  append(json, "results", convert(Value(response.results)));
  if (!response.notes.empty()) append(json, "notes", response.notes);
  if (explain) append(json, "derivation", derivation_json(response));
  if (response.picture || !response.frames.empty()) {
    Json pictures = Json::array();
    for (const draw::Scene& frame : response.frames) pictures.push_back(draw::to_svg(frame));
    if (response.frames.empty()) pictures.push_back(draw::to_svg(*response.picture));
    append(json, "pictures", std::move(pictures));
  }
  return dump(json, layout);
}

std::string render_json(const Error& error, Layout layout, std::string_view request) {
  Json json = {{"error", error_json(error)}};
  if (!request.empty()) json["request"] = request;
  return dump(json, layout);
}

std::string render_json(const Value& value, Layout layout) { return dump(convert(value), layout); }

}  // namespace assay::report
