#include "assay/base/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <forward_list>
#include <limits>
#include <optional>

#include "assay/base/text.h"

namespace assay {
namespace {

/// The most keys of a table, parts of a dotted key, and depth of nested values: looking for a key stays short, and
/// recursion far from the end of the stack.
constexpr std::size_t most_keys = 4096, most_parts = 64, most_nested = 64;

/// What may stand in a key without quotes, by byte.
constexpr auto bare_bytes = [] {
  std::array<bool, 256> out{};
  for (const char c : std::string_view("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"))
    out[static_cast<unsigned char>(c)] = true;
  return out;
}();
bool is_bare(char c) { return bare_bytes[static_cast<unsigned char>(c)]; }

/// Whether a text starts like a form, in which d stands for any digit.
bool starts_like(std::string_view text, std::string_view form) {
  return text.size() >= form.size() && std::equal(form.begin(), form.end(), text.begin(), [](char wanted, char c) {
           return wanted == 'd' ? is_digit(c) : c == wanted;
         });
}

bool is_time(std::string_view text) {
  return starts_like(text, "dd:dd:dd") && text.find_first_not_of("0123456789:.+-Zz") == std::string_view::npos;
}

/// Whether a text is a date such as 2026-11-15, with or without a time.
bool is_date(std::string_view text) {
  if (!starts_like(text, "dddd-dd-dd")) return false;
  const std::string_view month = text.substr(5, 2), day = text.substr(8, 2), rest = text.substr(10);
  if (month < "01" || month > "12" || day < "01" || day > (month == "02" ? "29" : "31")) return false;
  return rest.empty() || (std::string_view("Tt ").find(rest[0]) != std::string_view::npos && is_time(rest.substr(1)));
}

/// Reads a number as TOML writes it; false where the text is none.
bool read_number(std::string_view text, Toml& value) {
  std::string plain;  // without underscores, each of which stands between two digits
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_')
      plain += text[i];
    else if (i == 0 || i + 1 == text.size() || text[i + 1] == '_' || !is_bare(text[i - 1]) || !is_bare(text[i + 1]))
      return false;
  const int base = plain.starts_with("0x") ? 16 : plain.starts_with("0o") ? 8 : plain.starts_with("0b") ? 2 : 10;
  if (base != 10 || plain.starts_with('+')) plain.erase(0, base == 10 ? 1 : 2);
  const std::string_view digits = std::string_view(plain).substr(base == 10 && plain.starts_with('-') ? 1 : 0);
  if (digits.empty() || (base == 10 && digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]))) return false;
  const char* const end = plain.data() + plain.size();
  std::int64_t integer = 0;
  const auto [read, fault] = std::from_chars(plain.data(), end, integer, base);
  if (fault == std::errc() && read == end && digits[0] != '-') {
    value.kind = Toml::Kind::integer;
    value.integer = integer;
    value.number = static_cast<double>(integer);
    return true;
  }
  value.kind = Toml::Kind::number;
  value.number = digits == "inf" ? std::numeric_limits<double>::infinity() : std::nan("");
  if (digits.size() < plain.size()) value.number = -value.number;
  if (base != 10 || digits == "inf" || digits == "nan") return base == 10;
  const bool whole = digits.find_first_not_of("0123456789") == std::string_view::npos;  // and too large
  const std::size_t point = digits.find('.');
  if (whole || !is_digit(digits[0]) || (point != digits.npos && !starts_like(digits.substr(point + 1), "d")))
    return false;
  const auto number = parse_number(plain);
  value.number = number.value_or(0.0);
  return number.has_value();
}

// Most bytes of a document need no look of their own: they are passed eight at a time.
constexpr std::uint64_t each_byte = 0x0101010101010101, high_bits = 0x80 * each_byte;
/// Past groups of eight bytes from `at` on of which a rule marks none.
template <class Rule>
std::size_t past_groups(std::string_view text, std::size_t at, Rule marks) {
  for (std::uint64_t bytes = 0; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if ((marks(bytes) & high_bits) != 0) break;
  }
  return at;
}
bool is_ascii(std::string_view text) {
  std::size_t at = past_groups(text, 0, [](std::uint64_t bytes) { return bytes; });
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at == text.size();
}
/// Past groups without a byte that ends or changes a text in such quotes.
std::size_t past_text(std::string_view text, std::size_t at, char quote) {
  const auto marks = [](std::uint64_t bytes, char wanted) {  // at least the bytes equal to it
    const std::uint64_t different = bytes ^ (each_byte * static_cast<unsigned char>(wanted));
    return (different - each_byte) & ~different;
  };
  return past_groups(
      text, at, [&](std::uint64_t bytes) { return marks(bytes, quote) | marks(bytes, '\n') | marks(bytes, '\\'); });
}
/// Past groups of printable ASCII: from 0x20 to 0x7e.
std::size_t past_printable(std::string_view text, std::size_t at) {
  return past_groups(text, at,
                     [](std::uint64_t bytes) { return bytes | (bytes - 0x20 * each_byte) | (bytes + each_byte); });
}

/// Reads a document from its first byte to its last; the first fault ends it.
class TomlParser {
 public:
  TomlParser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<Toml> parse() {
    Toml root;
    root.line = root.column = 1;
    bool sound = sound_bytes();
    for (Toml* section = &root; sound && (next_line(), at_ < text_.size()); sound = sound && ends_line())
      sound = peek() == '[' ? header(root, section) : entry(*section);
    if (!sound) return tl::unexpected(std::move(fault_));
    return root;
  }

 private:
  static constexpr std::string_view format_hint = "see the TOML format: key = value, text in double quotes";
  static constexpr std::string_view ascii_hint = "write keys and numbers in ASCII, text in double quotes";

  /// One part of a dotted key, and where it stands. Names are parts of the text, or of `quoted_`.
  struct Part {
    std::string_view name;
    std::size_t at = 0;
  };

  bool refuse(std::size_t at, std::string what, std::string_view hint = format_hint) {
    fault_.where = place_in(file_, text_, at);
    fault_.what = std::move(what), fault_.hint = hint;
    return false;
  }
  bool expected(std::string_view wanted) {
    if (static_cast<unsigned char>(peek()) >= 0x80)
      return refuse(at_, "there is a non-ASCII byte outside a string", ascii_hint);
    const bool ends = at_ == text_.size();
    return refuse(at_, fmt::format("{} is expected here, not {}", wanted,
                                   ends             ? "the end of the file"
                                   : peek() == '\n' ? "the end of the line"
                                                    : in_quotes(text_.substr(at_, 1))));
  }

  /// Whether all of it is plain text in UTF-8, with no control characters but tabs and the ends of lines.
  bool sound_bytes() {
    if (const auto bad = is_ascii(text_) ? std::nullopt : invalid_utf8(text_))
      return refuse(*bad, "the text is not UTF-8", "save the file as UTF-8");
    for (std::size_t i = 0; (i = past_printable(text_, i)) < text_.size(); ++i) {
      auto c = static_cast<unsigned char>(text_[i]);
      if (c == 0xc2 && static_cast<unsigned char>(text_[i + 1]) < 0xa0) c = 0x7f;  // some are two bytes
      if (c < ' ' ? c != '\n' && c != '\t' && c != '\r' : c == 0x7f)
        return refuse(i, fmt::format("control byte 0x{:02x}", static_cast<unsigned char>(text_[i])),
                      "remove it; a TOML file is plain text");
    }
    return true;
  }

  /// The next byte; 0, which is none of plain text, at the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    const bool here = peek() == c;
    at_ += here ? 1 : 0;
    return here;
  }
  void blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  /// Takes the end of a line.
  bool newline() {
    const std::size_t length = text_.substr(at_).starts_with("\r\n") ? 2 : 1;
    if (length == 1 && peek() != '\n') return false;
    at_ += length;
    ++line_, line_start_ = at_;
    return true;
  }
  /// Past blanks, comments and empty lines.
  void next_line() {
    do {
      blanks();
      if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    } while (newline());
  }
  bool ends_line() {
    blanks();
    return at_ == text_.size() || peek() == '#' || newline() || expected("the end of the line");
  }
  /// Gives a value the place of a byte of this line.
  void put_at(Toml& value, std::size_t at) const {
    value.line = line_, value.column = static_cast<int>(at - line_start_) + 1;
  }

  /// Reads a key and its parts.
  bool key() {
    parts_.clear();
    do {
      blanks();
      if (parts_.size() == most_parts)
        return refuse(at_, fmt::format("a key has more than {} parts", most_parts), ascii_hint);
      const std::size_t start = at_;
      while (is_bare(peek())) ++at_;
      std::string_view name(text_.data() + start, at_ - start);
      if (name.empty() && (peek() == '"' || peek() == '\'')) {
        if (!read_text(quoted_.emplace_front(), false)) return false;
        name = quoted_.front();
      } else if (name.empty()) {
        return expected("a key");
      }
      parts_.push_back({name, start});
      blanks();
    } while (take('.'));
    return true;
  }
  bool taken_twice(const Part& part) { return refuse(part.at, fmt::format("{} is given twice", in_quotes(part.name))); }
  Toml* add(Toml& table, const Part& part, std::size_t at) {
    if (table.members.size() == most_keys) {
      refuse(part.at, fmt::format("a table has more than {} keys", most_keys), "split it into smaller tables");
      return nullptr;
    }
    constexpr std::size_t usual = 4;  // members: moving them to a larger place takes as long as reading them
    if (table.members.empty()) table.members.reserve(usual);
    auto& [name, added] = table.members.emplace_back();
    name = part.name;
    put_at(added, at);
    return &added;
  }
  /// The table that the first parts of a key lead to, through the last table of each list; null, and a fault, if none.
  /// A header (made = implied) starts at `at`, and may add to all but inline tables; a dotted key adds to its own.
  Toml* inside(Toml* table, Toml::Made made, std::size_t at) {
    for (std::size_t i = 0; table && i + 1 < parts_.size(); ++i) {
      Toml* found = table->find(parts_[i].name);
      if (!found) {
        table = add(*table, parts_[i], made == Toml::Made::dotted ? parts_[i].at : at);
        if (table) table->made = made;
        continue;
      }
      if (made == Toml::Made::implied && found->kind == Toml::Kind::array && found->made == Toml::Made::header)
        found = &found->items.back();
      const bool open = made == Toml::Made::dotted ? found->made == made : found->made != Toml::Made::whole;
      table = open ? found : (taken_twice(parts_[i]), nullptr);
    }
    return table;
  }
  /// [a.b] or [[a.b]], whose table becomes the section.
  bool header(Toml& root, Toml*& section) {
    const std::size_t start = at_;
    const bool list = text_.substr(at_).starts_with("[[");
    at_ += list ? 2 : 1;
    if (!key()) return false;
    if (!take(']') || (list && !take(']'))) return expected("]");
    Toml* const table = inside(&root, Toml::Made::implied, start);
    if (!table) return false;
    const Part& last = parts_.back();
    section = table->find(last.name);
    const bool fresh = !section;
    if (fresh && !(section = add(*table, last, start))) return false;
    if (fresh && list) section->kind = Toml::Kind::array, section->made = Toml::Made::header;
    const bool right = list ? section->kind == Toml::Kind::array && section->made == Toml::Made::header
                            : fresh || (section->kind == Toml::Kind::table && section->made == Toml::Made::implied);
    if (!right) return refuse(start, fmt::format("{} is given twice", in_quotes(last.name)));
    if (list) put_at(*(section = &section->items.emplace_back()), start);
    section->made = Toml::Made::header;
    return true;
  }
  /// key = value
  bool entry(Toml& table) {
    if (!key()) return false;
    Toml* const inner = inside(&table, Toml::Made::dotted, at_);
    if (!inner) return false;
    if (!take('=')) return expected("=");
    blanks();
    const Part& last = parts_.back();
    if (inner->find(last.name)) return refuse(at_, fmt::format("{} is given twice", in_quotes(last.name)));
    Toml* const added = add(*inner, last, last.at);
    return added && read_value(*added);
  }

  bool read_value(Toml& value) {
    const std::size_t start = at_;
    value.made = Toml::Made::whole;
    if (peek() == '"' || peek() == '\'') {
      value.kind = Toml::Kind::text;
      return read_text(value.text, true);
    }
    if (peek() == '[' || peek() == '{') {
      if (++nested_ > most_nested)
        return refuse(at_, fmt::format("lists and tables are nested more than {} deep", most_nested));
      const bool read = take('[') ? read_list(value) : read_table(value);
      --nested_;
      return read;
    }
    while (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
    if (is_date(text_.substr(start, at_ - start)) && starts_like(text_.substr(at_), " dd:")) {
      for (++at_; is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':';) ++at_;
    }
    const std::string_view written = text_.substr(start, at_ - start);
    if (written.empty()) return expected("a value");
    if (written == "true" || written == "false") {
      value.kind = Toml::Kind::boolean;
      value.boolean = written == "true";
    } else if (is_date(written) || is_time(written)) {
      value.kind = Toml::Kind::date;
      value.text = written;
    } else if (!read_number(written, value)) {
      return refuse(start, fmt::format("{} is not a value", in_quotes(written)));
    }
    return true;
  }
  bool read_list(Toml& value) {
    value.kind = Toml::Kind::array;
    for (;;) {
      next_line();
      if (take(']')) return true;
      Toml& item = value.items.emplace_back();
      put_at(item, at_);
      if (!read_value(item)) return false;
      next_line();
      if (peek() != ']' && !take(',')) return expected("a comma or ]");
    }
  }
  bool read_table(Toml& value) {
    put_at(value, at_++);
    blanks();
    if (take('}')) return true;
    do {
      blanks();
      if (!entry(value)) return false;
      blanks();
    } while (take(','));
    return take('}') || expected("a comma or }");
  }

  /// Reads a text in quotes of either kind, and in three of them where it may have several lines.
  bool read_text(std::string& out, bool may_have_lines) {
    const char quote = peek();
    const bool lines = may_have_lines && at_ + 2 < text_.size() && text_[at_ + 1] == quote && text_[at_ + 2] == quote;
    at_ += lines ? 3 : 1;
    if (lines) newline();
    while (true) {
      const std::size_t run = at_;
      at_ = past_text(text_, at_, quote);
      while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n' && text_[at_] != '\\') ++at_;
      out.append(text_, run, at_ - run);
      if (at_ == text_.size() || (peek() == '\n' && !lines)) return expected("the end of the text in quotes");
      if (peek() == '\\' && quote == '"') {
        if (!read_escape(out, lines)) return false;
      } else if (peek() != quote) {
        out += peek();
        if (!newline()) ++at_;
      } else if (!lines) {
        ++at_;
        return true;
      } else {  // up to two quotes belong to the text, also before the three that end it
        std::size_t quotes = 1;
        while (quotes < 5 && at_ + quotes < text_.size() && text_[at_ + quotes] == quote) ++quotes;
        at_ += quotes;
        out.append(quotes < 3 ? quotes : quotes - 3, quote);
        if (quotes >= 3) return true;
      }
    }
  }
  bool read_escape(std::string& out, bool lines) {
    const std::size_t start = at_++;
    if (lines &&
        (blanks(), newline())) {  // the text goes on where the next line that is not empty has its first letter
      do blanks();
      while (newline());
      return true;
    }
    at_ = start + 2;
    constexpr std::string_view names = "tnr\"\\bfuU", meanings = "\t\n\r\"\\\b\f";
    const std::size_t which = start + 1 < text_.size() ? names.find(text_[start + 1]) : names.npos;
    std::uint32_t code = which < meanings.size() ? static_cast<unsigned char>(meanings[which]) : 0x110000;
    if (which != names.npos && which >= meanings.size()) {
      const std::size_t digits = text_[start + 1] == 'u' ? 4 : 8;
      const std::string_view written = text_.substr(std::min(at_, text_.size()), digits);
      const auto read = std::from_chars(written.data(), written.data() + written.size(), code, 16);
      if (written.size() < digits || read.ptr != written.data() + digits) code = 0x110000;
      at_ += digits;
    }
    if (code >= 0x110000 || (code >= 0xd800 && code < 0xe000))
      return refuse(start, "the escape is none of TOML", "write \\\\ for a backslash, or the text in single quotes");
    if ((code < ' ' && code != '\t' && code != '\n' && code != '\r') || (code >= 0x7f && code < 0xa0))
      return refuse(start, "the text contains a control character", "remove the escape such as \\u001b");
    append_utf8(out, code);
    return true;
  }

  std::string_view text_, file_;
  std::size_t at_ = 0, line_start_ = 0, nested_ = 0;
  int line_ = 1;
  std::vector<Part> parts_;
  std::forward_list<std::string> quoted_;
  Error fault_;
};

}  // namespace

Toml::Toml() = default;

const Toml* Toml::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

Toml* Toml::find(std::string_view key) { return const_cast<Toml*>(std::as_const(*this).find(key)); }

Toml Toml::make_text(std::string value) {
  Toml node;
  node.kind = Kind::text;
  node.text = std::move(value);
  return node;
}

std::string_view describe(Toml::Kind kind) {
  switch (kind) {
    case Toml::Kind::table:
      return "a table";
    case Toml::Kind::array:
      return "a list";
    case Toml::Kind::text:
      return "text";
    case Toml::Kind::integer:
      return "a whole number";
    case Toml::Kind::number:
      return "a number";
    case Toml::Kind::boolean:
      return "true or false";
    case Toml::Kind::date:
      return "a date";
  }
  return "";
}

Result<Toml> parse_toml(std::string_view document, std::string_view file) {
  constexpr std::size_t limit = 1 << 20;
  if (document.size() > limit)
    return fail(std::string(file), fmt::format("the file has {} bytes, the limit is {}", document.size(), limit),
                "split it into smaller files");
  return TomlParser(document, file).parse();
}

Toml toml_scalar(std::string_view text) {
  Toml value = Toml::make_text(std::string(text));
  if (const auto number = parse_number(text)) {
    value.number = *number;
    value.kind = Toml::Kind::number;
    if (*number == std::floor(*number) && std::abs(*number) < 9e15) {
      value.kind = Toml::Kind::integer;
      value.integer = static_cast<std::int64_t>(*number);
    }
  } else if (text == "true" || text == "false") {
    value.kind = Toml::Kind::boolean;
    value.boolean = text == "true";
  }
  return value;
}

namespace {

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string key_text(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), is_bare) ? std::string(key) : toml_quoted(key);
}

bool is_list_of_tables(const Toml& value) {
  return value.kind == Toml::Kind::array && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(),
                     [](const Toml& item) { return item.kind == Toml::Kind::table; });
}

void write_table(const Toml& table, const std::string& path, std::string& out) {
  for (const auto& [key, value] : table.members)
    if (value.kind != Toml::Kind::table && !is_list_of_tables(value))
      out += fmt::format("{} = {}\n", key_text(key), toml_value(value));
  for (const auto& [key, value] : table.members) {
    const std::string name = path.empty() ? key_text(key) : path + "." + key_text(key);
    if (value.kind == Toml::Kind::table) {
      out += fmt::format("\n[{}]\n", name);
      write_table(value, name, out);
    } else if (is_list_of_tables(value)) {
      for (const Toml& item : value.items) {
        out += fmt::format("\n[[{}]]\n", name);
        write_table(item, name, out);
      }
    }
  }
}

}  // namespace

std::string toml_value(const Toml& value) {
  switch (value.kind) {
    case Toml::Kind::text:
      return toml_quoted(value.text);
    case Toml::Kind::date:
      return value.text;
    case Toml::Kind::integer:
      return std::to_string(value.integer);
    case Toml::Kind::boolean:
      return value.boolean ? "true" : "false";
    case Toml::Kind::number: {
      const std::string digits = exact_number(value.number);
      return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
    }
    case Toml::Kind::array:
    case Toml::Kind::table:
      break;
  }
  std::string out;
  for (const Toml& item : value.items) out += (out.empty() ? "" : ", ") + toml_value(item);
  for (const auto& [key, member] : value.members)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", key_text(key), toml_value(member));
  return value.kind == Toml::Kind::array ? "[" + out + "]" : "{ " + out + " }";
}

std::string toml_text(const Toml& table) {
  std::string out;
  write_table(table, "", out);
  return out;
}

Toml* toml_at(Toml& root, std::string_view path) {
  Toml* at = &root;
  for (const std::string& part : split(path, '.')) {
    Toml* next = nullptr;
    if (at->kind == Toml::Kind::array) {
      const auto index = parse_number(part);
      if (index && *index >= 0.0 && *index < static_cast<double>(at->items.size()))
        next = &at->items[static_cast<std::size_t>(*index)];
    } else if (at->kind == Toml::Kind::table) {
      next = at->find(part);
      if (!next) next = &at->members.emplace_back(part, Toml()).second;
    }
    if (!next) return nullptr;
    at = next;
  }
  return at;
}

}  // namespace assay
