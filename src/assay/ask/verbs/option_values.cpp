#include "assay/ask/verbs/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::verbs {

Result<void> read_count(const Request& request, std::string_view option, std::optional<std::int64_t>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_SET(out, parse_count(*text, fmt::format("--{}", option)));
  return {};
}

Result<std::int64_t> count_or(const Request& request, std::string_view option, std::int64_t usual) {
  std::optional<std::int64_t> given;
  ASSAY_CHECK(read_count(request, option, given));
  return given.value_or(usual);
}

Result<void> read_time(const Request& request, std::string_view option, std::optional<Seconds>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(time, parse_as<Seconds>(*text, fmt::format("--{}", option)));
  if (!(time > Seconds(0))) return fail(fmt::format("--{}", option), "a time must be positive", "e.g. 50ms");
  out = time;
  return {};
}

Result<void> read_share(const Request& request, std::string_view option, double& out, bool one_allowed) {
  const auto text = request.value(option);
  if (!text) return {};
  const auto share = parse_number(*text);
  if (!share || *share < 0.0 || *share > 1.0 || (!one_allowed && *share == 1.0))
    return fail(fmt::format("--{}", option),
                fmt::format("{} is not a share from 0 to {}1", in_quotes(*text), one_allowed ? "" : "below "),
                "e.g. 0.5");
  out = *share;
  return {};
}

Result<std::optional<double>> read_mfu(const Request& request) {
  const auto text = request.value("mfu");
  if (!text) return std::nullopt;
  constexpr double least = 1e-6;  // times stay finite
  const auto share = parse_number(*text);
  if (!share || !(*share >= least) || *share > 1.0)
    return fail("--mfu", fmt::format("{} is not a share of the peak", in_quotes(*text)), "from a millionth to 1: 0.4");
  return *share;
}

namespace {

/// Of the whole numbers within 1 % of `about` the one that halves most often, the nearest of several; else the nearest.
std::int64_t round_number(double about) {
  constexpr double tolerance = 0.01;
  const auto nearest = std::max<std::int64_t>(1, std::llround(about));
  const auto apart = [&](std::int64_t n) { return std::abs(static_cast<double>(n) - about); };
  for (std::int64_t unit = std::int64_t{1} << 40; unit > 1; unit /= 2) {
    const std::int64_t below = static_cast<std::int64_t>(about) / unit * unit, above = below + unit;
    const std::int64_t best = below > 0 && apart(below) <= apart(above) ? below : above;
    if (apart(best) <= tolerance * about) return best;
  }
  return nearest;
}

}  // namespace

Result<double> parse_batch(std::string_view text, std::int64_t sequence, std::vector<std::string>& notes) {
  std::string_view number = trim(text);
  const bool in_sequences = number.ends_with("seq");
  if (in_sequences) number.remove_suffix(3);
  ASSAY_TRY(count, parse_count(number, "--batch"));
  if (in_sequences) return static_cast<double>(count);
  if (count < sequence)
    return fail("--batch", fmt::format("{} tokens are less than one sequence of {}", human_count(count), sequence),
                fmt::format("at least {} tokens (1seq), or a shorter --seq", human_count(sequence)));
  if (count % sequence == 0) return static_cast<double>(count / sequence);
  const std::int64_t used = round_number(static_cast<double>(count) / static_cast<double>(sequence));
  std::string note = fmt::format("--batch {}: {} tokens are used, {} whole sequences of {}", text,
                                 human_count(used * sequence), human_count(used), human_count(sequence));
  const std::string binary = std::string(number) + "i";
  if (const auto meant = parse_count(binary, "--batch"); meant && *meant % sequence == 0)
    note += fmt::format("; {} are {}, which more devices can share evenly", binary, human_count(*meant / sequence));
  notes.push_back(std::move(note));
  return static_cast<double>(used);
}

Result<std::optional<double>> read_margin(const Request& request, std::string_view by_default) {
  const std::string text = request.value("memory-margin").value_or(std::string(by_default));
  if (text == "interval") return std::optional<double>();
  if (text == "none") return std::optional(0.0);
  const auto percent = text.ends_with('%') ? parse_number(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!percent || !(*percent >= 0.0 && *percent < 100.0))
    return fail("--memory-margin", fmt::format("{} is not a margin", in_quotes(text)),
                "interval, a share of the chip's memory from 0% to below 100%, e.g. 10%, or none", Error::Kind::usage);
  return std::optional(*percent / 100.0);
}

Result<void> read_dtype(const Request& request, std::string_view option, Dtype& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_SET(out, parse_dtype(*text, fmt::format("--{}", option)));
  return {};
}

}  // namespace assay::verbs
