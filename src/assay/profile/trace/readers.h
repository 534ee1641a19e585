// Readers of profiles, one file a format. Each takes the bytes of a file, so that front ends may send what they hold.
#pragma once
#include <functional>
#include <string_view>

#include "assay/base/result.h"
#include "assay/profile/trace/trace.h"
#include "assay/profile/trace/vocabulary.h"

namespace assay::trace {

/// Told from time to time how many of the first bytes a reader has passed.
using Passed = std::function<void(std::size_t)>;

/// A profile of any format that is known by its first bytes, compressed or not; `file` names it in errors and answers.
Result<Trace> read_profile(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary,
                           const Passed& passed = {});

/// Chrome JSON: of PyTorch (Kineto), and of XLA (JAX, TensorFlow).
Result<Trace> read_kineto(std::string_view text, std::string_view file, const Vocabulary& vocabulary,
                          const Passed& passed = {});

/// XSpace protobufs of XLA's profiler.
bool is_xplane(std::string_view bytes);
Result<Trace> read_xplane(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary);

/// SQLite exports of Nsight Systems. Of folder sqlite/, or of its twin where there is no SQLite.
Result<Trace> read_nsys(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary);

}  // namespace assay::trace
