#include "assay/ask/launch/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"

namespace assay::launch {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

using Variables = std::map<std::string, std::vector<std::string>, std::less<>>;

class ShellReader {
 public:
  ShellReader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Result<ShellScript> read() {
    while (at_ < text_.size() && failed_.empty()) step();
    end_command();
    if (!failed_.empty()) return fail(std::string(where_), failed_, "close it");
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
    } else if (c == '\n') {
      ++at_;
      end_command();
      read_documents();
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (c == ';' || c == '&' || c == '|') {
      ++at_;
      end_command();
    } else if (c == '<' || c == '>') {
      redirect();
    } else if (c == '(' || c == ')') {
      ++at_;
    } else {
      word();
    }
  }

  /// The words after < and >; a here-document follows after the line.
  void redirect() {
    const std::size_t start = at_;
    while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '-') ++at_;
    const std::string_view sign = text_.substr(start, at_ - start);
    // "2>" leaves its 2 as a word.
    if (!words_.empty() && start > 0 && words_.back().size() == 1 &&
        std::isdigit(static_cast<unsigned char>(text_[start - 1])) != 0)
      words_.pop_back();
    while (peek() == ' ' || peek() == '\t') ++at_;
    const std::size_t before = at_;
    std::vector<std::string> target;
    read_word(target);
    const bool plain = text_.substr(before, 1) != "'" && text_.substr(before, 1) != "\"";
    if (target.empty()) return;
    if (sign.starts_with("<<")) {
      document_end_ = target.front();
      document_expands_ = plain;
      pending_ = true;
    } else if (sign.starts_with('>')) {
      output_ = target.front();
    }
  }

  void read_documents() {
    if (!pending_) return;
    pending_ = false;
    std::string content;
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      if (trim(line) == document_end_) break;
      content += document_expands_ ? expanded(line) : std::string(line);
      content += '\n';
    }
    if (!output_.empty() && branches_ == 0) out_.files[output_] += content;
    output_.clear();
  }

  std::string expanded(std::string_view line) const {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '$') {
        out += line[i];
        continue;
      }
      std::size_t end = i + 1;
      const bool braces = end < line.size() && line[end] == '{';
      if (braces) ++end;
      const std::size_t from = end;
      while (end < line.size() && is_name_character(line[end])) ++end;
      const auto found = variables_.find(line.substr(from, end - from));
      if (found == variables_.end() || (braces && (end >= line.size() || line[end] != '}'))) {
        out += line[i];
        continue;
      }
      out += join(found->second, " ");
      i = braces ? end : end - 1;
    }
    return out;
  }

  void word() {
    // NAME=( ... ) and NAME=value, where no command came before.
    if (words_.empty()) {
      std::size_t end = at_;
      while (end < text_.size() && is_name_character(text_[end])) ++end;
      const bool appends = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
      if (end > at_ && end < text_.size() && (text_[end] == '=' || appends)) {
        const std::string name(text_.substr(at_, end - at_));
        at_ = end + (appends ? 2 : 1);
        std::vector<std::string> values;
        if (peek() == '(')
          list(values);
        else
          read_word(values);
        if (branches_ > 0) return;
        std::vector<std::string>& place = variables_[name];
        if (!appends) place.clear();
        place.insert(place.end(), values.begin(), values.end());
        return;
      }
    }
    std::vector<std::string> found;
    read_word(found);
    if (words_.empty() && found.size() == 1) {
      const std::string& first = found.front();
      if (first == "if" || first == "case" || first == "while" || first == "for" || first == "until") ++branches_;
      if (first == "fi" || first == "esac" || first == "done") branches_ = std::max(0, branches_ - 1);
      if (first == "then" || first == "do" || first == "else" || first == "fi" || first == "done" ||
          first == "export" || first == "exec")
        return;
    }
    words_.insert(words_.end(), found.begin(), found.end());
  }

  void list(std::vector<std::string>& values) {
    ++at_;
    while (at_ < text_.size() && peek() != ')') {
      if (std::isspace(static_cast<unsigned char>(peek())) != 0 || (peek() == '\\' && peek(1) == '\n'))
        at_ += peek() == '\\' ? 2 : 1;
      else if (peek() == '#')
        while (at_ < text_.size() && peek() != '\n') ++at_;
      else
        read_item(values);
    }
    if (at_ >= text_.size()) failed_ = "a list is not closed";
    ++at_;
  }

  /// A word of a list, or a sign that ends words elsewhere and means nothing here.
  void read_item(std::vector<std::string>& out) {
    const std::size_t start = at_;
    read_word(out);
    if (at_ == start) ++at_;
  }

  /// One word, or several where it is a list: "${NAME[@]}".
  void read_word(std::vector<std::string>& out) {
    std::string word;
    bool quoted = false, is_list = false;
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '\'') {
        const std::size_t end = text_.find('\'', at_ + 1);
        if (end == std::string_view::npos) return unclosed(c);
        word += text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        quoted = true;
      } else if (c == '"') {
        quoted = true;
        ++at_;
        while (at_ < text_.size() && peek() != '"') {
          if (peek() == '\\' && at_ + 1 < text_.size()) {
            ++at_;
            if (peek() != '\n') word += peek();
            ++at_;
          } else if (peek() == '$') {
            is_list = variable(word, out) || is_list;
          } else {
            word += text_[at_++];
          }
        }
        if (at_ == text_.size()) return unclosed('"');
        ++at_;
      } else if (c == '\\') {
        if (peek(1) == '\n') {
          at_ += 2;
          continue;
        }
        if (at_ + 1 < text_.size()) word += peek(1);
        at_ = std::min(at_ + 2, text_.size());
      } else if (c == '$') {
        is_list = variable(word, out) || is_list;
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || c == '&' || c == '|' || c == '<' ||
                 c == '>' || c == ')' || c == '(') {
        break;
      } else {
        word += text_[at_++];
      }
    }
    if (!word.empty() || (quoted && !is_list)) out.push_back(std::move(word));
  }

  void unclosed(char quote) {
    failed_ = fmt::format("a {} is not closed", quote == '"' ? "double quote" : "single quote");
    at_ = text_.size();
  }

  /// After a $: its value where the script set it, else as written. True for a list, whose items are words of their
  /// own.
  bool variable(std::string& word, std::vector<std::string>& out) {
    const std::size_t start = at_++;
    if (peek() == '(') {
      int depth = 0;
      do {
        depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
        ++at_;
      } while (at_ < text_.size() && depth > 0);
      word += text_.substr(start, at_ - start);
      return false;
    }
    const bool braces = peek() == '{';
    if (braces) ++at_;
    const std::size_t from = at_;
    while (is_name_character(peek())) ++at_;
    const std::string_view name = text_.substr(from, at_ - from);
    bool whole = false;
    if (braces) {
      const std::size_t end = std::min(text_.find('}', at_), text_.size());
      const std::string_view rest = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      whole = rest == "[@]" || rest == "[*]";
      if (!rest.empty() && !whole) {
        word += text_.substr(start, at_ - start);
        return false;
      }
    }
    const auto found = variables_.find(name);
    if (found == variables_.end()) {
      word += text_.substr(start, at_ - start);
      return false;
    }
    if (whole) {
      out.insert(out.end(), found->second.begin(), found->second.end());
      return true;
    }
    if (!found->second.empty()) word += found->second.front();
    return false;
  }

  void end_command() {
    if (!words_.empty()) out_.commands.push_back(std::move(words_));
    words_.clear();
    if (!pending_) output_.clear();
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
  Variables variables_;
  int branches_ = 0;
  bool pending_ = false, document_expands_ = false;
  std::string document_end_, output_, failed_;
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

Result<ShellScript> read_shell(std::string_view text, std::string_view where) {
  return ShellReader(text, where).read();
}

}  // namespace assay::launch
