#include "assay/ask/launch/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <regex>

#include "assay/ask/launch/shell_expressions.h"
#include "assay/ask/launch/shell_run.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"

namespace assay::launch {
namespace {

using Kind = ShellCommand::Kind;
using Words = std::vector<std::string>;

constexpr int most_shell_commands = 20'000, most_repeats = 1'000;

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

bool is_shell(std::string_view word) {
  const std::string name = base_name(word);
  return name == "bash" || name == "sh" || name == "zsh" || name == "dash";
}

}  // namespace

Result<ShellScript> ShellRun::read(std::string_view text) {
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

std::optional<bool> ShellRun::run_tree(ShellTree tree) {
  trees_.push_back(std::move(tree));
  const ShellTree& kept = trees_.back();
  const std::vector<ShellDocument>* const before = std::exchange(documents_, &kept.documents);
  const auto status = run(kept.body);
  documents_ = before;
  return status;
}

std::optional<bool> ShellRun::run_text(const std::string& text) {
  if (depth_ >= deepest_run) return std::nullopt;
  auto tree = parse_shell(text, where_);
  return tree ? run_tree(std::move(*tree)) : std::nullopt;
}

std::optional<bool> ShellRun::run(const ShellBody& body) {
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

std::optional<bool> ShellRun::run(const ShellCommand& one) {
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

std::optional<bool> ShellRun::choose(const ShellCommand& one) {
  const std::string value = tested(one.words.front());
  for (std::size_t i = 0; i < one.bodies.size(); ++i)
    for (const std::string& pattern : one.patterns[i])
      if (matches_glob(tested(pattern), value)) return run(one.bodies[i]);
  return true;
}

std::optional<bool> ShellRun::simple(const ShellCommand& one) {
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

bool ShellRun::is_declaration(std::string_view word) {
  return word == "export" || word == "declare" || word == "local" || word == "readonly" || word == "typeset";
}

void ShellRun::say(std::string_view text) {
  if (output_ && output_->size() < longest_word) output_->append(text);
}

std::optional<bool> ShellRun::call(Words words, const std::string& input) {
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

std::optional<bool> ShellRun::start(Words words, const std::string& input) {
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

bool ShellRun::is_script_flag(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && word[1] != '-' && word.back() == 'c' && word.size() <= 4;
}

Words ShellRun::without_flags(const Words& words) {
  Words out = words;
  while (!out.empty() && (out.front() == "-e" || out.front() == "-n" || out.front() == "-ne" || out.front() == "%s"))
    out.erase(out.begin());
  return out;
}

std::string ShellRun::filtered(const std::string& name, const Words& rest, const std::string& input) const {
  if (name == "xargs") return join(fields_of(input, " \t\n"), " ");
  if (name == "tr" && rest.size() == 2) {
    std::string out = input;
    const auto unescaped = [](const std::string& set) { return set == "\\n" ? "\n" : set; };
    const std::string from = unescaped(rest[0]), to = unescaped(rest[1]);
    if (!from.empty() && !to.empty() && from.size() <= 64)
      for (char& c : out)
        if (const std::size_t place = from.find(c); place != std::string::npos) c = to[std::min(place, to.size() - 1)];
    return out;
  }
  if (name == "sed" && !rest.empty() && rest.back().size() > 3 && rest.back().front() == 's' && input.size() < 65'536) {
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

bool ShellRun::read_fields(const Words& rest, const std::string& input) {
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

bool ShellRun::source(const std::string& path) {
  const std::string name = around_.directory.empty() ? base_name(path) : around_.directory + "/" + base_name(path);
  std::error_code failed;
  for (const std::string& one : {path, name})
    if (is_known(one) && !around_.directory.empty() && std::filesystem::is_regular_file(one, failed))
      if (const auto text = hardware::read_file(one, where_)) return run_text(*text), true;
  out_.missing.push_back(shown(path));
  return true;
}
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
