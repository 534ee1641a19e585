// The Chrome trace event format: what its profilers share. Events are handed over one by one as they are written.
#pragma once
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include "assay/base/json_scanner.h"
#include "assay/base/result.h"
#include "assay/profile/trace/trace.h"

namespace assay::trace {

/// One event. Texts are as they are written, with their escapes; empty where there are none.
struct ChromeEvent {
  std::string_view phase, category, name, process, thread, id;
  std::optional<Ticks> start, duration;
};

/// Whether a text is this word, without a call.
template <std::size_t N>
bool is_word(std::string_view text, const char (&word)[N]) {
  return text.size() == N - 1 && std::memcmp(text.data(), word, N - 1) == 0;
}

/// Times of a file as ticks since its first event.
class ChromeClock {
 public:
  /// Of a number of microseconds; nothing where it is none, or too far from the first.
  std::optional<Ticks> since_origin(std::string_view microseconds);
  static std::optional<Ticks> length(std::string_view microseconds);

 private:
  std::optional<std::int64_t> origin_;  ///< in whole microseconds
};

struct ChromeVisitor {
  /// Consumes the arguments of an event, or leaves them: before its event is handed over, and only where it has some.
  std::function<void(JsonScanner&)> arguments;
  std::function<void(const ChromeEvent&)> event;
  /// Members of the document beside its events: consumes the value, or leaves it.
  std::function<void(std::string_view key, JsonScanner&)> member;
};

/// Visits a document: a list of events, or an object with one. `file` is for errors.
Result<void> visit_chrome(std::string_view text, std::string_view file, const ChromeVisitor& visitor);

}  // namespace assay::trace
