#include "assay/ask/verbs/assumed_software.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::verbs {
namespace {

/// Formats are read with the others, and take their part of the software where the request is silent.
constexpr std::string_view read_elsewhere[] = {"optimizer", "kv", "memory-share"};

bool is_fusion(std::string_view word) {
  return std::find(std::begin(numbers::fusion_names), std::end(numbers::fusion_names), word) !=
         std::end(numbers::fusion_names);
}

/// What the request says of an option; "yes" or "no" for flags.
std::optional<std::string> given(const Request& request, std::string_view option) {
  const std::vector<OptionSpec>& all = request.verb().options;
  const auto spec = std::find_if(all.begin(), all.end(), [&](const OptionSpec& one) { return one.name == option; });
  if (spec == all.end() || !spec->value.empty()) return request.value(option);
  const std::optional<bool> flag = request.flag(option);
  return flag ? std::optional<std::string>(*flag ? "yes" : "no") : std::nullopt;
}

using kernel::SoftwareList;

/// The usual software on chips of a maker; empty where none is known. It is read once.
Result<const SoftwareList*> usual_on(const Context& context, std::string_view maker) {
  return context.catalogue.kept<SoftwareList>(
      fmt::format("usual software on {}", maker),
      [&]() -> Result<SoftwareList> { return kernel::usual_software(context.catalogue, maker); });
}

/// The software of this name; all of it where there is none, for the error.
Result<const SoftwareList*> software_list(const Context& context, std::string_view name) {
  const std::string id(name.substr(0, name.find('@')));
  ASSAY_TRY(one, context.catalogue.kept<SoftwareList>("software " + id, [&]() -> Result<SoftwareList> {
    return kernel::software_named(context.catalogue, id);
  }));
  if (!one->empty()) return one;
  return context.catalogue.kept<SoftwareList>(
      "software", [&]() -> Result<SoftwareList> { return kernel::software_of(context.catalogue); });
}

}  // namespace

Result<AssumedSoftware> read_software_name(const Request& request, const Context& context, kernel::SoftwareVerb verb,
                                           kernel::SoftwareCase at, std::string_view maker) {
  AssumedSoftware assumed;
  std::string text = request.value("software").value_or("any");
  if (!request.has("software") && !maker.empty()) {
    ASSAY_TRY(usual, usual_on(context, maker));
    assumed.is_usual = !usual->empty();
    if (assumed.is_usual) text = usual->front().id;
  }
  assumed.is_read = request.is_filled("software", "--from");
  assumed.fusion = request.value("fusion").value_or("");
  if (is_fusion(text)) {
    if (!assumed.fusion.empty() && assumed.fusion != text)
      return fail("--software", fmt::format("{} contradicts --fusion {}", text, assumed.fusion), "give one of them",
                  Error::Kind::usage);
    assumed.fusion = text;
    return assumed;
  }
  if (text == "any") return assumed;
  ASSAY_TRY(all, software_list(context, text));
  std::vector<std::string> words(std::begin(numbers::fusion_names), std::end(numbers::fusion_names));
  words.emplace_back("any");
  ASSAY_TRY(chosen, kernel::find_software(*all, text, "--software", words));
  if (!chosen.software->unmodelled.empty())
    return fail("--software", chosen.software->unmodelled, "any assumes the best that was measured");
  const bool trains = verb == kernel::SoftwareVerb::train;
  if ((trains ? chosen.software->train : chosen.software->serve).empty())
    return fail("--software",
                fmt::format("{} is not known to {}", chosen.software->id, trains ? "train models" : "serve models"),
                "`assay software` lists what each does");
  at.fusion = assumed.fusion;
  assumed.name = chosen.software->id;
  assumed.version = chosen.version_id();
  assumed.step_tokens = chosen.software->defaults.step_tokens;
  assumed.properties = kernel::properties(chosen, verb, at);
  for (kernel::SoftwareProperty& property : assumed.properties)
    for (const kernel::SoftwareSource& source : chosen.software->sources)
      if (property.source == source.key)
        property.source = fmt::format("software/{}.toml: {}", assumed.name, source.title);
  for (kernel::SoftwareProperty& property : assumed.properties)
    if (const std::optional<std::string> own = given(request, property.option)) {
      property.value = *own;
      property.source = "this request";
    }
  assumed.plan = kernel::properties(chosen, kernel::SoftwareVerb::plan, at);
  assumed.recompute = chosen.software->recompute;
  assumed.left_out = chosen.software->atypical;
  return assumed;
}

std::optional<std::string> stated(const Request& request, std::string_view option) {
  if (std::find(std::begin(read_elsewhere), std::end(read_elsewhere), option) != std::end(read_elsewhere))
    return std::nullopt;
  return given(request, option);
}

void add_software(const AssumedSoftware& assumed, report::Members& out) {
  out.emplace_back("software", assumed.text());
  if (!assumed.named()) return;
  out.emplace_back("software_properties",
                   report::rows_of(assumed.properties, [&](const kernel::SoftwareProperty& property) {
                     return report::Members{
                         {"option", "--" + property.option}, {"value", property.value}, {"source", property.source}};
                   }));
}

}  // namespace assay::verbs
