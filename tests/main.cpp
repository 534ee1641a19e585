// Runs the tests. `--file=PATH` keeps those of one source file, so that ctest need not know the suites.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

bool is_in_file(const testing::TestInfo& test, std::string_view path) {
  const std::string_view file = test.file();
  return file == path || file.ends_with("/" + std::string(path));
}

// A GoogleTest filter for the tests of one file; empty if there are none.
std::string filter_for(std::string_view path) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (is_in_file(test, path)) filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view file_flag = "--file=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(file_flag)) {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      return 2;
    }
    testing::GTEST_FLAG(filter) = filter_for(argument.substr(file_flag.size()));
    if (testing::GTEST_FLAG(filter).empty()) {
      std::fprintf(stderr, "no tests in %s\n", argv[i] + file_flag.size());
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}
