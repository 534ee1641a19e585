// Runs kept inputs through a fuzz target without libFuzzer: the empty input, then every file of the given directory.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s TARGET DIRECTORY, with one input in each file\n", argv[0]);
    return 2;
  }
  replay("");
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::printf("%s\n", entry.path().c_str());
    std::fflush(stdout);  // so that the last line names the input that crashed
    std::ifstream file(entry.path(), std::ios::binary);
    replay({std::istreambuf_iterator<char>(file), {}});
    ++count;
  }
  std::printf("%d inputs replayed\n", count);
}
