#include "assay/profile/trace/readers.h"

#include "assay/base/text.h"
#include "assay/profile/trace/bytes.h"

namespace assay::trace {
namespace {

Result<Trace> read_plain(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary,
                         const Passed& passed) {
  const std::string_view start = trim(bytes.substr(0, 64));
  if (start.empty())
    return fail(std::string(file), "the file is empty", "let the profiler finish before the program ends");
  if (start.front() == '{' || start.front() == '[') return read_kineto(bytes, file, vocabulary, passed);
  if (bytes.starts_with("SQLite format 3")) return read_nsys(bytes, file, vocabulary);
  if (is_xplane(bytes)) return read_xplane(bytes, file, vocabulary);
  return fail(
      std::string(file), "the format of this profile is not known",
      "readable are JSON of PyTorch and XLA, *.xplane.pb, SQLite exports of Nsight Systems, and HLO or StableHLO text, "
      "compressed or not");
}

}  // namespace

Result<Trace> read_profile(std::string_view bytes, std::string_view file, const Vocabulary& vocabulary,
                           const Passed& passed) {
  if (!is_gzip(bytes)) return read_plain(bytes, file, vocabulary, passed);
  ASSAY_TRY(content, inflated(bytes, file));
  return read_plain(content, file, vocabulary, {});
}

}  // namespace assay::trace
