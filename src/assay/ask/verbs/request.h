// One request, one response: what every front end asks, and how a command line or JSON becomes a request.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/ask/report/render.h"
#include "assay/ask/report/response.h"
#include "assay/ask/sweep/ranks.h"
#include "assay/base/assign.h"
#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"

namespace assay::verbs {

/// A flag (`value` empty) or an option with a value. What `value` means is in ask/verbs/table/value_kinds.h.
struct OptionSpec {
  std::string name, value, help;
  bool repeatable = false;
  /// "table|tree|json", where only these are allowed. Of a flag "no": --FLAG=no turns off what would else be on.
  std::string choices;
  std::string detail;            ///< of a flag: what may follow as --FLAG=DETAIL
  std::string offers;            ///< "gpipe|1f1b": what completion offers, where other values are allowed as well
  std::string fallback;          ///< what holds where it is not given, if that is always the same
  bool may_stand_alone = false;  ///< its value may be left out
  bool of_terminal = false;      ///< it shapes what a terminal shows, and no answer
  bool attachable = false;       ///< its file may come with the request
  std::string inputs;            ///< "train|serve": the kinds of input that it counts for; empty: all of the verb's
};

struct ArgumentSpec {
  std::string name, help;
  bool required = false, repeatable = false;
  std::string offers;       ///< as of an option
  bool attachable = false;  ///< the same
};

/// Options of which a request gives at most one, and why.
struct Exclusive {
  std::string one, other, why;
};

/// A kind of input that a verb takes, where some of its options count for other kinds only.
struct InputKind {
  std::string word, name, example;  ///< "train", "a training run", "assay run train llama-3-8b --layers 2"
};

/// Options that belong together, by their names, under a heading of help.
struct OptionNames {
  std::string heading;
  std::vector<std::string> options;
};

struct VerbExample {
  std::string command, shows;
};

class Request;

/// Where a program runs: needed by verbs that measure, known to the front end only.
struct Surroundings {
  std::string user_catalogue;                             ///< a directory that overlays the catalogue; empty: none
  std::string programs;                                   ///< the directory of this program and of those that measure
  std::string date;                                       ///< 2026-11-15
  sweep::Ranks ranks = {};                                ///< which process of a launch this is
  std::map<std::string, std::string_view> attached = {};  ///< files that came with the request, by name
};

/// What handlers may use in addition to the request.
struct Context {
  const hardware::Catalogue& catalogue;
  Surroundings surroundings = {};
  bool within = false;  ///< one of many requests of another verb, which needs no advice
  /// What one request leaves to the next, where a verb asks them one after the other; the key names what it is of.
  std::map<std::string, std::shared_ptr<void>>* kept = nullptr;
};

/// A verb as catalogue/verbs/NAME.toml declares it, with the functions that answer. Help, completion, checking and the
/// schema of requests come from here.
struct VerbSpec {
  std::string name, summary, description;
  std::vector<ArgumentSpec> arguments;
  std::vector<OptionSpec> options;
  std::vector<VerbExample> examples;
  bool has_picture = false;
  bool passes_options = false;   ///< options it does not know are words of its arguments, which are a command
  bool on_this_machine = false;  ///< it runs programs and writes files
  std::vector<Exclusive> exclusive;
  std::vector<InputKind> inputs;
  std::vector<OptionNames> groups;  ///< of options in help; the others come last
  Result<report::Response> (*answer)(const Request&, const Context&) = nullptr;
  /// Its answer as one screen, where neither the answer nor catalogue/screens/ has one: nothing shows all results.
  std::optional<report::Screen> (*screen)(const Request&, const report::Response&) = nullptr;
};

/// What catalogue/verbs/NAME.toml declares, read once: a verb, `ui`, or options that others share.
const VerbSpec& declared(const std::string& name);
/// The text of a file of the catalogue that describes verbs: answers/NAME.txt has the keys of its results in the
/// grammar of ask/verbs/table/grammar.h, screens/NAME.txt its screen in that of ask/report/patterns.h. Empty where it
/// is absent.
std::string_view declared_text(std::string_view path);
/// The verb of that name; the error suggests others.
Result<const VerbSpec*> find_verb(std::string_view name);
/// The option of a verb, its own or one that every verb takes; null where there is none.
const OptionSpec* find_option(const VerbSpec& verb, std::string_view name);

/// All verbs, in the order of help.
std::span<const VerbSpec> verbs();
/// Options that every verb takes.
std::span<const OptionSpec> common_options();

/// A checked request: known verb, known options, as many arguments as it takes.
class Request {
 public:
  const VerbSpec& verb() const { return *verb_; }
  const std::vector<std::string>& arguments() const { return arguments_; }

  bool has(std::string_view option) const { return value(option).has_value(); }
  std::optional<std::string> value(std::string_view option) const;
  std::vector<std::string> values(std::string_view option) const;
  /// Whether a flag is on or, with =no, off; nothing if it is not given.
  std::optional<bool> flag(std::string_view option) const;

  /// Gives an option, or the next argument, that the request leaves open; what it gives itself stays. `place` is where
  /// the value comes from, for errors.
  Result<void> fill(std::string_view option, std::string value, std::string_view place);
  Result<void> fill_argument(std::string value);
  /// Whether the value of an option was filled in from this place.
  bool is_filled(std::string_view option, std::string_view place) const;
  /// Changes the value of an option that is given.
  void replace(std::string_view option, std::string value);

  bool explain() const { return has("explain"); }
  bool picture() const { return picture_; }
  void want_picture() { picture_ = true; }
  /// Whether the picture of every step is wanted, where a verb has them.
  bool frames() const { return frames_; }
  void want_frames() { picture_ = frames_ = true; }

  /// The same request with one more value of an option that may be given several times.
  Request with_more(std::string_view option, std::string value) const;
  /// The same request without the n-th value of an option, and without a picture.
  Request without(std::string_view option, std::size_t n) const;
  /// The same request without an option, or with this value of it alone.
  Request without(std::string_view option) const;
  Request with(std::string_view option, std::string value) const;

  /// Arguments and options by name, as `arguments` of a JSON request has them.
  report::Members named_arguments() const;
  /// The inputs as the JSON echoes them.
  report::Members echo() const;

 private:
  friend Result<Request> parse_request(std::span<const std::string>);
  friend Result<Request> parse_json_request(std::string_view);
  friend Result<void> apply_config(Request&, std::string_view, std::string_view);
  friend Result<void> check_inputs(const Request&, std::string_view);
  friend class JsonReader;

  /// `place` is where the option was given, for errors; empty for the command line.
  Result<void> add(std::string_view option, std::string value, std::string_view place);
  Result<void> finish() const;

  const VerbSpec* verb_ = nullptr;
  std::vector<std::string> arguments_;
  std::vector<std::pair<std::string, std::string>> options_;
  std::vector<std::pair<std::string, std::string>> filled_;  ///< options that `fill` gave, and from where
  std::vector<std::string> for_all_;                         ///< options that a config file gives to all commands
  bool picture_ = false, frames_ = false;
};

/// Whether a value of --output is a file: it has a slash or an ending that names a format. If a verb has its own
/// --output (a number of tokens), every other value is for that.
bool names_output_file(std::string_view output);

/// From the words of a command line, without the program's name: verb, arguments, --option value, --option=value.
Result<Request> parse_request(std::span<const std::string> words);

/// From JSON: {"verb": "roofline", "arguments": {"op": "dot(N)", "on": "tpu-v5e", "explain": true}}. Arguments and
/// options go by their names, flags are true or false, what may be repeated is a list, null is as good as nothing.
Result<Request> parse_json_request(std::string_view json);

/// Fills options that the request leaves open from a TOML file: top-level keys and the table of the verb.
Result<void> apply_config(Request& request, std::string_view document, std::string_view file);

/// The same from the file of --config, where it is given.
Result<void> apply_config_file(Request& request);

/// Overlays the catalogue with the value of --catalogue: a directory, or files in JSON, {"chips/mine": {"base":
/// "h100-sxm", "memory": {"hbm": {"capacity": "141 GB"}}}}.
Result<void> overlay_catalogue(hardware::Catalogue& catalogue, const std::string& value);

/// An error for an option that does not count for this kind of input. What a config file gives to all commands is
/// passed over.
Result<void> check_inputs(const Request& request, std::string_view kind);
/// "a training run or a serving run": what an option is for; empty where it counts for all inputs of the verb.
std::string inputs_text(const VerbSpec& verb, const OptionSpec& option);

/// Splits a line into words as a shell would: blanks separate, quotes group.
Result<std::vector<std::string>> split_words(std::string_view line);

/// From one text: the words of a command line, in which braces group as quotes do, or JSON.
Result<Request> parse_request_text(std::string_view text);

/// Answers a request.
Result<report::Response> ask(const Request& request, const Context& context);
/// The same for a verb that asks others many times: without what takes further answers to find out, values of --set
/// that the answer does not use and what would help.
Result<report::Response> ask_within(const Request& request, const Context& context);

/// Words that the command line answers itself, with what they do: ui, json, schema, completion, man, version, help.
std::span<const std::pair<std::string_view, std::string_view>> built_in_words();

/// What an option does, with its default.
std::string option_help(const OptionSpec& option);

/// Help texts and completion scripts, all from the verb table.
std::string overview_help();
std::string verb_help(const VerbSpec& verb);
/// What a shell loads; it asks for completions().
Result<std::string> completion_script(std::string_view shell);
/// What may stand in the place of the last of these words of a command line, a line each: the word and, behind a tab,
/// what it means. The first line is ":files" where names of files may stand there, too.
std::string completions(std::vector<std::string> words, const hardware::Catalogue& catalogue);

}  // namespace assay::verbs
