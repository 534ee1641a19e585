#include "assay/predict/kernel/software/software.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/predict/kernel/software/version_numbers.h"
#include "assay/program/lower/recompute.h"

namespace assay::kernel {
namespace {

constexpr std::string_view case_keys[] = {"family",  "chip",   "model",   "compute",
                                          "weights", "fusion", "experts", "query_group"};

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Checks the value of an option by setting it.
template <class S>
void check_value(RecordReader& reader, const std::string& option, const std::string& value) {
  S scratch;
  if (auto set = set_software(scratch, option, value, ""); !set)
    reader.fault("value", set.error().what, set.error().hint);
}
void check_rule(RecordReader& reader, const std::string& rule, const std::string& value) {
  if (auto words = plan_rule_words(rule, value, ""); !words)
    reader.fault("value", words.error().what, words.error().hint);
}

using CheckValue = void (*)(RecordReader&, const std::string&, const std::string&);
void read_property(SoftwareProperty& out, const Software& software, RecordReader& reader, std::string_view name_key,
                   CheckValue check) {
  reader.text(name_key, out.option);
  reader.text("value", out.value);
  reader.text("source", out.source);
  if (reader.has("note")) reader.text("note", out.note);
  for (auto [key, place] : {std::pair{"since", &out.since}, std::pair{"before", &out.before}}) {
    if (!reader.has(key)) continue;
    reader.text(key, *place);
    if (software.version(*place) == software.versions.size())
      reader.fault(key, fmt::format("there is no version {}", in_quotes(*place)), "versions are [[version]] tables");
  }
  reader.pairs("when", out.when);
  for (const auto& [key, text] : out.when)
    if (std::find(std::begin(case_keys), std::end(case_keys), key) == std::end(case_keys))
      reader.fault("when", fmt::format("a property cannot depend on {}", in_quotes(key)),
                   suggestion(key, std::vector<std::string>(std::begin(case_keys), std::end(case_keys))));
  if (!out.option.empty()) check(reader, out.option, out.value);
}

/// `out` is the last of the software's versions.
void read_version(SoftwareVersion& out, const Software& software, RecordReader& reader) {
  reader.text("id", out.id);
  reader.text("date", out.date);
  reader.text("source", out.source);
  if (!is_month(out.date)) reader.fault("date", fmt::format("{} is not a month", in_quotes(out.date)), "e.g. 2025-05");
  const std::size_t count = software.versions.size();
  if (count > 1 && is_month(software.versions[count - 2].date) && out.date < software.versions[count - 2].date)
    reader.fault("date", "versions are in order of release");
}

void read_name(SoftwareName& out, const Software& software, RecordReader& reader) {
  reader.text("text", out.text);
  if (reader.has("at_least")) {
    reader.text("at_least", out.at_least);
    if (software.version(out.at_least) == software.versions.size())
      reader.fault("at_least", fmt::format("there is no version {}", in_quotes(out.at_least)), "");
  }
  reader.pairs("with", out.with);
  if (reader.has("atypical")) reader.text("atypical", out.atypical);
}

void read_defaults(RecordReader& reader, SoftwareDefaults& out) {
  if (reader.has("recompute")) {
    reader.text("recompute", out.recompute);
    if (auto policy = lower::parse_recompute(out.recompute, ""); !policy)
      reader.fault("recompute", policy.error().what, policy.error().hint);
  }
  if (reader.has("chunk_layers")) reader.number("chunk_layers", out.chunk_layers);
  if (reader.has("vocabulary")) reader.number("vocabulary", out.vocabulary);
  if (reader.has("gradients")) reader.text("gradients", out.gradients);
  if (!out.gradients.empty() && !parse_dtype(out.gradients, ""))
    reader.fault("gradients", fmt::format("{} is not a number format", in_quotes(out.gradients)), "bf16 or fp32");
  if (reader.has("reports")) reader.text("reports", out.reports);
  if (out.reports != "allocated" && out.reports != "reserved")
    reader.fault("reports", fmt::format("{} is neither allocated nor reserved", in_quotes(out.reports)), "");
  reader.flag("pipeline_keeps_weights", out.pipeline_keeps_weights);
  reader.flag("stages_in_turn", out.stages_in_turn);
  if (reader.has("sequences")) reader.number("sequences", out.sequences);
  if (reader.has("step_tokens")) reader.number("step_tokens", out.step_tokens);
}

void read_word_meaning(SoftwareWord& out, RecordReader& reader) {
  reader.text("word", out.word);
  reader.text("means", out.means);
  if (auto policy = lower::parse_recompute(out.means, ""); !policy)
    reader.fault("means", policy.error().what, policy.error().hint);
}

bool holds(const Software& software, const SoftwareProperty& property, std::size_t version, const SoftwareCase& at) {
  if (!property.since.empty() && version < software.version(property.since)) return false;
  if (!property.before.empty() && version >= software.version(property.before)) return false;
  for (const auto& [key, wanted] : property.when) {
    if (key == "model" && matches(wanted, at.model, nullptr)) continue;
    const std::string known = key == "family"    ? at.family
                              : key == "chip"    ? at.chip
                              : key == "model"   ? std::string()
                              : key == "compute" ? at.compute
                              : key == "weights" ? at.weights
                              : key == "fusion"  ? at.fusion
                              : key == "experts" ? (at.gated_experts ? "gated" : "")
                                                 : human_number(at.query_group);
    if (known != wanted) return false;
  }
  return true;
}

template <class S>
Result<void> apply(const ChosenSoftware& chosen, SoftwareVerb verb, const SoftwareCase& at, S& out) {
  for (const SoftwareProperty& property : properties(chosen, verb, at))
    ASSAY_CHECK(set_software(out, property.option, property.value, chosen.software->id));
  return {};
}

std::vector<std::string> ids_of(const SoftwareList& all) {
  std::vector<std::string> ids;
  for (const Software& one : all) ids.push_back(one.id);
  return ids;
}

}  // namespace

std::size_t Software::version(std::string_view wanted) const {
  return static_cast<std::size_t>(
      std::find_if(versions.begin(), versions.end(), [&](const SoftwareVersion& v) { return v.id == wanted; }) -
      versions.begin());
}

SoftwareCase software_case(const model::Transformer& model) {
  SoftwareCase at;
  at.model = model.id;
  at.gated_experts = model.has_gated_experts();
  const model::Layer& layer = model.decoder.kinds.front();
  if (layer.attention && layer.attention->kv_heads > 0)
    at.query_group = static_cast<double>(layer.attention->heads) / static_cast<double>(layer.attention->kv_heads);
  return at;
}

Result<Software> read_software(std::string_view document, std::string_view file) {
  Software out;
  RecordFile shared{.name = std::string(file), .sourced_tables = false};
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources([&](const std::string& key, RecordReader& source) {
      SoftwareSource& read = out.sources.emplace_back();
      read.key = key;
      source.text("title", read.title);
      if (source.has("url")) source.text("url", read.url);
      if (source.has("note")) source.find("note");
    });
    reader.text("id", out.id);
    reader.check_id(out.id);
    reader.text("name", out.name);
    if (reader.has("unmodelled")) reader.text("unmodelled", out.unmodelled);
    if (reader.has("atypical")) reader.text("atypical", out.atypical);
    reader.items("version", out.versions, [&](auto& one, RecordReader& inner) { read_version(one, out, inner); });
    reader.items("named", out.names, [&](auto& one, RecordReader& inner) { read_name(one, out, inner); });
    reader.items("recompute", out.recompute, [&](auto& one, RecordReader& inner) { read_word_meaning(one, inner); });
    reader.optional_table("defaults", [&](RecordReader& inner) { read_defaults(inner, out.defaults); });
    reader.items("train", out.train, [&](auto& one, RecordReader& inner) {
      read_property(one, out, inner, "option", &check_value<TrainingSoftware>);
    });
    reader.items("serve", out.serve, [&](auto& one, RecordReader& inner) {
      read_property(one, out, inner, "option", &check_value<EngineSoftware>);
    });
    reader.items("plan", out.plan,
                 [&](auto& one, RecordReader& inner) { read_property(one, out, inner, "rule", &check_rule); });
    if (reader.has("usual_on")) reader.texts("usual_on", out.usual_on);
    if (out.versions.empty()) reader.fault("version", "no versions", "[[version]] tables");
    if (out.train.empty() && out.serve.empty() && out.unmodelled.empty())
      reader.fault("id", "nothing is known about what it does",
                   "[[train]] or [[serve]] tables, or unmodelled = \"WHY\"");
  }));
  return out;
}

namespace {

/// The files of the catalogue whose path and text `wanted` accepts.
template <class F>
Result<SoftwareList> software_where(const hardware::Catalogue& catalogue, F&& wanted) {
  SoftwareList all;
  for (const auto& [path, text] : catalogue.files("software/")) {
    if (!wanted(path, text)) continue;
    ASSAY_TRY(read, read_software(text, path));
    all.push_back(std::move(read));
  }
  return all;
}

}  // namespace

Result<SoftwareList> software_named(const hardware::Catalogue& catalogue, std::string_view id) {
  const std::string file = fmt::format("software/{}.toml", id);
  return software_where(catalogue, [&](const std::string& path, std::string_view) { return path == file; });
}

Result<SoftwareList> engines_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(some, software_where(catalogue, [](const std::string&, std::string_view text) {
              return text.find("serve") != std::string_view::npos;
            }));
  std::erase_if(some, [](const Software& one) { return one.serve.empty(); });
  return some;
}

Result<SoftwareList> usual_software(const hardware::Catalogue& catalogue, std::string_view maker) {
  // Few files name chips at all: the others are not worth parsing.
  ASSAY_TRY(some, software_where(catalogue, [](const std::string&, std::string_view text) {
              return text.find("usual_on") != std::string_view::npos;
            }));
  std::erase_if(some, [&](const Software& one) {
    return std::find(one.usual_on.begin(), one.usual_on.end(), maker) == one.usual_on.end();
  });
  return some;
}

Result<SoftwareList> software_of(const hardware::Catalogue& catalogue) {
  return software_where(catalogue, [](const std::string&, std::string_view) { return true; });
}

Result<ChosenSoftware> find_software(const SoftwareList& all, std::string_view text, std::string_view where,
                                     std::span<const std::string> words) {
  const std::size_t at = text.find('@');
  const std::string_view id = text.substr(0, at);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Software& one) { return one.id == id; });
  if (found == all.end()) {
    std::vector<std::string> known = ids_of(all);
    known.insert(known.end(), words.begin(), words.end());
    const std::string hint = nearest(id, known).empty() ? "" : suggestion(id, known);
    return fail(std::string(where), fmt::format("unknown software {}", in_quotes(id)),
                hint.empty() ? "`assay software` lists them" : hint, Error::Kind::usage);
  }
  ChosenSoftware chosen{&*found, found->versions.size() - 1};
  if (at == std::string_view::npos) return chosen;
  const std::string_view wanted = text.substr(at + 1);
  const std::optional<std::size_t> version = version_at(found->versions, wanted);
  if (!version) {
    std::vector<std::string> known;
    for (const SoftwareVersion& one : found->versions) known.push_back(one.id);
    return fail(std::string(where), fmt::format("{} has no version {}", found->id, in_quotes(wanted)),
                "known: " + join(known, ", "), Error::Kind::usage);
  }
  chosen.version = *version;
  return chosen;
}

std::optional<ChosenSoftware> named_software(const SoftwareList& all, SoftwareVerb verb, std::string_view text,
                                             std::string_view version, std::int64_t year) {
  ChosenSoftware best;
  std::string_view inside;
  std::size_t most = 0;
  for (const Software& one : all) {
    if ((verb == SoftwareVerb::train ? one.train : one.serve).empty() && one.unmodelled.empty()) continue;
    for (const SoftwareName& name : one.names) {
      std::string_view captured;
      const std::size_t letters = name.text.size();
      if (letters <= most || !matches(name.text, text, &captured)) continue;
      most = letters;
      best = {&one, 0, &name};
      inside = captured;
    }
  }
  if (!best.software) return std::nullopt;
  const std::vector<SoftwareVersion>& versions = best.software->versions;
  best.version = release_of(versions, inside.empty() ? version : inside, year);
  if (!best.name->at_least.empty()) best.version = std::max(best.version, best.software->version(best.name->at_least));
  return best;
}

std::vector<SoftwareProperty> properties(const ChosenSoftware& chosen, SoftwareVerb verb, const SoftwareCase& at) {
  SoftwareCase now = at;
  std::vector<SoftwareProperty> out;
  const auto put = [&](const SoftwareProperty& property) {
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const SoftwareProperty& one) { return one.option == property.option; });
    if (same == out.end())
      out.push_back(property);
    else
      *same = property;
    if (property.option == "fusion" && at.fusion.empty()) now.fusion = property.value;
  };
  const std::vector<SoftwareProperty>* const by_verb[] = {&chosen.software->train, &chosen.software->serve,
                                                          &chosen.software->plan};
  for (const SoftwareProperty& property : *by_verb[static_cast<std::size_t>(verb)])
    if (holds(*chosen.software, property, chosen.version, now)) put(property);
  if (chosen.name && verb != SoftwareVerb::plan)
    for (const auto& [option, value] : chosen.name->with) {
      SoftwareProperty implied;
      implied.option = option;
      implied.value = value;
      put(implied);
    }
  return out;
}

Result<void> apply_software(const ChosenSoftware& chosen, const SoftwareCase& at, TrainingSoftware& out) {
  return apply(chosen, SoftwareVerb::train, at, out);
}
Result<void> apply_software(const ChosenSoftware& chosen, const SoftwareCase& at, EngineSoftware& out) {
  return apply(chosen, SoftwareVerb::serve, at, out);
}

std::optional<std::string> recompute_meaning(std::span<const SoftwareWord> words, std::string_view setting) {
  for (const SoftwareWord& known : words)
    if (matches(known.word, setting)) return known.means;
  for (const std::string_view never : {"n", "no", "off", "false", "disabled"})
    if (matches(never, setting)) return "none";
  const std::string policy = lower_case(setting);
  if (lower::parse_recompute(policy, "")) return policy;
  return std::nullopt;
}

}  // namespace assay::kernel
