#include "target.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>

namespace assay::fuzz {
namespace {

using Run = void (*)(std::string_view);

std::map<std::string_view, Run>& targets() {
  static std::map<std::string_view, Run> all;
  return all;
}

Run chosen = nullptr;

}  // namespace

Target::Target(std::string_view name, Run run) { targets().emplace(name, run); }

}  // namespace assay::fuzz

/// Takes the name of the target from the arguments.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace assay::fuzz;
  const auto found = *argc > 1 ? targets().find((*argv)[1]) : targets().end();
  if (found == targets().end()) {
    std::fprintf(stderr, "usage: %s TARGET ..., with one of these targets:", (*argv)[0]);
    for (const auto& [name, run] : targets()) std::fprintf(stderr, " %.*s", static_cast<int>(name.size()), name.data());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  chosen = found->second;
  (*argv)[1] = (*argv)[0];
  ++*argv;
  --*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::fuzz::chosen({reinterpret_cast<const char*>(data), size});
  return 0;
}
