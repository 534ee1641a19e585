#include "assay/ask/verbs/verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/parallel_cache.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/embedded.h"

namespace assay::verbs {

/// The namespaces of all verbs.
#define ASSAY_DECLARE_VERB(name)                                                   \
  namespace name {                                                                 \
  Result<report::Response> answer(const Request& request, const Context& context); \
  }
#define ASSAY_VERBS(each)                                                                                              \
  each(chips) each(models) each(clusters) each(software) each(roofline_verb) each(systolic) each(transfer) each(shard) \
      each(collective_verb) each(layer) each(train) each(serve) each(scaling) each(solve) each(validate_verb)          \
          each(measure_verb) each(calibrate) each(profile) each(run) each(sweep_verb) each(fleet) each(design_verb)    \
              each(book)
ASSAY_VERBS(ASSAY_DECLARE_VERB)

#define ASSAY_DECLARE_SCREEN(name)                                                                 \
  namespace name {                                                                                 \
  std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer); \
  }
ASSAY_DECLARE_SCREEN(scaling)
ASSAY_DECLARE_SCREEN(profile)
ASSAY_DECLARE_SCREEN(run)
ASSAY_DECLARE_SCREEN(book)

namespace {

/// The functions of a verb.
struct VerbCode {
  std::string_view name;
  decltype(VerbSpec::answer) answer;
  decltype(VerbSpec::screen) screen = nullptr;
};

/// In the order of help.
constexpr VerbCode code[] = {{"chips", &chips::answer},
                             {"models", &models::answer},
                             {"clusters", &clusters::answer},
                             {"software", &software::answer},
                             {"roofline", &roofline_verb::answer},
                             {"systolic", &systolic::answer},
                             {"transfer", &transfer::answer},
                             {"shard", &shard::answer},
                             {"collective", &collective_verb::answer},
                             {"layer", &layer::answer},
                             {"train", &train::answer},
                             {"serve", &serve::answer},
                             {"fleet", &fleet::answer},
                             {"scaling", &scaling::answer, &scaling::screen_of},
                             {"solve", &solve::answer},
                             {"validate", &validate_verb::answer},
                             {"measure", &measure_verb::answer},
                             {"calibrate", &calibrate::answer},
                             {"profile", &profile::answer, &profile::screen_of},
                             {"run", &run::answer, &run::screen_of},
                             {"sweep", &sweep_verb::answer},
                             {"design", &design_verb::answer},
                             {"book", &book::answer, &book::screen_of}};

/// Members of T that are texts or flags, by their keys; those that the file does not have stay as they are.
template <class T, std::size_t n>
void read_members(RecordReader& in, T& out, const std::pair<const char*, std::string T::*> (&texts)[n]) {
  for (const auto& [key, member] : texts)
    if (in.has(key)) in.text(key, out.*member);
}

/// An option or, with `like = "train.tp"`, that of another file with other words.
void read_option(OptionSpec& option, RecordReader& in) {
  if (in.has("like")) {
    std::string like;
    in.text("like", like);
    const std::size_t dot = like.find('.');
    const OptionSpec* other = find_option(declared(like.substr(0, dot)), like.substr(dot + 1));
    if (!other) return in.fault("like", fmt::format("there is no option {}", like));
    option = *other;
  }
  read_members(in, option,
               {{"name", &OptionSpec::name},
                {"value", &OptionSpec::value},
                {"help", &OptionSpec::help},
                {"choices", &OptionSpec::choices},
                {"detail", &OptionSpec::detail},
                {"offers", &OptionSpec::offers},
                {"default", &OptionSpec::fallback},
                {"inputs", &OptionSpec::inputs}});
  in.flag("repeatable", option.repeatable);
  in.flag("may_stand_alone", option.may_stand_alone);
  in.flag("of_terminal", option.of_terminal);
  in.flag("attachable", option.attachable);
}

void read_verb(VerbSpec& verb, RecordReader& in) {
  read_members(in, verb, {{"summary", &VerbSpec::summary}, {"description", &VerbSpec::description}});
  in.flag("has_picture", verb.has_picture);
  in.flag("passes_options", verb.passes_options);
  in.flag("on_this_machine", verb.on_this_machine);
  in.items("arguments", verb.arguments, [](ArgumentSpec& argument, RecordReader& one) {
    read_members(one, argument,
                 {{"name", &ArgumentSpec::name}, {"help", &ArgumentSpec::help}, {"offers", &ArgumentSpec::offers}});
    one.flag("required", argument.required);
    one.flag("repeatable", argument.repeatable);
    one.flag("attachable", argument.attachable);
  });
  in.items("options", verb.options, read_option);
  in.items("exclusive", verb.exclusive, [](Exclusive& pair, RecordReader& one) {
    read_members(one, pair, {{"one", &Exclusive::one}, {"other", &Exclusive::other}, {"why", &Exclusive::why}});
  });
  in.items("inputs", verb.inputs, [](InputKind& kind, RecordReader& one) {
    read_members(one, kind, {{"word", &InputKind::word}, {"name", &InputKind::name}, {"example", &InputKind::example}});
  });
  in.items("groups", verb.groups, [&](OptionNames& group, RecordReader& one) {
    one.text("heading", group.heading);
    one.texts("options", group.options);
    for (const std::string& name : group.options)
      if (std::none_of(verb.options.begin(), verb.options.end(), [&](const OptionSpec& o) { return o.name == name; }))
        one.fault("options", fmt::format("there is no option {}", name));
  });
  in.items("examples", verb.examples, [](VerbExample& example, RecordReader& one) {
    read_members(one, example, {{"command", &VerbExample::command}, {"shows", &VerbExample::shows}});
  });
}

Result<VerbSpec> read_declaration(const std::string& name) {
  VerbSpec verb;
  verb.name = name;
  for (const VerbCode& one : code)
    if (one.name == name) {
      verb.answer = one.answer;
      verb.screen = one.screen;
    }
  RecordFile file{.name = fmt::format("verbs/{}.toml", name), .sourced_tables = false};
  ASSAY_CHECK(read_record(declared_text(file.name), file, [&](RecordReader& in) { read_verb(verb, in); }));
  return verb;
}

}  // namespace

std::string_view declared_text(std::string_view path) {
  for (const hardware::EmbeddedFile& file : hardware::embedded_catalogue())
    if (file.path == path) return file.text;
  return {};
}

const VerbSpec& declared(const std::string& name) {
  static ParallelCache cache;
  const auto found = cache.get<VerbSpec>(name, [&] { return read_declaration(name); });
  if (!found) throw InternalError(fmt::format("{}: {}", found.error().where, found.error().what));
  return **found;
}

Result<const VerbSpec*> find_verb(std::string_view name) {
  std::vector<std::string> names;
  for (const VerbCode& verb : code) {
    if (verb.name == name) return &declared(std::string(name));
    names.emplace_back(verb.name);
  }
  for (const auto& [word, help] : built_in_words()) names.emplace_back(word);
  return fail("", fmt::format("unknown command {}", in_quotes(name)), suggestion(name, names), Error::Kind::usage);
}

std::span<const VerbSpec> verbs() {
  static const std::vector<VerbSpec> all = [] {
    std::vector<VerbSpec> out;
    for (const VerbCode& verb : code) out.push_back(declared(std::string(verb.name)));
    return out;
  }();
  return all;
}

std::span<const OptionSpec> common_options() { return declared("common").options; }

Result<std::vector<hardware::Override>> overrides_of(const Request& request) {
  std::vector<hardware::Override> changes;
  for (const std::string& text : request.values("set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return fail("--set", fmt::format("{} is not KEY=VALUE", in_quotes(text)),
                  "e.g. --set memory.hbm.bandwidth=1.23TB/s", Error::Kind::usage);
    changes.push_back({std::string(trim(std::string_view(text).substr(0, equals))),
                       std::string(trim(std::string_view(text).substr(equals + 1)))});
  }
  return changes;
}

bool sets_efficiency(const Request& request) {
  const auto sets = request.values("set");
  return std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with("efficiency."); });
}

Result<hardware::Cluster> cluster_of(const Request& request, const Context& context) {
  const auto on = request.value("on");
  if (!on)
    return fail(std::string(request.verb().name), "--on is missing", "name a chip or a cluster, e.g. --on tpu-v5e",
                Error::Kind::usage);
  ASSAY_TRY(overrides, overrides_of(request));
  return hardware::parse_cluster(*on, context.catalogue, "--on", overrides);
}

}  // namespace assay::verbs
