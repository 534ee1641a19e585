// Reads a script by running it in thought: what its variables hold, which conditions hold, what it would start.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/ask/launch/shell.h"
#include "assay/ask/launch/shell_syntax.h"

namespace assay::launch {

constexpr int deepest_run = 32;
constexpr std::size_t longest_word = std::size_t{1} << 20;

/// Text that is not known, marked as such in a word.
std::string unknown(std::string_view text);
bool is_known(std::string_view text);
/// The name where all of a word is one variable that is not set; empty else.
std::string_view unset_name(std::string_view word);
/// A word as people read it: what is not known as it is written.
std::string shown(std::string_view text);
/// Parts of a text between separators, without empty ones.
std::vector<std::string> fields_of(std::string_view text, std::string_view separators);

struct ShellValue {
  std::vector<std::string> items;
  bool list = false;
};

class ShellRun {
 public:
  ShellRun(std::string_view where, const ShellSurroundings& around) : where_(where), around_(around) {}
  Result<ShellScript> read(std::string_view text);

 private:
  std::optional<bool> run_tree(ShellTree tree);
  /// Text as a script of its own, e.g. of eval; a fault in it leaves it out.
  std::optional<bool> run_text(const std::string& text);
  std::optional<bool> run(const ShellBody& body);
  std::optional<bool> run(const ShellCommand& one);
  std::optional<bool> choose(const ShellCommand& one);
  std::optional<bool> simple(const ShellCommand& one);
  static bool is_declaration(std::string_view word);
  void say(std::string_view text);
  template <class Act>
  std::string output_of(const Act& act) {
    std::string out;
    std::string* const before = std::exchange(output_, &out);
    act();
    output_ = before;
    return out;
  }
  /// A command whose words are known, with what it reads.
  std::optional<bool> call(std::vector<std::string> words, const std::string& input);
  /// A program: kept with its words (where its output is not the point), or what it starts itself where that is a
  /// script among them.
  std::optional<bool> start(std::vector<std::string> words, const std::string& input);
  static bool is_script_flag(std::string_view word);
  static std::vector<std::string> without_flags(const std::vector<std::string>& words);
  std::string filtered(const std::string& name, const std::vector<std::string>& rest, const std::string& input) const;
  /// read -r A B: the fields of a line; the last variable takes what is left.
  bool read_fields(const std::vector<std::string>& rest, const std::string& input);
  bool source(const std::string& path);

  // Variables, words and conditions: shell_values.cpp.

  /// NAME=value, NAME+=value or NAME=( ... ).
  bool assign_word(const std::string& raw);
  void assign(const std::string& name, ShellValue value, bool appends);
  /// Its value; nothing where nothing sets it.
  std::optional<ShellValue> lookup(std::string_view name) const;
  /// Fields of a word after all expansions; where it is not split, blanks from variables stay as in quotes.
  void expand(std::string_view raw, std::vector<std::string>& out, bool splits = true);
  /// Fields where what is not known may hold blanks.
  static std::vector<std::string> known_fields(std::string_view text);
  /// A word as one text: of an assignment.
  std::string single(std::string_view raw);
  /// Text with what stands for values put in; with escapes as in a document.
  std::string within(std::string_view text, bool escapes);
  /// What a $... or `...` stands for.
  ShellValue expansion(std::string_view raw);
  std::string unset(std::string_view name);
  void note_unset(std::string_view name);
  /// ${NAME...}.
  ShellValue braces(std::string_view text);
  std::string tested(std::string_view raw);
  std::optional<bool> test(const std::vector<std::string>& raw);
  std::optional<bool> test_words(std::vector<std::string> words);
  std::optional<std::int64_t> arithmetic(std::string_view raw);

  std::string where_;
  const ShellSurroundings& around_;
  std::deque<ShellTree> trees_;
  const std::vector<ShellDocument>* documents_ = nullptr;
  std::map<std::string, ShellValue, std::less<>> variables_;
  std::map<std::string, std::pair<const ShellBody*, const std::vector<ShellDocument>*>> functions_;
  std::vector<std::string> arguments_, prefix_;
  std::string* output_ = nullptr;
  std::string piped_, failed_;
  int depth_ = 0, commands_ = 0;
  bool testing_ = false, left_ = false, substitutes_ = false;
  ShellScript out_;
};

}  // namespace assay::launch
