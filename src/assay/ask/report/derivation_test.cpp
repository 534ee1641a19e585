#include "assay/ask/report/derivation.h"

#include <gtest/gtest.h>

namespace assay::report {
namespace {

/// step time = 2 * (forward + backward), each of products and attention; products of some given numbers.
Response step(int numbers = 1) {
  Response response;
  const Traced num{&response.ledger};
  const auto pass = [&](const char* name) {
    auto flops = num.given("flops", Flops(6e12), "2mnk");
    for (int i = 1; i < numbers; ++i) flops = flops + num.given("flops " + std::to_string(i), Flops(1e12), name);
    const auto products = num.named("products", flops / num.given("peak", FlopsPerSecond(1e12), "a"));
    return num.named(name, products + num.given("attention in a step", Seconds(1), "b"));
  };
  const auto forward = pass("forward"), backward = pass("backward");
  response.derived = {num.named("step time", 2.0 * (forward + backward)).id};
  return response;
}

TEST(Derivation, ShowsThreeLevelsAllOrOnePart) {
  Response brief = step();
  ASSERT_TRUE(choose_derivation("", brief));
  EXPECT_EQ(shown_derivation(brief).left_out, 0u);
  Response response = step(100);
  ASSERT_TRUE(choose_derivation("", response));
  for (const DerivationLine& line : shown_derivation(response).lines) EXPECT_LT(line.depth, 3);
  EXPECT_GT(shown_derivation(response).left_out, 100u);
  ASSERT_TRUE(choose_derivation("all", response));
  EXPECT_EQ(shown_derivation(response).left_out, 0u);
  for (const auto& [path, name] :
       {std::pair("step", "step time"), std::pair("step.backward.products", "products"),
        std::pair("Step_time.attention", "attention in a step"), std::pair("backward.flops", "flops")}) {
    Response part = step();
    ASSERT_TRUE(choose_derivation(path, part)) << path;
    EXPECT_EQ(shown_derivation(part).lines.front().name, name) << path;
  }
}

TEST(Derivation, AnUnknownNameIsAnsweredWithTheNearest) {
  Response response = step();
  const auto found = choose_derivation("step.bakward", response);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().where, "--explain");
  EXPECT_EQ(found.error().hint, "did you mean backward?");
}

}  // namespace
}  // namespace assay::report
