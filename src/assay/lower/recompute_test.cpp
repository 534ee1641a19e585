#include "assay/lower/recompute.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Recompute, NamesAndListsAreReadAsTheyAreWritten) {
  for (const RecomputePolicy& policy : recompute_policies) {
    EXPECT_EQ(name(policy.parts), policy.name);
    EXPECT_EQ(parse_recompute(policy.name, "test").value(), policy.parts);
  }
  using enum ForwardPart;
  const Recompute list = Recompute::of({norms, attention, activations});
  EXPECT_EQ(name(list), "norms,attention,ffn-act");
  EXPECT_EQ(parse_recompute("attention,ffn-act,norms", "test").value(), list);
  // A list that is a policy has its name.
  EXPECT_EQ(name(parse_recompute("scores", "test").value()), "selective");
}

TEST(Recompute, AnUnknownPartIsRefusedWithAllNames) {
  for (const char* text : {"norm", "norms,", "none,norms", ""}) {
    const auto refused = parse_recompute(text, "--recompute");
    ASSERT_FALSE(refused) << text;
    for (std::size_t i = 0; i < forward_parts; ++i)
      EXPECT_NE(refused.error().hint.find(name(static_cast<ForwardPart>(i))), std::string::npos);
  }
}

TEST(Recompute, NoPolicyStandsBeforeOneThatMakesAPartOfTheSameAgain) {
  for (std::size_t i = 0; i < std::size(recompute_policies); ++i)
    for (std::size_t j = i + 1; j < std::size(recompute_policies); ++j)
      EXPECT_FALSE(recompute_policies[i].parts.includes(recompute_policies[j].parts));
}

}  // namespace
}  // namespace assay
