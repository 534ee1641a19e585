#include "assay/ask/launch/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <optional>
#include <regex>

#include "assay/ask/launch/shell_expressions.h"
#include "assay/ask/launch/shell_syntax.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::launch {
namespace {

using Kind = ShellCommand::Kind;
using Words = std::vector<std::string>;

constexpr int most_shell_commands = 20'000, deepest_run = 32, most_repeats = 1'000;
constexpr std::size_t longest_word = std::size_t{1} << 20;

std::string unknown(std::string_view text) { return fmt::format("{}{}{}", unknown_open, text, unknown_close); }
bool is_known(std::string_view text) { return text.find(unknown_open) == std::string_view::npos; }

/// The name where all of a word is one variable that is not set; empty else.
std::string_view unset_name(std::string_view word) {
  const bool one = word.size() > 2 && word.front() == unknown_open && word.find(unknown_close) == word.size() - 1;
  return one && word[1] != '(' ? word.substr(1, word.size() - 2) : std::string_view();
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == unknown_open)
      out += '$';
    else if (c != unknown_close)
      out += c;
  return out;
}

/// The place after what is not known, where that starts here; else this place.
std::size_t after_unknown(std::string_view text, std::size_t at) {
  return text[at] == unknown_open ? std::min(text.find(unknown_close, at), text.size() - 1) + 1 : at;
}

Words fields_of(std::string_view text, std::string_view separators) {
  Words out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = text.find_first_not_of(separators, at);
    if (start == std::string_view::npos) break;
    at = std::min(text.find_first_of(separators, start), text.size());
    out.emplace_back(text.substr(start, at - start));
  }
  return out;
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

bool is_shell(std::string_view word) {
  const std::string name = base_name(word);
  return name == "bash" || name == "sh" || name == "zsh" || name == "dash";
}

struct ShellValue {
  Words items;
  bool list = false;
};

class ShellRun {
 public:
  ShellRun(std::string_view where, const ShellSurroundings& around) : where_(where), around_(around) {}

  Result<ShellScript> read(std::string_view text) {
    ASSAY_TRY(tree, parse_shell(text, where_));
    run_tree(std::move(tree));
    if (!failed_.empty()) return fail(where_, failed_, "give the command that starts the program itself");
    for (Words& words : out_.commands)
      for (std::string& word : words) word = shown(word);
    Variables files;
    for (const auto& [name, content] : out_.files) files.emplace(shown(name), shown(content));
    out_.files = std::move(files);
    for (const auto& [name, value] : variables_) out_.variables.emplace(name, shown(join(value.items, " ")));
    return std::move(out_);
  }

 private:
  // ---- commands ----

  std::optional<bool> run_tree(ShellTree tree) {
    trees_.push_back(std::move(tree));
    const ShellTree& kept = trees_.back();
    const std::vector<ShellDocument>* const before = std::exchange(documents_, &kept.documents);
    const auto status = run(kept.body);
    documents_ = before;
    return status;
  }

  /// Text as a script of its own, e.g. of eval; a fault in it leaves it out.
  std::optional<bool> run_text(const std::string& text) {
    if (depth_ >= deepest_run) return std::nullopt;
    auto tree = parse_shell(text, where_);
    return tree ? run_tree(std::move(*tree)) : std::nullopt;
  }

  std::optional<bool> run(const ShellBody& body) {
    std::optional<bool> status = true;
    ++depth_;
    for (std::size_t i = 0; i < body.size() && failed_.empty() && !left_; ++i) {
      const ShellCommand& one = body[i];
      if (++commands_ > most_shell_commands) failed_ = "this script runs too many commands to be read";
      if ((one.link == "&&" && status == false) || (one.link == "||" && status != false)) continue;
      const bool feeds = i + 1 < body.size() && body[i + 1].link == "|";
      if (feeds && depth_ < deepest_run) {
        piped_ = output_of([&] { run(one); });
        continue;
      }
      status = run(one);
      if (one.negated && one.kind != Kind::repeat && status) status = !*status;
    }
    --depth_;
    return status;
  }

  std::optional<bool> run(const ShellCommand& one) {
    if (depth_ >= deepest_run) return std::nullopt;
    switch (one.kind) {
      case Kind::function:
        functions_[one.name] = {&one.bodies.front(), documents_};
        return true;
      case Kind::group:
        return run(one.bodies.front());
      case Kind::arithmetic: {
        const auto value = arithmetic(one.words.front());
        return value ? std::optional(*value != 0) : std::nullopt;
      }
      case Kind::test:
        return test(one.words);
      case Kind::condition:
        for (std::size_t i = 0; i + 1 < one.bodies.size(); i += 2)
          if (run(one.bodies[i]) == true) return run(one.bodies[i + 1]);
        return one.bodies.size() % 2 == 1 ? run(one.bodies.back()) : true;
      case Kind::choice:
        return choose(one);
      case Kind::loop: {
        Words items;
        for (const std::string& word : one.words) expand(word, items);
        for (const std::string& item : items) {
          assign(one.name, {{item}, false}, false);
          run(one.bodies.front());
        }
        return true;
      }
      case Kind::repeat: {
        // What a program says is not known: its loop runs once.
        const bool known = std::all_of(one.bodies[0].begin(), one.bodies[0].end(), [](const ShellCommand& c) {
          return c.kind == Kind::test || c.kind == Kind::arithmetic || (!c.words.empty() && c.words.front() == "[");
        });
        for (int i = 0; i < (known ? most_repeats : 1) && failed_.empty(); ++i) {
          const auto status = run(one.bodies[0]);
          if (status.value_or(false) == one.negated) break;
          run(one.bodies[1]);
        }
        return true;
      }
      case Kind::simple:
        return simple(one);
    }
    return std::nullopt;
  }

  std::optional<bool> choose(const ShellCommand& one) {
    const std::string value = tested(one.words.front());
    for (std::size_t i = 0; i < one.bodies.size(); ++i)
      for (const std::string& pattern : one.patterns[i])
        if (matches_glob(tested(pattern), value)) return run(one.bodies[i]);
    return true;
  }

  std::optional<bool> simple(const ShellCommand& one) {
    std::size_t first = 0;
    while (first < one.words.size() && assign_word(one.words[first])) ++first;
    Words words;
    for (; first < one.words.size(); ++first) {
      const bool declares = !words.empty() && is_declaration(words.front());
      if (!declares || !assign_word(one.words[first])) expand(one.words[first], words);
    }
    std::string document;
    for (const Redirect& redirect : one.redirects) {
      if (redirect.document >= 0) {
        const ShellDocument& text = (*documents_)[static_cast<std::size_t>(redirect.document)];
        document += text.expands ? within(text.text, true) : text.text;
      } else if (redirect.sign == "<<<") {
        document += single(redirect.target) + "\n";
      } else if (redirect.sign == "<") {
        document += out_.files[single(redirect.target)];
      }
    }
    std::optional<bool> status = true;
    const std::string said =
        output_of([&] { status = call(words, document.empty() ? std::exchange(piped_, {}) : document); });
    bool written = false;
    for (const Redirect& redirect : one.redirects)
      if (redirect.sign == ">" || redirect.sign == ">>") {
        std::string& file = out_.files[single(redirect.target)];
        file = redirect.sign == ">" ? said : file + said;
        written = true;
      }
    if (!written && output_) output_->append(said);
    return status;
  }

  static bool is_declaration(std::string_view word) {
    return word == "export" || word == "declare" || word == "local" || word == "readonly" || word == "typeset";
  }

  void say(std::string_view text) {
    if (output_ && output_->size() < longest_word) output_->append(text);
  }

  template <class Act>
  std::string output_of(const Act& act) {
    std::string out;
    std::string* const before = std::exchange(output_, &out);
    act();
    output_ = before;
    return out;
  }

  /// A command whose words are known, with what it reads.
  std::optional<bool> call(Words words, const std::string& input) {
    while (!words.empty() && (words.front() == "exec" || words.front() == "command" || words.front() == "builtin"))
      words.erase(words.begin());
    if (words.empty()) return true;
    const std::string name = words.front();
    const Words rest(words.begin() + 1, words.end());
    if (const auto found = functions_.find(name); found != functions_.end()) {
      const auto before = std::exchange(arguments_, rest);
      const auto documents = std::exchange(documents_, found->second.second);
      const auto status = run(*found->second.first);
      left_ = false;
      arguments_ = before;
      documents_ = documents;
      return status;
    }
    if (name == "[" || name == "test")
      return test_words(name == "[" && !rest.empty() ? Words(rest.begin(), rest.end() - 1) : rest);
    if (is_declaration(name) || name == ":" || name == "true" || name == "exit") return true;
    if (name == "false") return false;
    if (name == "return") return left_ = true;
    if (name == "eval") return run_text(join(rest, " "));
    if (name == "echo" || name == "printf") return say(join(without_flags(rest), " ") + "\n"), true;
    if (name == "cat" && rest.empty()) return say(input), true;
    if (name == "tee" && !rest.empty()) return out_.files[rest.back()] = input, true;
    if (name == "tr" || name == "sed" || name == "xargs") return say(filtered(name, rest, input)), true;
    if (name == "read") return read_fields(rest, input);
    if (name == "source" || name == ".") return rest.empty() ? true : source(rest.front());
    if (name == "unset") {
      for (const std::string& one : rest) variables_.erase(one);
      return true;
    }
    if (name == "shift") {
      const auto n = rest.empty() ? 1 : static_cast<std::size_t>(parse_number(rest.front()).value_or(1.0));
      arguments_.erase(arguments_.begin(),
                       arguments_.begin() + static_cast<std::ptrdiff_t>(std::min(n, arguments_.size())));
      return true;
    }
    if (name == "set") {
      const auto end = std::find(rest.begin(), rest.end(), "--");
      if (end != rest.end()) arguments_.assign(end + 1, rest.end());
      return true;
    }
    return start(std::move(words), input);
  }

  /// A program: kept with its words (where its output is not the point), or what it starts itself where that is a
  /// script among them.
  std::optional<bool> start(Words words, const std::string& input) {
    say(unknown(fmt::format("({})", shown(join(words, " ")))));
    if (substitutes_) return true;
    const auto inside = [&](std::size_t from, std::size_t to, const std::string& text, const Words& arguments) {
      const auto before = prefix_;
      prefix_.insert(prefix_.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(from));
      prefix_.insert(prefix_.end(), words.begin() + static_cast<std::ptrdiff_t>(to), words.end());
      const auto kept = std::exchange(arguments_, arguments);
      const auto status = run_text(text);
      arguments_ = kept;
      prefix_ = before;
      return status;
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (is_shell(words[i]) && i + 1 < words.size()) {
        std::size_t option = i + 1;
        while (option < words.size() && words[option].starts_with('-') && !is_script_flag(words[option])) ++option;
        if (option + 1 < words.size() && is_script_flag(words[option])) {
          Words more;
          if (option + 3 <= words.size())
            more.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(option + 3, words.size())), words.end());
          return inside(i, words.size(), words[option + 1], more);
        }
      }
      for (const std::string& option : around_.script_options) {
        if (words[i].starts_with(option + "=")) return inside(i, i + 1, words[i].substr(option.size() + 1), {});
        if (words[i] == option && i + 1 < words.size()) return inside(i, i + 2, words[i + 1], {});
      }
    }
    if (!input.empty() && (is_shell(words.back()) || words.front() == "sbatch"))
      return inside(words.size(), words.size(), input, {});
    Words whole = prefix_;
    whole.insert(whole.end(), words.begin(), words.end());
    out_.commands.push_back(std::move(whole));
    return true;
  }

  static bool is_script_flag(std::string_view word) {
    return word.size() > 1 && word.front() == '-' && word[1] != '-' && word.back() == 'c' && word.size() <= 4;
  }

  static Words without_flags(const Words& words) {
    Words out = words;
    while (!out.empty() && (out.front() == "-e" || out.front() == "-n" || out.front() == "-ne" || out.front() == "%s"))
      out.erase(out.begin());
    return out;
  }

  std::string filtered(const std::string& name, const Words& rest, const std::string& input) const {
    if (name == "xargs") return join(fields_of(input, " \t\n"), " ");
    if (name == "tr" && rest.size() == 2) {
      std::string out = input;
      const auto unescaped = [](const std::string& set) { return set == "\\n" ? "\n" : set; };
      const std::string from = unescaped(rest[0]), to = unescaped(rest[1]);
      if (!from.empty() && !to.empty() && from.size() <= 64)
        for (char& c : out)
          if (const std::size_t place = from.find(c); place != std::string::npos)
            c = to[std::min(place, to.size() - 1)];
      return out;
    }
    if (name == "sed" && !rest.empty() && rest.back().size() > 3 && rest.back().front() == 's' &&
        input.size() < 65'536) {
      const std::string& rule = rest.back();
      const std::size_t middle = rule.find(rule[1], 2),
                        end = middle == std::string::npos ? middle : rule.find(rule[1], middle + 1);
      std::string pattern = rule.substr(2, middle == std::string::npos ? middle : middle - 2);
      for (std::size_t at = pattern.find("\\+"); at != std::string::npos; at = pattern.find("\\+"))
        pattern.replace(at, 2, "+");
      if (end != std::string::npos && pattern.size() < 64 && pattern.find_first_of("([{*") == std::string::npos) try {
          return std::regex_replace(input, std::regex(pattern), rule.substr(middle + 1, end - middle - 1));
        } catch (const std::regex_error&) {
        }
    }
    return unknown(fmt::format("({} {})", name, shown(join(rest, " "))));
  }

  /// read -r A B: the fields of a line; the last variable takes what is left.
  bool read_fields(const Words& rest, const std::string& input) {
    const auto ifs = lookup("IFS");
    const std::string separators = ifs && !ifs->items.empty() ? ifs->items.front() : " \t\n";
    const bool whole = std::find(rest.begin(), rest.end(), "-a") != rest.end() ||
                       std::find(rest.begin(), rest.end(), "-ra") != rest.end();
    Words fields = fields_of(trim(input), separators), names;
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (!rest[i].starts_with('-'))
        names.push_back(rest[i]);
      else if (std::string_view("dinNptu").find(rest[i].back()) != std::string_view::npos)
        ++i;  // an option with a value, e.g. -d ''
    if (whole && !names.empty()) return assign(names.front(), {fields, true}, false), true;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string value = i < fields.size() ? fields[i] : "";
      if (i + 1 == names.size())
        for (std::size_t k = i + 1; k < fields.size(); ++k) value += separators.substr(0, 1) + fields[k];
      assign(names[i], {{value}, false}, false);
    }
    return !fields.empty();
  }

  bool source(const std::string& path) {
    const std::string name = around_.directory.empty() ? base_name(path) : around_.directory + "/" + base_name(path);
    std::error_code failed;
    for (const std::string& one : {path, name})
      if (is_known(one) && !around_.directory.empty() && std::filesystem::is_regular_file(one, failed))
        if (const auto text = hardware::read_file(one, where_)) return run_text(*text), true;
    out_.missing.push_back(shown(path));
    return true;
  }

  // ---- variables and words ----

  /// NAME=value, NAME+=value or NAME=( ... ).
  bool assign_word(const std::string& raw) {
    std::size_t end = 0;
    while (end < raw.size() && is_name_character(raw[end])) ++end;
    const bool appends = raw.compare(end, 2, "+=") == 0;
    if (end == 0 || std::isdigit(static_cast<unsigned char>(raw.front())) != 0 ||
        (!appends && raw.compare(end, 1, "=") != 0)) {
      // "$NAME"="$VALUE", which declarations take.
      const std::size_t equals = raw.find('=');
      if (!raw.starts_with('"') || equals == std::string::npos) return false;
      return assign(single(raw.substr(0, equals)), {{single(raw.substr(equals + 1))}, false}, false), true;
    }
    const std::string name = raw.substr(0, end), value = raw.substr(end + (appends ? 2 : 1));
    ShellValue out;
    out.list = value.starts_with('(') && value.ends_with(')');
    if (out.list) {
      const auto items = shell_list(std::string_view(value).substr(1, value.size() - 2), where_);
      for (const std::string& item : items ? *items : Words{}) expand(item, out.items);
    } else {
      out.items = {single(value)};
    }
    assign(name, std::move(out), appends);
    return true;
  }

  void assign(const std::string& name, ShellValue value, bool appends) {
    if (around_.given.contains(name)) return;
    ShellValue& place = variables_[name];
    if (!appends) {
      place = std::move(value);
    } else if (value.list) {
      place.items.insert(place.items.end(), value.items.begin(), value.items.end());
      place.list = true;
    } else {
      if (place.items.empty()) place.items.emplace_back();
      place.items.front() += value.items.front();
    }
    for (std::string& item : place.items)
      if (item.size() >= longest_word) failed_ = "a variable of this script grows without end";
    if (place.items.size() > 10'000) failed_ = "a list of this script grows without end";
  }

  std::optional<ShellValue> lookup(std::string_view name) const {
    if (const auto found = around_.given.find(name); found != around_.given.end())
      return ShellValue{{found->second}, false};
    if (name == "@" || name == "*") return ShellValue{arguments_, true};
    if (name == "#") return ShellValue{{std::to_string(arguments_.size())}, false};
    if (name == "?") return ShellValue{{"0"}, false};
    if (const auto place = parse_number(name);
        place && *place >= 1.0 && *place <= static_cast<double>(arguments_.size()))
      return ShellValue{{arguments_[static_cast<std::size_t>(*place) - 1]}, false};
    if (const auto found = variables_.find(name); found != variables_.end()) {
      // A value that is another variable, which nothing sets, is no value either.
      if (found->second.items.size() != 1 || unset_name(found->second.items.front()).empty()) return found->second;
      const auto again = around_.given.find(unset_name(found->second.items.front()));
      return again == around_.given.end() ? std::optional(found->second) : ShellValue{{again->second}, false};
    }
    if (const auto found = around_.standard.find(name); found != around_.standard.end())
      return ShellValue{{found->second}, false};
    return std::nullopt;
  }

  /// Fields of a word after all expansions; where it is not split, blanks from variables stay as in quotes.
  void expand(std::string_view raw, Words& out, bool splits = true) {
    std::string word;
    bool is_word = false;
    const auto end_word = [&] {
      if (is_word || !word.empty()) out.push_back(std::exchange(word, {}));
      is_word = false;
    };
    const auto put = [&](const ShellValue& value, bool quoted) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0 && splits) end_word();
        if (i > 0 && !splits) word += ' ';
        if (quoted || !splits) {
          word += value.items[i];
          is_word = true;
          continue;
        }
        const std::string& text = value.items[i];
        constexpr std::string_view blanks = " \t\n";
        const Words fields = is_known(text) ? fields_of(text, blanks) : known_fields(text);
        for (std::size_t k = 0; k < fields.size(); ++k) {
          if (k > 0 || (!text.empty() && blanks.find(text.front()) != std::string_view::npos)) end_word();
          word += fields[k];
        }
        if (!text.empty() && blanks.find(text.back()) != std::string_view::npos) end_word();
      }
    };
    bool quoted = false;
    for (std::size_t at = 0; at < raw.size() && word.size() < longest_word;) {
      const char c = raw[at];
      if (const std::size_t past = after_unknown(raw, at); past > at) {
        word += raw.substr(at, past - at);
        at = past;
      } else if (c == '"') {
        quoted = !quoted;
        is_word = is_word || quoted;
        ++at;
      } else if (c == '\'' && !quoted) {
        const std::size_t end = std::min(raw.find('\'', at + 1), raw.size());
        word += raw.substr(at + 1, end - at - 1);
        is_word = true;
        at = std::min(end + 1, raw.size());
      } else if (c == '\\' && at + 1 < raw.size()) {
        if (quoted && std::string_view("$`\"\\\n").find(raw[at + 1]) == std::string_view::npos) word += c;
        if (raw[at + 1] != '\n') word += raw[at + 1];
        at += 2;
      } else if (c == '$' && raw.substr(at + 1, 1) == "'") {
        ++at;  // $'...'
      } else if (c == '$' || c == '`') {
        const std::size_t end = end_of_expansion(raw, at);
        if (end <= at + 1) {
          word += raw[at++];
          continue;
        }
        const ShellValue value = expansion(raw.substr(at, end - at));
        if (quoted && value.list && value.items.empty()) is_word = !word.empty();
        put(value, quoted);
        at = end;
      } else {
        word += c;
        ++at;
      }
    }
    end_word();
  }

  /// Fields where what is not known may hold blanks.
  static Words known_fields(std::string_view text) {
    Words out;
    std::string word;
    bool inside = false;
    for (const char c : text) {
      inside = c == unknown_open || (inside && c != unknown_close);
      if (!inside && (c == ' ' || c == '\t' || c == '\n')) {
        if (!word.empty()) out.push_back(std::exchange(word, {}));
      } else {
        word += c;
      }
    }
    if (!word.empty()) out.push_back(std::move(word));
    return out;
  }

  /// A word as one text: of an assignment.
  std::string single(std::string_view raw) {
    Words out;
    const std::string text(raw);
    const bool plain = text.find_first_of("\"'\\") == std::string::npos;
    if (plain) return within(text, false);
    expand(raw, out, false);
    return join(out, " ");
  }

  /// Text with what stands for values put in; with escapes as in a document.
  std::string within(std::string_view text, bool escapes) {
    std::string out;
    for (std::size_t at = 0; at < text.size() && out.size() < longest_word;) {
      if (const std::size_t stop = after_unknown(text, at); stop > at) {
        out += text.substr(at, stop - at);
        at = stop;
        continue;
      }
      if (escapes && text[at] == '\\' && at + 1 < text.size() &&
          std::string_view("$`\\").find(text[at + 1]) != std::string_view::npos) {
        out += text[at + 1];
        at += 2;
        continue;
      }
      const std::size_t end = text[at] == '$' || text[at] == '`' ? end_of_expansion(text, at) : at + 1;
      out += end <= at + 1 ? std::string(1, text[at]) : join(expansion(text.substr(at, end - at)).items, " ");
      at = std::max(end, at + 1);
    }
    return out;
  }

  /// What a $... or `...` stands for.
  ShellValue expansion(std::string_view raw) {
    if (depth_ >= deepest_run) return {{unknown(raw.substr(1))}, false};
    if (raw.starts_with("$((") && raw.ends_with("))")) {
      const auto value = arithmetic(raw.substr(3, raw.size() - 5));
      return {{value ? std::to_string(*value) : unknown(raw.substr(1))}, false};
    }
    if (raw.starts_with("$(") || raw.starts_with('`')) {
      const std::size_t open = raw.starts_with('`') ? 1 : 2;
      const std::string text(raw.substr(open, raw.size() - open - 1));
      const bool before = std::exchange(substitutes_, true);
      std::string out = output_of([&] { run_text(text); });
      substitutes_ = before;
      while (out.ends_with('\n')) out.pop_back();
      return {{out}, false};
    }
    if (raw.starts_with("${")) return braces(raw.substr(2, raw.size() - 3));
    const std::string_view name = raw.substr(1);
    const auto value = lookup(name);
    if (!value) return {{unset(name)}, false};
    if (name == "@" || name == "*") return *value;
    return {{value->items.empty() ? "" : value->items.front()}, false};
  }

  std::string unset(std::string_view name) {
    if (testing_) note_unset(name);
    return testing_ ? "" : unknown(name);
  }

  void note_unset(std::string_view name) {
    if (std::find(out_.unset.begin(), out_.unset.end(), name) == out_.unset.end()) out_.unset.emplace_back(name);
  }

  /// ${NAME...}.
  ShellValue braces(std::string_view text) {
    const bool counts = text.starts_with('#') && text.size() > 1, indirect = text.starts_with('!');
    if (counts || indirect) text.remove_prefix(1);
    std::size_t end = 0;
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end == 0 && !text.empty() && (text[0] == '@' || text[0] == '*')) end = 1;
    std::string name(text.substr(0, end));
    std::string_view rest = text.substr(end);
    auto value = lookup(name);
    if (indirect && value && !value->items.empty()) value = lookup(value->items.front());
    bool whole = false;
    if (rest.starts_with('[')) {
      const std::size_t close = std::min(rest.find(']'), rest.size());
      const std::string index(rest.substr(1, close - 1));
      rest.remove_prefix(std::min(close + 1, rest.size()));
      whole = index == "@" || index == "*";
      const auto place = whole ? std::nullopt : arithmetic(index);
      if (value && place && *place >= 0 && static_cast<std::size_t>(*place) < value->items.size())
        value = ShellValue{{value->items[static_cast<std::size_t>(*place)]}, false};
      else if (!whole)
        value.reset();
      if (whole && !value) value = ShellValue{{}, true};
    }
    if (whole || name == "@" || name == "*") {
      if (counts) return {{std::to_string(value->items.size())}, false};
      return {value->items, true};
    }
    std::string now = value && !value->items.empty() ? value->items.front() : "";
    const std::string_view other = unset_name(now);
    const bool is_set = value && other.empty();
    if (counts) return {{is_known(now) ? std::to_string(now.size()) : unknown(fmt::format("{{#{}}}", name))}, false};
    if (rest.empty()) return {{value ? (testing_ && !other.empty() ? unset(other) : now) : unset(name)}, false};
    const bool colon = rest.starts_with(':');
    const std::string_view tail = rest.substr(std::min<std::size_t>(rest.size(), colon ? 1 : 0));
    const bool there = is_set && (!colon || !now.empty());
    if (!tail.empty() && std::string_view("-=?+").find(tail.front()) != std::string_view::npos) {
      const std::string_view operand = tail.substr(1);
      if (tail.front() == '+') return {{there ? single(operand) : ""}, false};
      if (there) return {{now}, false};
      if (testing_) note_unset(name);
      if (tail.front() == '?') return {{testing_ ? "" : unknown(name)}, false};
      std::string filled = single(operand);
      if (tail.front() == '=') assign(name, {{filled}, false}, false);
      return {{std::move(filled)}, false};
    }
    if (!is_set) return {{value ? now : unset(name)}, false};
    if (colon) {
      const Words parts = split(tail, ':');
      const auto from = arithmetic(parts.front()),
                 size = parts.size() > 1 ? arithmetic(parts[1]) : std::optional<std::int64_t>(longest_word);
      if (!from || !size || *from < 0 || *size < 0 || !is_known(now))
        return {{unknown(fmt::format("{{{}}}", text))}, false};
      return {{static_cast<std::size_t>(*from) < now.size()
                   ? now.substr(static_cast<std::size_t>(*from), static_cast<std::size_t>(*size))
                   : ""},
              false};
    }
    return {{changed(std::move(now), rest, [&](std::string_view raw) { return single(raw); })}, false};
  }

  // ---- conditions ----

  std::string tested(std::string_view raw) {
    const bool before = std::exchange(testing_, true);
    std::string out = single(raw);
    testing_ = before;
    for (std::string_view name = unset_name(out); !name.empty(); name = unset_name(out)) {
      note_unset(name);
      out.clear();
    }
    return out;
  }

  std::optional<bool> test(const Words& raw) {
    Words words;
    for (const std::string& word : raw) words.push_back(tested(word));
    return test_words(words);
  }

  std::optional<bool> test_words(Words words) {
    for (std::string& word : words)
      if (const std::string_view name = unset_name(word); !name.empty()) {
        note_unset(name);
        word.clear();
      }
    return test_holds(words, [](const std::string& word) { return is_known(word); });
  }

  std::optional<std::int64_t> arithmetic(std::string_view raw) {
    const std::string text = within(raw, false);
    if (!is_known(text)) return std::nullopt;
    return calculated(
        text,
        [&](std::string_view name) -> std::optional<std::string> {
          const auto value = lookup(name);
          if (!value || value->items.empty() || !is_known(value->items.front())) return std::nullopt;
          return value->items.front();
        },
        [&](std::string_view name, std::int64_t value) {
          assign(std::string(name), {{std::to_string(value)}, false}, false);
        });
  }

  std::string where_;
  const ShellSurroundings& around_;
  std::deque<ShellTree> trees_;
  const std::vector<ShellDocument>* documents_ = nullptr;
  std::map<std::string, ShellValue, std::less<>> variables_;
  std::map<std::string, std::pair<const ShellBody*, const std::vector<ShellDocument>*>> functions_;
  Words arguments_, prefix_;
  std::string* output_ = nullptr;
  std::string piped_, failed_;
  int depth_ = 0, commands_ = 0;
  bool testing_ = false, left_ = false, substitutes_ = false;
  ShellScript out_;
};

}  // namespace

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view safe = "_-./:=@%+,";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || safe.find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

Result<ShellScript> read_shell(std::string_view text, std::string_view where, const ShellSurroundings& around) {
  return ShellRun(where, around).read(text);
}

}  // namespace assay::launch
