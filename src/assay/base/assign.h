// Results that are assigned to something that is there already.
#pragma once
#include "assay/base/result.h"

/// Assigns the value of a Result, or returns its error from the enclosing function.
#define ASSAY_SET(target, expression)                                                                \
  do {                                                                                               \
    auto assigned_result = (expression);                                                             \
    if (!assigned_result) return tl::unexpected<::assay::Error>(std::move(assigned_result).error()); \
    target = *std::move(assigned_result);                                                            \
  } while (false)
