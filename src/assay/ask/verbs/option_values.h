// Options that several verbs read; values that the request does not give stay unchanged.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/base/dtype.h"
#include "assay/base/text.h"

namespace assay::verbs {

Result<void> read_count(const Request& request, std::string_view option, std::optional<std::int64_t>& out);
/// The same, or `usual` where it is not given.
Result<std::int64_t> count_or(const Request& request, std::string_view option, std::int64_t usual);
/// A time above zero.
Result<void> read_time(const Request& request, std::string_view option, std::optional<Seconds>& out);
/// A number from 0 to 1; 1 itself only where `one_allowed`.
Result<void> read_share(const Request& request, std::string_view option, double& out, bool one_allowed);
/// The share of the peak that --mfu states; nothing where it is not given.
Result<std::optional<double>> read_mfu(const Request& request);
/// The sequences of a --batch, which is a number of them ("1024seq") or of tokens ("4Mi"). Tokens that are not a whole
/// number of sequences mean about as many: within 1 % the number of sequences that halves most often, else the nearest;
/// a note says what is used.
Result<double> parse_batch(std::string_view text, std::int64_t sequence, std::vector<std::string>& notes);
/// --memory-margin: the share of a chip's memory that stays free; nothing for "interval". `by_default`: of requests
/// without it.
Result<std::optional<double>> read_margin(const Request& request, std::string_view by_default);
Result<void> read_dtype(const Request& request, std::string_view option, Dtype& out);

/// A word of an option and what it means.
template <class T>
struct Word {
  std::string_view word;
  T value;
};
/// One of a few words; the error lists them.
template <class T, std::size_t N>
Result<void> read_word(const Request& request, std::string_view option, const Word<T> (&words)[N],
                       std::optional<T>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  std::vector<std::string> known;
  for (const Word<T>& word : words) {
    if (word.word == *text) {
      out = word.value;
      return {};
    }
    known.emplace_back(word.word);
  }
  return fail(fmt::format("--{}", option), fmt::format("{} is none of {}", in_quotes(*text), join(known, ", ")),
              suggestion(*text, known), Error::Kind::usage);
}

}  // namespace assay::verbs
