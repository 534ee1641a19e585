// Profiles: any bytes give a trace that can be summed up, or an error that says where and what to do.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "assay/trace/readers.h"
#include "assay/trace/summary.h"

namespace {

using namespace assay;

void require(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  static const trace::Vocabulary& vocabulary = **trace::vocabulary_of(catalogue);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto read = trace::read_profile(bytes, "profile", vocabulary);
  if (!read) {
    require(!read.error().where.empty() && !read.error().what.empty() && !read.error().hint.empty());
    return 0;
  }
  for (const trace::DeviceSummary& device : trace::summarize(*read, vocabulary)) {
    require(device.times.busy <= device.times.total);
    require(device.times.computation <= device.times.busy);
    require(!device.operations.empty() && !device.categories.empty());
  }
  return 0;
}
