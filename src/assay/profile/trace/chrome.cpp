#include "assay/profile/trace/chrome.h"

#include <cmath>

#include "assay/base/text.h"

namespace assay::trace {
namespace {

/// Microseconds in whole and ticks beyond them. Digits beyond a tick are dropped.
struct Split {
  std::int64_t whole = 0;
  Ticks rest = 0;
};

std::optional<Split> split_microseconds(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  Split out;
  std::size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    if (out.whole > 90'000'000'000'000'000) return std::nullopt;
    out.whole = out.whole * 10 + (text[i] - '0');
  }
  if (i < text.size() && text[i] == '.') {
    Ticks unit = ticks_per_microsecond / 10;
    for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, unit /= 10) out.rest += unit * (text[i] - '0');
  }
  if (i != text.size()) {  // with an exponent, as some writers have large numbers
    const auto value = parse_number(text);
    if (!value || !(std::abs(*value) < 9e16)) return std::nullopt;
    out.whole = static_cast<std::int64_t>(*value);
    out.rest =
        static_cast<Ticks>(std::llround((*value - std::floor(*value)) * static_cast<double>(ticks_per_microsecond)));
  }
  if (negative) {
    out.whole = -out.whole;
    out.rest = -out.rest;
  }
  return out;
}

// About 11 days. Ticks can count nine times as many, so that sums of a start and a duration do not overflow.
constexpr std::int64_t longest_microseconds = 1'000'000'000'000;

void read_event(JsonScanner& scanner, ChromeClock& clock, const ChromeVisitor& visitor) {
  ChromeEvent event;
  std::string_view start, duration;
  const auto text = [&](std::string_view& out) {
    const char c = scanner.peek();
    if (c == '"')
      out = scanner.string();
    else
      out = scanner.raw();
  };
  scanner.object([&](std::string_view key) {
    if (is_word(key, "ph"))
      text(event.phase);
    else if (is_word(key, "cat"))
      text(event.category);
    else if (is_word(key, "name"))
      text(event.name);
    else if (is_word(key, "pid"))
      text(event.process);
    else if (is_word(key, "tid"))
      text(event.thread);
    else if (is_word(key, "id"))
      text(event.id);
    else if (is_word(key, "ts"))
      start = scanner.number_text().value_or("");
    else if (is_word(key, "dur"))
      duration = scanner.number_text().value_or("");
    else if (is_word(key, "args")) {
      JsonScanner inside = scanner;
      visitor.arguments(inside);
      if (inside.failed())  // what is wrong inside of arguments makes no document unreadable
        scanner.skip();
      else
        scanner = std::move(inside);
    }
  });
  if (scanner.failed()) return;
  if (!start.empty()) event.start = clock.since_origin(start);
  if (!duration.empty()) event.duration = ChromeClock::length(duration);
  visitor.event(event);
}

}  // namespace

std::optional<Ticks> ChromeClock::since_origin(std::string_view microseconds) {
  const auto parts = split_microseconds(microseconds);
  if (!parts) return std::nullopt;
  if (!origin_) origin_ = parts->whole;
  const std::int64_t whole = parts->whole - *origin_;
  if (whole > longest_microseconds || whole < -longest_microseconds) return std::nullopt;
  return whole * ticks_per_microsecond + parts->rest;
}

std::optional<Ticks> ChromeClock::length(std::string_view microseconds) {
  const auto parts = split_microseconds(microseconds);
  if (!parts || parts->whole > longest_microseconds || parts->whole < -longest_microseconds) return std::nullopt;
  return parts->whole * ticks_per_microsecond + parts->rest;
}

Result<void> visit_chrome(std::string_view text, std::string_view file, const ChromeVisitor& visitor) {
  JsonScanner scanner(text);
  ChromeClock clock;
  bool has_events = false;
  const auto events = [&] {
    has_events = true;
    scanner.array([&] { read_event(scanner, clock, visitor); });
  };
  const char first = scanner.peek();
  if (first == '[') {
    events();
  } else if (first == '{') {
    scanner.object([&](std::string_view key) {
      if (key == "traceEvents")
        events();
      else if (visitor.member)
        visitor.member(key, scanner);
    });
  } else {
    scanner.fail_here("expected a JSON object or list", "a profile in the Chrome format starts with { or [");
  }
  if (!scanner.failed()) scanner.finish();
  if (scanner.failed()) return tl::unexpected<Error>(scanner.fault(file));
  if (!has_events)
    return fail(std::string(file), "the document has no traceEvents",
                "a profile in the Chrome format has a list of that name");
  return {};
}

}  // namespace assay::trace
