#include "assay/lab/fit/ranges.h"

#include <gtest/gtest.h>

namespace assay::validate {
namespace {

/// The fault of fits/kernels.toml with further text.
std::string fault_with(std::string_view more) {
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::string text(catalogue.files("fits/kernels.toml").front().second);
  catalogue.put("fits/kernels.toml", text.append(more));
  const auto read = kernel_ranges_of(catalogue);
  return read ? "" : read.error().what;
}

TEST(KernelRanges, OneTableIsUsualAndOneShowsEachSubject) {
  EXPECT_EQ(fault_with(""), "");
  EXPECT_EQ(fault_with("\n[[own_table]]\nname = \"a\"\nsource = \"harness\"\nusual = true\n"), "2 tables are usual");
  EXPECT_EQ(fault_with("\n[[own_table]]\nname = \"a\"\nsource = \"harness\"\nmeasured_as = \"b\"\nshows = "
                       "\"grouped\"\n"),
            "2 tables show grouped");
  EXPECT_EQ(fault_with("\n[[own_table]]\nname = \"a\"\nsource = \"harness\"\nmeasured_as = \"b\"\nshows = "
                       "\"norms\"\n"),
            "no fit takes \"norms\"");
}

}  // namespace
}  // namespace assay::validate
