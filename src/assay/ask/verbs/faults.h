// How what goes wrong ends, for every front end alike.
#pragma once
#include <fmt/format.h>

#include <exception>
#include <new>

#include "assay/base/result.h"

namespace assay::verbs {

inline constexpr int exit_input = 1, exit_usage = 2, exit_bug = 70, exit_interrupted = 130;

/// What the command line exits with.
inline int exit_code(const Error& error) {
  switch (error.kind) {
    case Error::Kind::usage:
      return exit_usage;
    case Error::Kind::internal:
      return exit_bug;
    default:
      return exit_input;
  }
}

/// What `call` returns, or our own bug as an error: only bugs throw, and a lack of memory.
template <class Call>
auto without_exceptions(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail("", "out of memory: this request needs more than the process can have",
                "fix some of what is searched, e.g. --tp, --pp, --micro-batch or --recompute, ask for fewer chips, or "
                "allow more memory (ulimit -v)");
  } catch (const std::exception& bug) {
    return fail("", fmt::format("this is a bug, please report: {}", bug.what()), "include the request",
                Error::Kind::internal);
  }
}

}  // namespace assay::verbs
