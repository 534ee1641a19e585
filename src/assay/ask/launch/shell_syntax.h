// The grammar of shells: scripts as trees of commands, whose words are kept as written.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay::launch {

struct Redirect {
  std::string sign, target;  ///< "<<", "<<<", ">", ">>", "<", ...; a word as written
  int document = -1;         ///< of <<: its place among the documents of the script
};

struct ShellCommand;
using ShellBody = std::vector<ShellCommand>;

struct ShellCommand {
  enum class Kind { simple, test, arithmetic, condition, loop, repeat, choice, function, group };
  Kind kind = Kind::simple;
  std::string link;                ///< how it follows the command before: "&&", "||", "|" or "" (always)
  bool negated = false;            ///< behind "!"
  std::vector<std::string> words;  ///< of a loop its items, of arithmetic its text, of a choice what is compared
  std::string name;                ///< of a loop's variable, of a function
  std::vector<ShellBody> bodies;   ///< of a condition: if, then, elif, then, ..., else; else what is repeated or run
  std::vector<std::vector<std::string>> patterns;  ///< of a choice, for each body
  std::vector<Redirect> redirects;
};

struct ShellDocument {
  std::string text;
  bool expands = false;  ///< variables in it are put in
};

struct ShellTree {
  ShellBody body;
  std::vector<ShellDocument> documents;
};

/// Also takes what people write in prose: comments behind a backslash, and <NAME> for a value.
Result<ShellTree> parse_shell(std::string_view text, std::string_view where);

/// Words of a list: what stands between the parentheses of NAME=( ... ).
Result<std::vector<std::string>> shell_list(std::string_view text, std::string_view where);

/// The end of what starts with a $ or a backtick at this place: a name, ${...}, $(...), $((...)).
std::size_t end_of_expansion(std::string_view text, std::size_t at);

bool is_name_character(char c);

/// What is not known stands between these two in a word, as it is written after its $; to a parser it is one letter.
constexpr char unknown_open = '\x01', unknown_close = '\x02';

}  // namespace assay::launch
