#include "assay/predict/kernel/software/version_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"
#include "assay/predict/kernel/software/software.h"

namespace assay::kernel {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// What stands between the words of a name, or before a version.
bool is_separator(char c) { return std::string_view(" -_=@:").find(c) != std::string_view::npos; }

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b)) ||
         (is_separator(a) && is_separator(b));
}

/// From the first digit that does not belong to a word: "v0.11.0", "engine/server:v0.11.0", "core_r0.13".
std::string_view from_number(std::string_view text) {
  const auto begins = [&](std::size_t i) {
    if (!is_digit(text[i])) return false;
    if (i == 0) return true;
    const bool marked = std::string_view("vrVR").find(text[i - 1]) != std::string_view::npos;
    const std::size_t before = marked ? i - 1 : i;
    return before == 0 || std::isalnum(static_cast<unsigned char>(text[before - 1])) == 0;
  };
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins(i)) return text.substr(i);
  return "";
}

/// "1.2.0rc6.post1" is 1, 2, 0; empty where the text has no number.
std::vector<int> numbers_of(std::string_view whole) {
  const std::string_view text = from_number(whole);
  std::vector<int> out;
  for (const std::string& part : split(text, '.')) {
    const auto end = std::find_if_not(part.begin(), part.end(), &is_digit) - part.begin();
    if (end == 0 || end > 8) break;
    out.push_back(std::stoi(part.substr(0, static_cast<std::size_t>(end))));
    if (static_cast<std::size_t>(end) < part.size()) break;
  }
  return out;
}

/// The month of a date or of a release that is named by its month; empty for other texts.
std::string month_of(std::string_view text) {
  if (text.size() >= 7 && is_month(text.substr(0, 7))) return std::string(text.substr(0, 7));
  const std::vector<int> numbers = numbers_of(text);
  if (numbers.size() < 2 || numbers[0] < 20 || numbers[0] > 99 || numbers[1] < 1 || numbers[1] > 12) return "";
  return fmt::format("20{:02}-{:02}", numbers[0], numbers[1]);
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text, std::string_view* captured) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t skip = 0; skip <= text.size(); ++skip)
      if (matches(pattern.substr(1), text.substr(skip), captured)) return true;
    return false;
  }
  if (pattern.starts_with("{}")) {
    text.remove_prefix(std::min(text.find_first_not_of("vrVR=@"), text.size()));
    const auto end = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; }) - text.begin());
    if (end == 0 || !is_digit(text.front()) || !matches(pattern.substr(2), text.substr(end), captured)) return false;
    if (captured) *captured = text.substr(0, end);
    return true;
  }
  return !text.empty() && same_letter(text.front(), pattern.front()) &&
         matches(pattern.substr(1), text.substr(1), captured);
}

bool is_month(std::string_view text) {
  if (text.size() != 7 || text[4] != '-') return false;
  for (const std::size_t i : {0u, 1u, 2u, 3u, 5u, 6u})
    if (!is_digit(text[i])) return false;
  const int month = 10 * (text[5] - '0') + (text[6] - '0');
  return month >= 1 && month <= 12;
}

std::optional<std::size_t> version_at(const std::vector<SoftwareVersion>& versions, std::string_view text) {
  const auto exact =
      std::find_if(versions.begin(), versions.end(), [&](const SoftwareVersion& v) { return v.id == text; });
  if (exact != versions.end()) return static_cast<std::size_t>(exact - versions.begin());
  const std::string month = month_of(text);
  const std::vector<int> wanted = numbers_of(text);
  if (month.empty() && wanted.empty()) return std::nullopt;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const bool dated = !month_of(versions[i].id).empty();
    if (month.empty() ? !dated && numbers_of(versions[i].id) <= wanted : versions[i].date <= month) last = i;
  }
  return last;
}

std::size_t release_of(const std::vector<SoftwareVersion>& versions, std::string_view text, std::int64_t year) {
  if (const auto known = version_at(versions, text)) return *known;
  if (!numbers_of(text).empty()) return 0;
  if (year == 0) return versions.size() - 1;
  const std::string of_year = fmt::format("{}-", year);
  std::size_t last = 0;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions[i].date.starts_with(of_year)) {
      if (text.empty()) return i;
      last = i;  // "latest", "nightly"
    }
    if (versions[i].date < of_year) last = i;
  }
  return last;
}

}  // namespace assay::kernel
