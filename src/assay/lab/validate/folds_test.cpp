#include "assay/lab/validate/folds.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace assay::validate {
namespace {

struct Seen {
  std::set<std::size_t> folds_seen;
  const hardware::Catalogue* kernels = nullptr;
};

TEST(FoldFits, ALeftOutFoldIsSeenByNobodyItPredictsFor) {
  const std::vector<hardware::Catalogue> catalogues(folds + 1);
  const auto made = FoldFits<Seen>::make(catalogues, std::nullopt, [](const FitInput& input) -> Result<Seen> {
    Seen seen;
    for (std::size_t fold = 0; fold <= held_out; ++fold)
      if (input.sees(fold)) seen.folds_seen.insert(fold);
    seen.kernels = &input.catalogue;
    return seen;
  });
  ASSERT_TRUE(made);
  std::set<const Seen*> fits;
  for (std::size_t a = 0; a <= held_out; ++a)
    for (std::size_t b = 0; b <= held_out; ++b) {
      if (a == b && a != held_out) continue;
      const Seen& seen = made->without(a, b);
      fits.insert(&seen);
      std::set<std::size_t> expected;
      for (std::size_t fold = 0; fold < folds; ++fold)
        if (fold != a && fold != b) expected.insert(fold);
      EXPECT_EQ(seen.folds_seen, expected) << a << ' ' << b;
      EXPECT_EQ(seen.kernels, &catalogues[made->kernels(a, b)]) << a << ' ' << b;
    }
  EXPECT_EQ(fits.size(), 1 + folds + folds * (folds - 1) / 2);
  EXPECT_EQ(&made->without(2), &made->without(held_out, 2));
}

TEST(FoldFits, AFitThatFailsFailsAll) {
  const std::vector<hardware::Catalogue> catalogues(folds + 1);
  const auto made = FoldFits<int>::make(catalogues, std::nullopt, [](const FitInput& input) -> Result<int> {
    if (input.left_out == 1 && input.also_left_out == 3) return fail("here", "no rows", "more of them");
    return 1;
  });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().what, "no rows");
}

}  // namespace
}  // namespace assay::validate
