#include "assay/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>

#include "assay/base/larger_unit.h"

namespace assay {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Length of the leading decimal number, 0 if there is none. Hexadecimal, inf and nan are not numbers here.
std::size_t number_length(std::string_view text) {
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
  std::size_t digits = 0;
  while (i < text.size() && is_digit(text[i])) {
    ++i;
    ++digits;
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    while (i < text.size() && is_digit(text[i])) {
      ++i;
      ++digits;
    }
  }
  if (digits == 0) return 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < text.size() && (text[j] == '+' || text[j] == '-')) ++j;
    if (j < text.size() && is_digit(text[j])) {
      while (j < text.size() && is_digit(text[j])) ++j;
      i = j;
    }
  }
  return i;
}

struct Unit {
  Dim dim;
  double scale = 1.0;
};

std::optional<Unit> simple_unit(std::string_view name) {
  for (const UnitName& unit : unit_names) {
    if (!name.ends_with(unit.name)) continue;
    const std::string_view prefix = name.substr(0, name.size() - unit.name.size());
    if (prefix.empty()) return Unit{unit.dim, unit.scale};
    const bool is_micro = prefix == "\u00b5" || prefix == "\u03bc";  // the sign, and the Greek letter
    if (unit.decimal)
      for (const Prefix& p : decimal_prefixes)
        if (p.name == prefix || (is_micro && p.name == "u")) return Unit{unit.dim, unit.scale * p.scale};
    if (unit.binary)
      for (const Prefix& p : binary_prefixes)
        if (p.name == prefix) return Unit{unit.dim, unit.scale * p.scale};
  }
  return std::nullopt;
}

std::string unit_hint(std::string_view name) {
  if (name == "b" || name == "kb" || name == "Mb" || name == "Gb" || name == "Tb")
    return "write Gbit for bits, GB for bytes";
  if (name == "Gbps" || name == "Mbps" || name == "Tbps") return "write Gbit/s or GB/s";
  if (name == "GBps" || name == "GBs") return "write GB/s";
  if (name == "FLOPS" || name == "TFLOPS" || name == "FLOPs" || name == "TFLOPs" || name == "PFLOPS" ||
      name == "GFLOPS" || name == "TFlops")
    return "write FLOP for a count, TFLOP/s for a rate";
  if (name == "K" || name == "M" || name == "G" || name == "T") return "write the whole unit, e.g. GB, GiB or TFLOP/s";
  if (name == "$" || name == "$/h" || name == "usd") return "write USD or USD/h";
  if (name == "hr" || name == "hour" || name == "hours") return "write h";
  std::vector<std::string> all;
  for (const UnitName& unit : unit_names) {
    all.emplace_back(unit.name);
    const auto prefixed = [&](std::span<const Prefix> prefixes) {
      for (const Prefix& p : prefixes)
        if (!p.name.empty()) all.push_back(std::string(p.name) + std::string(unit.name));
    };
    if (unit.decimal) prefixed(decimal_prefixes);
    if (unit.binary) prefixed(binary_prefixes);
  }
  const auto near = nearest(name, all);
  return near.empty() ? "units are B, GB, GiB, GB/s, Gbit/s, FLOP, TFLOP/s, s, us, Hz, USD/h, W"
                      : suggestion(name, all);
}

std::string exponent_text(std::string_view unit, int power) {
  return power == 1 ? std::string(unit) : fmt::format("{}^{}", unit, power);
}

std::string with_prefix(double value, std::string_view unit, std::span<const Prefix> prefixes) {
  const double size = std::abs(value);
  const Prefix* chosen = &prefixes.back();
  for (const Prefix& p : prefixes) {
    // Rounding to four digits may carry into the next prefix: 999,960 is 1 M, not 1000 k.
    if (size >= p.scale * (1.0 - 5e-5)) {
      chosen = &p;
      break;
    }
  }
  return fmt::format("{} {}{}", human_number(value / chosen->scale), chosen->name == "u" ? "\u00b5" : chosen->name,
                     unit);
}

/// Whole dollars with separators from a thousand up, cents below, four digits below ten cents.
std::string money(double value) {
  const double size = std::abs(value);
  if (size < 0.1) return human_number(value);  // tokens cost less than a cent
  if (size < 1000.0) return fmt::format("{:.2f}", value);
  return human_count(static_cast<std::int64_t>(std::round(std::clamp(value, -9e18, 9e18))));
}

}  // namespace

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

bool contains_any(std::string_view text, std::span<const std::string> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) { return contains(text, part); });
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> csv_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at <= line.size();) {
    std::size_t end = line.find(',', at);
    if (at < line.size() && line[at] == '"') {
      const std::size_t quote = line.find('"', at + 1);
      end = quote == line.npos ? line.npos : line.find(',', quote);
    }
    std::string_view cell = trim(line.substr(at, end == line.npos ? line.npos : end - at));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    if (end == line.npos) break;
    at = end + 1;
  }
  return cells;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string all;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) all += separator;
    all += part;
  }
  return all;
}

std::optional<double> parse_number(std::string_view text) {
  const std::size_t length = number_length(text);
  if (length == 0 || length != text.size() || length > 400) return std::nullopt;
  std::string copy(text);
  // strtod uses the decimal point of the current C locale, which an embedding program may have set.
  if (const std::size_t point = copy.find('.'); point != std::string::npos)
    copy.replace(point, 1, std::localeconv()->decimal_point);
  const double value = std::strtod(copy.c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

Result<std::int64_t> parse_count(std::string_view text, std::string_view where) {
  const std::string_view all = trim(text);
  const std::size_t length = number_length(all);
  const auto number = parse_number(all.substr(0, length));
  const std::string_view suffix = trim(all.substr(length));
  double scale = 0.0;
  if (suffix.empty()) scale = 1.0;
  if (suffix == "B") scale = 1e9;  // billions, as parameters and tokens are counted
  for (const Prefix& p : decimal_prefixes)
    if (p.name == suffix && p.scale > 1.0) scale = p.scale;
  for (const Prefix& p : binary_prefixes)
    if (p.name == suffix && p.scale > 1.0) scale = p.scale;
  if (!number || scale == 0.0)
    return fail(std::string(where), fmt::format("{} is not a count", in_quotes(text)),
                "write a whole number, e.g. 4096, 128k, 4Mi or 1e6");
  // The product of a decimal fraction and its suffix may miss the whole number by rounding: 1.001k, 1.001 x 1000.
  const double exact = *number * scale, whole = std::round(exact);
  const double value = std::abs(exact - whole) <= 1e-15 * whole ? whole : exact;
  if (value < 1.0)
    return fail(std::string(where), fmt::format("a count must be at least 1, got {}", in_quotes(text)),
                "write a whole number, 1 or more, or leave it out if it has a default");
  if (value > 9e15)  // above 2^53 a double no longer holds every whole number
    return fail(std::string(where), fmt::format("{} is too large for a count", in_quotes(text)), "the limit is 9e15");
  if (value != std::floor(value))
    return fail(std::string(where), fmt::format("a count must be whole, got {}", in_quotes(text)),
                fmt::format("nearest is {}", std::max<std::int64_t>(1, std::llround(value))));
  return static_cast<std::int64_t>(value);
}

Result<AnyQuantity> parse_quantity(std::string_view text, std::string_view where) {
  const std::string_view all = trim(text);
  const std::size_t length = number_length(all);
  const auto number = parse_number(all.substr(0, length));
  if (!number && length > 0) return fail(std::string(where), fmt::format("{} is too large", in_quotes(text)), "");
  if (!number)
    return fail(std::string(where), fmt::format("{} does not start with a number", in_quotes(text)),
                "write a number and a unit, e.g. 80 GiB or 3.35 TB/s");
  AnyQuantity quantity{*number, Dim{}};
  const std::string_view rest = trim(all.substr(length));
  const std::vector<std::string> names = rest.empty() ? std::vector<std::string>{} : split(rest, '/');
  constexpr std::size_t most = 8;  // far below the limits of Dim's exponents
  if (names.size() > most)
    return fail(std::string(where), fmt::format("{} has more than {} units", in_quotes(text), most), "e.g. 3.35 TB/s");
  bool divide = false;
  for (const std::string& name : names) {
    if (name.empty())
      return fail(std::string(where), fmt::format("a unit is missing next to / in {}", in_quotes(text)), "e.g. GB/s");
    const auto unit = simple_unit(name);
    if (!unit)
      return fail(std::string(where), fmt::format("unknown unit {} in {}", in_quotes(name), in_quotes(text)),
                  unit_hint(name));
    quantity.value = divide ? quantity.value / unit->scale : quantity.value * unit->scale;
    quantity.dim = quantity.dim + (divide ? -unit->dim : unit->dim);
    divide = true;
  }
  if (!std::isfinite(quantity.value))
    return fail(std::string(where), fmt::format("{} is too large", in_quotes(text)), "");
  return quantity;
}

Result<AnyQuantity> parse_quantity(std::string_view text, Dim dim, std::string_view where) {
  auto parsed = parse_quantity(text, where);
  if (dim == Dim{.sec = 1} && !parsed) {
    // Only by itself: as part of a longer unit, "d" is too easily a typo.
    const std::size_t length = number_length(trim(text));
    const std::string_view unit = trim(trim(text).substr(length));
    const auto number = parse_number(trim(text).substr(0, length));
    for (const auto& [name, time] : {std::pair{"d", 1_day}, std::pair{"week", 7_day}, std::pair{"weeks", 7_day}})
      if (number && unit == name) return AnyQuantity(*number * time);
    if (number) parsed.error().hint = "a time is one number and one unit: 90min, 2.5h, 30d, 2week";
  }
  if (!parsed || parsed->dim == dim) return parsed;
  const std::string want = base_unit(dim);
  const std::string example = human(AnyQuantity{dim == Dim{.sec = 1} ? 1e-3 : 1e12, dim});
  if (parsed->dim == Dim{})
    return fail(std::string(where), fmt::format("{} has no unit; expected {}", in_quotes(text), want),
                fmt::format("e.g. {}", example));
  return fail(std::string(where),
              fmt::format("{} is in {}; expected {}", in_quotes(text), base_unit(parsed->dim),
                          want.empty() ? "a plain number" : want),
              dim == Dim{} ? "" : fmt::format("e.g. {}", example));
}

std::string base_unit(Dim dim) {
  if (dim == Dim{.sec = -1}) return "Hz";
  if (dim == Dim{.sec = -1, .joule = 1}) return "W";
  const std::pair<std::string_view, int> parts[] = {{"FLOP", dim.flop}, {"B", dim.byte},  {"tokens", dim.token},
                                                    {"USD", dim.usd},   {"J", dim.joule}, {"mm2", dim.area},
                                                    {"s", dim.sec}};
  std::string above, below;
  for (const auto& [name, power] : parts) {
    if (power > 0) above += (above.empty() ? "" : "*") + exponent_text(name, power);
    if (power < 0) below += "/" + exponent_text(name, -power);
  }
  if (above.empty() && !below.empty()) above = "1";
  return above + below;
}

std::string human_number(double value) {
  if (value == 0.0) return "0";
  if (!std::isfinite(value)) return value > 0 ? "infinite" : value < 0 ? "-infinite" : "undefined";
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e7 && std::round(value) == value)
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{:.4g}", value);
}

std::string human_count(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

std::string exact_number(double value) { return fmt::format("{}", value); }

std::optional<UnitName> larger_unit(AnyQuantity quantity) {
  const double size = std::abs(quantity.value);
  std::string_view wanted;
  if (quantity.dim == Dim{.sec = 1} && size >= (1_h).value()) wanted = size >= (2_day).value() ? "days" : "h";
  if (quantity.dim == Dim{.joule = 1} && size >= simple_unit("kWh")->scale) wanted = "Wh";
  const auto* found = std::find_if(std::begin(unit_names), std::end(unit_names),
                                   [&](const UnitName& unit) { return unit.name == wanted; });
  return found == std::end(unit_names) ? std::nullopt : std::optional(*found);
}

std::string human(AnyQuantity quantity, BytePrefix bytes) {
  const double value = quantity.value;
  const std::string unit = base_unit(quantity.dim);
  if (unit.empty()) return human_number(value);
  if (value == 0.0 || !std::isfinite(value)) return fmt::format("{} {}", human_number(value), unit);
  if (quantity.dim == Dim{.usd = 1}) return fmt::format("{} {}", money(value), unit);
  if (quantity.dim == Dim{.sec = -1, .usd = 1}) return fmt::format("{} USD/h", money(value * (1_h).value()));
  if (const auto larger = larger_unit(quantity))
    return larger->decimal ? with_prefix(value / larger->scale, larger->name, decimal_prefixes)
                           : fmt::format("{} {}", human_number(value / larger->scale), larger->name);
  if (quantity.dim == Dim{.flop = 1, .byte = -1} || quantity.dim.area != 0)
    return fmt::format("{} {}", human_number(value), unit);
  if (quantity.dim == Dim{.byte = 1} && bytes == BytePrefix::binary_if_exact) {
    for (const Prefix& p : binary_prefixes) {
      const double scaled = value / p.scale;
      const bool fits = std::abs(scaled) >= 1.0 && std::abs(scaled) < 1024.0 && p.scale > 1.0;
      const bool exact = fits && parse_number(human_number(scaled)) == scaled;
      const bool round_decimal = std::fmod(value, (1_kB).value()) == 0.0;
      if (exact && !round_decimal) return fmt::format("{} {}B", human_number(scaled), p.name);
    }
  }
  return with_prefix(value, unit, decimal_prefixes);
}

std::vector<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  struct Match {
    std::size_t distance;
    const std::string* text;
  };
  std::vector<Match> matches;
  if (name.size() > 64) name = name.substr(0, 64);
  for (const std::string& candidate : candidates) {
    // Damerau-Levenshtein on lower case with rows for i-2, i-1, i.
    const std::size_t n = candidate.size();
    std::vector<std::size_t> before(n + 1), above(n + 1), row(n + 1);
    for (std::size_t j = 0; j <= n; ++j) above[j] = j;
    for (std::size_t i = 1; i <= name.size(); ++i) {
      row[0] = i;
      for (std::size_t j = 1; j <= n; ++j) {
        const bool same = lower(name[i - 1]) == lower(candidate[j - 1]);
        row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
        if (i > 1 && j > 1 && lower(name[i - 1]) == lower(candidate[j - 2]) &&
            lower(name[i - 2]) == lower(candidate[j - 1]))
          row[j] = std::min(row[j], before[j - 2] + 1);
      }
      before.swap(above);
      above.swap(row);
    }
    std::size_t distance = above[n];
    // A prefix of a name counts as a match; another part counts as a single typo, unless it is a small part.
    const bool start = name.size() >= 2 && candidate.starts_with(name);
    const bool part = name.size() >= 2 && (candidate.find(name) != std::string::npos ||
                                           (2 * n >= name.size() && name.find(candidate) != std::string_view::npos));
    if (start || part) distance = std::min<std::size_t>(distance, start ? 0 : 1);
    if (distance <= std::max<std::size_t>(1, std::max(name.size(), n) * 2 / 5))
      matches.push_back({distance, &candidate});
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.distance < b.distance; });
  std::vector<std::string> best;
  for (const Match& match : matches)
    if (best.size() < 3 && match.distance <= (matches.front().distance == 0 ? 0 : matches.front().distance + 2))
      best.push_back(*match.text);
  return best;
}

std::string plain_name(std::string_view name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string out;
  bool apart = false;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') {
      apart = true;
      continue;
    }
    if (apart && !out.empty() && digit(out.back()) && digit(c)) out += '-';
    apart = false;
    out += lower(c);
  }
  return out;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  const auto near = nearest(name, candidates);
  if (near.empty()) {
    if (candidates.empty()) return "";
    std::vector<std::string> some(
        candidates.begin(),
        candidates.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(candidates.size(), 12)));
    return "known: " + join(some, ", ") + (some.size() < candidates.size() ? ", ..." : "");
  }
  std::string text = "did you mean ";
  for (std::size_t i = 0; i < near.size(); ++i) text += (i == 0 ? "" : i + 1 == near.size() ? " or " : ", ") + near[i];
  return text + "?";
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t limit = 60;
  std::string out = "\"";
  for (char c : text.substr(0, limit)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + (text.size() > limit ? "...\"" : "\"");
}

std::string printable(std::string_view text) {
  // C0 and DEL by themselves; C1 and marks of direction in UTF-8.
  const auto length = [&](std::size_t i) -> std::size_t {
    const auto at = [&](std::size_t n) { return i + n < text.size() ? static_cast<unsigned char>(text[i + n]) : 0; };
    if (at(0) < ' ' || at(0) == 0x7f) return at(0) == '\n' || at(0) == '\t' ? 0 : 1;
    if (at(0) == 0xc2 && at(1) >= 0x80 && at(1) < 0xa0) return 2;
    const bool turns =
        at(0) == 0xe2 && ((at(1) == 0x80 && ((at(2) >= 0xaa && at(2) <= 0xae) || at(2) == 0x8e || at(2) == 0x8f)) ||
                          (at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9));
    return turns ? 3 : 0;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t hidden = length(i);
    for (std::size_t n = 0; n < hidden; ++n) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + n]));
    if (hidden == 0) out += text[i];
    i += std::max<std::size_t>(hidden, 1);
  }
  return out;
}

std::string place_in(std::string_view file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  return fmt::format("{}:{}:{}", file, line, before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

std::optional<std::size_t> invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80                   ? 1
                               : byte >= 0xc2 && byte < 0xe0 ? 2
                               : byte >= 0xe0 && byte < 0xf0 ? 3
                               : byte >= 0xf0 && byte < 0xf5 ? 4
                                                             : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    if (length == 3) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((byte == 0xe0 && second < 0xa0) || (byte == 0xed && second >= 0xa0)) return i;  // overlong, surrogate
    }
    if (length == 4) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((byte == 0xf0 && second < 0x90) || (byte == 0xf4 && second >= 0x90)) return i;
    }
    i += length;
  }
  return std::nullopt;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

}  // namespace assay
