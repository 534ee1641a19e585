// assay software: the frameworks and engines of the catalogue, and what each of them does.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/kernel/software/software.h"

namespace assay::verbs::software {
namespace {

std::string_view verbs_of(const kernel::Software& one) {
  if (!one.unmodelled.empty()) return "neither";
  return one.serve.empty() ? "train" : one.train.empty() ? "serve" : "train, serve";
}

std::string versions_text(const kernel::Software& one) {
  const std::string &first = one.versions.front().id, &last = one.versions.back().id;
  return one.versions.size() == 1 ? first : fmt::format("{} .. {}", first, last);
}

std::string title_of(const kernel::Software& one, const std::string& source) {
  for (const kernel::SoftwareSource& known : one.sources)
    if (known.key == source) return known.title;
  return source;
}

/// "since 0.10, before 26.06, family tpu"; empty: always.
std::string range_text(const kernel::SoftwareProperty& property) {
  std::vector<std::string> parts;
  if (!property.since.empty()) parts.push_back("since " + property.since);
  if (!property.before.empty()) parts.push_back("before " + property.before);
  for (const auto& [key, value] : property.when) parts.push_back(fmt::format("{} {}", key, value));
  return join(parts, ", ");
}

/// The properties of a version, or of all.
report::Items property_rows(const kernel::Software& one, const std::vector<kernel::SoftwareProperty>& properties,
                            std::optional<std::size_t> version, bool are_rules = false) {
  report::Items rows;
  const auto holds = [&](const kernel::SoftwareProperty& property) {
    return !version || ((property.since.empty() || *version >= one.version(property.since)) &&
                        (property.before.empty() || *version < one.version(property.before)));
  };
  for (auto at = properties.begin(); at != properties.end(); ++at) {
    const kernel::SoftwareProperty& property = *at;
    const bool replaced = version && std::any_of(at + 1, properties.end(), [&](const auto& later) {
                            return later.option == property.option && later.when.empty() && holds(later);
                          });
    if (replaced || !holds(property)) continue;
    report::Members row;
    if (are_rules)
      row = {{"rule", property.option}};
    else
      row = {{"option", "--" + property.option}};
    row.emplace_back("value", property.value);
    row.emplace_back("where", range_text(property));
    row.emplace_back("note", property.note);
    row.emplace_back("source", title_of(one, property.source));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

report::Members default_members(const kernel::SoftwareDefaults& defaults) {
  report::Members out;
  if (!defaults.recompute.empty()) out.emplace_back("recompute", defaults.recompute);
  if (defaults.chunk_layers > 0.0) out.emplace_back("chunk_layers", defaults.chunk_layers);
  if (defaults.vocabulary > 0.0) out.emplace_back("vocabulary", defaults.vocabulary);
  if (defaults.reports != "allocated") out.emplace_back("reports", defaults.reports);
  if (defaults.pipeline_keeps_weights) out.emplace_back("pipeline_keeps_weights", true);
  if (defaults.stages_in_turn) out.emplace_back("stages_in_turn", true);
  if (!defaults.gradients.empty()) out.emplace_back("gradients", defaults.gradients);
  if (defaults.sequences > 0.0) out.emplace_back("sequences", defaults.sequences);
  if (defaults.step_tokens > 0.0) out.emplace_back("step_tokens", defaults.step_tokens);
  return out;
}

report::Response describe(const kernel::ChosenSoftware& chosen, bool of_version) {
  const kernel::Software& one = *chosen.software;
  const std::optional<std::size_t> version = of_version ? std::optional(chosen.version) : std::nullopt;
  report::Response response;
  response.headline = fmt::format("{}: {}", of_version ? chosen.text() : one.id, one.name);
  report::Members& out = response.results;
  out.emplace_back("id", one.id);
  out.emplace_back("name", one.name);
  if (!one.unmodelled.empty()) out.emplace_back("unmodelled", one.unmodelled);
  if (!one.atypical.empty()) out.emplace_back("left_out", one.atypical);
  if (!one.usual_on.empty()) out.emplace_back("usual_training_software_on", join(one.usual_on, ", "));
  if (!one.train.empty()) out.emplace_back("train", property_rows(one, one.train, version));
  if (!one.plan.empty()) out.emplace_back("training_plans", property_rows(one, one.plan, version, true));
  if (!one.serve.empty()) out.emplace_back("serve", property_rows(one, one.serve, version));
  report::Items words, names, versions, sources;
  for (const kernel::SoftwareWord& word : one.recompute)
    words.emplace_back(report::Members{{"word", word.word}, {"means", word.means}});
  if (!words.empty()) out.emplace_back("recompute", std::move(words));
  if (report::Members defaults = default_members(one.defaults); !defaults.empty())
    out.emplace_back("defaults", std::move(defaults));
  for (std::size_t i = 0; i < one.versions.size(); ++i)
    if (!version || i == *version)
      versions.emplace_back(report::Members{{"id", one.versions[i].id}, {"date", one.versions[i].date}});
  out.emplace_back("versions", std::move(versions));
  for (const kernel::SoftwareName& name : one.names) names.emplace_back(name.text);
  out.emplace_back("names_in_tables", std::move(names));
  for (const kernel::SoftwareSource& source : one.sources)
    sources.emplace_back(report::Members{{"title", source.title}, {"url", source.url}});
  out.emplace_back("sources", std::move(sources));
  return response;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(all, kernel::software_of(context.catalogue));
  if (!request.arguments().empty()) {
    const std::string& text = request.arguments().front();
    ASSAY_TRY(chosen, kernel::find_software(all, text, "NAME"));
    return describe(chosen, text.find('@') != std::string::npos);
  }
  report::Response response;
  report::Items rows;
  for (const kernel::Software& one : all)
    rows.emplace_back(report::Members{{"id", one.id},
                                      {"name", one.name},
                                      {"does", std::string(verbs_of(one))},
                                      {"versions", versions_text(one)},
                                      {"properties", static_cast<std::int64_t>(one.train.size() + one.serve.size())}});
  response.headline = fmt::format("{} frameworks and engines", rows.size());
  response.results.emplace_back("software", std::move(rows));
  response.table_key = "software";
  return response;
}

}  // namespace assay::verbs::software
