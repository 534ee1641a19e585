// Errors as values: what went wrong, where, and what to do about it.
#pragma once
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace assay {

/// One fault in the input. Lower case, no full stop: `what` states the rule and the actual value, `hint` the
/// remedy.
struct Error {
  enum class Kind { usage, input, missing, internal };
  Kind kind = Kind::input;
  std::string where;        ///< "chips/h100.toml:16:21: memory.hbm.bandwidth", "--on", ...
  std::string what;         ///< "unknown unit \"Gb\""
  std::string hint;         ///< "write Gbit/s or GB/s"
  std::vector<Error> also;  ///< further faults of the same input, so that one run shows them all
};

template <class T>
using Result = tl::expected<T, Error>;

/// The failed Result: `return fail("--on", "unknown chip ...", "did you mean ...?");`
inline tl::unexpected<Error> fail(std::string where, std::string what, std::string hint = {},
                                  Error::Kind kind = Error::Kind::input) {
  return tl::unexpected<Error>(Error{kind, std::move(where), std::move(what), std::move(hint), {}});
}

/// The error with the place that contains it: a file, or an option whose value was read.
inline tl::unexpected<Error> within(std::string_view place, Error error) {
  error.where = error.where.empty() ? std::string(place) : std::string(place) + ": " + error.where;
  return tl::unexpected<Error>(std::move(error));
}

/// All faults of an input as one error, the first at its head.
inline Result<void> joined(std::vector<Error> faults) {
  if (faults.empty()) return {};
  Error first = std::move(faults.front());
  first.also.assign(std::make_move_iterator(faults.begin() + 1), std::make_move_iterator(faults.end()));
  return tl::unexpected<Error>(std::move(first));
}

/// A bug in assay; caught only by the front ends.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace assay

/// Binds the value of a Result or returns its error from the enclosing function.
#define ASSAY_TRY(name, expression)                                                            \
  auto name##_result = (expression);                                                           \
  if (!name##_result) return tl::unexpected<::assay::Error>(std::move(name##_result).error()); \
  auto& name = *name##_result

/// Returns the error of a Result<void> from the enclosing function.
#define ASSAY_CHECK(expression)                                                                                   \
  do {                                                                                                            \
    if (auto checked = (expression); !checked) return tl::unexpected<::assay::Error>(std::move(checked).error()); \
  } while (false)
