// Targets: how a program that runs a plan names each part of it. One description serves both directions: a plan is
// written with it, and files and command lines of the program are read with it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"

namespace assay::launch {

/// A plan as named fields: options of a request ("tp", "recompute"), and what else programs ask for ("nodes").
using Settings = std::map<std::string, std::string, std::less<>>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// The words of a text, between blanks.
std::vector<std::string> words_of(std::string_view text);

/// A product of fields and whole numbers, each to the power 1 or -1: "sequences / dp / fsdp".
struct Factor {
  std::string field;  ///< empty: `number`
  double number = 1;
  int power = 1;
};
using Product = std::vector<Factor>;
std::optional<Product> parse_product(std::string_view text);

/// What holds between fields of every plan of a verb: "chips" and "nodes * node_chips".
struct Relation {
  std::string_view field, product;
};

/// An option that follows from one or several fields.
struct Option {
  std::string name;
  std::vector<std::string> aliases;
  std::string field;    ///< whose text it is; empty: the number `product`
  std::string suffix;   ///< how the text of `field` ends, which the option leaves out
  std::string pattern;  ///< written with {field} in it, and not read; empty: `field` or `product` says it
  Product product;
  std::string standard;     ///< what the program takes where it is not given; empty: unknown
  std::string reason;       ///< a sentence with {field}
  bool launcher = false;    ///< of the program that starts the processes
  bool first = false;       ///< an argument without a name, before all options
  bool read_only = false;   ///< another way to say what a different option says
  bool asked = false;       ///< the script says that it has to be put in where the plan does not know it
  std::string instead_of;   ///< the option that says nothing where this one is given
  bool write_only = false;  ///< a limit of the program that no prediction depends on
  Pairs when;               ///< as of a Case: it has a meaning only then
  Pairs unless;             ///< as of a Case: it is not written then
};

/// What the program demands of a plan: a product that is whole.
struct Demand {
  Product product;
  std::string text;  ///< "80 layers divide by ..."
  Pairs when;
};

/// What the program needs to start.
struct Constant {
  std::string name, value, reason;
  bool environment = false;  ///< a variable of the environment, not an option
  Pairs when;                ///< as of a Case; empty: whatever the plan
};

/// What has to be said: the program does not start without it, or its default is not what is predicted.
struct Required {
  std::string name;
  std::string value;  ///< empty: any
  Pairs when;         ///< as of a Case
};

/// How the nodes of a run find each other.
struct Rendezvous {
  std::string text;  ///< shell text with {fields}
  Pairs when;        ///< as of a Case; the first that holds counts
};

/// One way to choose something: what it is called here, and the options that choose it.
struct Case {
  /// Fields and their values: "full", ">1", "within pp,dp,tp" (in that order, some may be missing), "= tp * dp",
  /// "not tpu-v7".
  Pairs when;
  Pairs options;  ///< names and values; "true" for a flag of a command line, "*" for what another option says
  std::string reason;
};
struct Choice {
  std::string about;  ///< the field, for errors
  Pairs standards;    ///< what the program takes where an option is not given
  std::vector<Case> cases;

  std::optional<std::string_view> standard(std::string_view option) const;
};

/// How options are written.
enum class Style { arguments, overrides, toml, yaml, json };

struct TargetSource {
  std::string title, url;
};

struct Target {
  std::string id, name, verb, version;
  std::string software;  ///< whose properties predictions assume; empty: none of the catalogue
  Style style = Style::arguments;
  std::string command;                    ///< shell text with {launcher}, {rendezvous}, {file}, {first} and {options}
  std::vector<Rendezvous> rendezvous;     ///< only with several nodes
  std::string router;                     ///< what spreads requests over several servers
  std::string port;                       ///< where a server listens
  std::string image;                      ///< a container that has the program; empty: none is published
  std::string file;                       ///< name of the file, if options are written to one
  std::string file_option;                ///< the option that names the file; empty: an argument
  std::vector<std::string> file_options;  ///< all options that name files of options, `file_option` among them
  bool reads_only = false;                ///< no script is written for it
  bool explicit_ = false;  ///< defaults are not the program's but a recipe's: every option of a choice is written
  std::vector<std::string> recognised;  ///< words of a command line that only this program has; "a+b": two in a row
  std::vector<Option> options;
  std::vector<Choice> choices;
  std::vector<Demand> demands;
  std::vector<Constant> constants;
  std::vector<Required> required;
  /// What the program can run of "traits", which set models apart; absent: whatever a name of a model stands for.
  std::optional<std::vector<std::string>> runs;
  std::vector<std::string> elsewhere;  ///< fields that are set in the program itself, not by its options
  Pairs assumed;                       ///< what a search takes where the request leaves it open
  std::vector<std::string> known;      ///< all names of options
  std::vector<std::string> lists;      ///< options that are lists in files
  std::vector<TargetSource> sources;

  bool knows(std::string_view option) const;
};

Result<Target> read_target(std::string_view document, std::string_view file);
/// The targets of the catalogue for a verb, in order of id.
Result<const std::vector<Target>*> targets_of(const hardware::Catalogue& catalogue, std::string_view verb);
/// What runs the training plans of a software: the target of its name; none where there is no such file.
Result<const Target*> target_of_software(const hardware::Catalogue& catalogue, std::string_view software);
/// An unknown name is an error with the nearest ones.
Result<Target> find_target(const hardware::Catalogue& catalogue, std::string_view verb, std::string_view id,
                           std::string_view where);

/// How a cluster starts jobs: a file of catalogue/launchers.
struct Launcher {
  std::string id, name;
  std::string script;  ///< with {name} {nodes} {node_chips} {resource} {image} {body} {command}
  /// Scripts that start servers, on a node each and on several; they also have {servers} {last_server} {server_nodes}
  /// and {port}.
  std::string serve, serve_over_nodes;
  Pairs resources;  ///< what devices are called, by the maker of the chip
};
Result<Launcher> find_launcher(const hardware::Catalogue& catalogue, std::string_view id, std::string_view where);

}  // namespace assay::launch
