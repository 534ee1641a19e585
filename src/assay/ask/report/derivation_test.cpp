#include "assay/ask/report/derivation.h"

#include <gtest/gtest.h>

#include <tuple>

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

/// A formula with every operation, of three numbers.
template <class N>
auto formula(const N& num, double a, double b, double c) {
  const auto x = num.given("a", a, "one"), y = num.given("b", b, "two"), z = num.given("c", c, "three");
  const auto longer = max(num.named("first", x * y), num.named("second", 3.0 * z));
  const auto wide = min(x / z, y + 2.0);
  return num.named("result", sqrt(longer * longer + wide) - y / x + ceil(z) * 0.25 + num.given("a", a, "one"));
}

TEST(Derivatives, AgreeWithFiniteDifferences) {
  for (const auto& numbers : {std::tuple(2.0, 3.0, 1.5), std::tuple(0.7, 0.4, 2.2), std::tuple(5.0, 0.1, 0.3)}) {
    const double a = std::get<0>(numbers), b = std::get<1>(numbers), c = std::get<2>(numbers);
    Ledger ledger;
    const auto result = formula(Traced{&ledger}, a, b, c);
    const Items rows = moving_inputs(ledger, {result.id}, [](const Node&) { return true; });
    ASSERT_EQ(rows.size(), 3u);  // `a` is given twice, and is one number
    constexpr double h = 1e-6;
    for (const Value& row : rows) {
      const std::string input = std::get<std::string>(row.find("input")->data());
      const auto at = [&](double factor) {
        const auto moved = [&](const char* name, double value) { return input == name ? factor * value : value; };
        return formula(Plain{}, moved("a", a), moved("b", b), moved("c", c));
      };
      const double expected = (at(1.0 + h) - at(1.0 - h)) / (2.0 * h) / at(1.0);
      EXPECT_NEAR(*numeric(*row.find("elasticity")), expected, 1e-7) << input;
    }
  }
}

TEST(Derivatives, KinksAreNamed) {
  Ledger ledger;
  const auto result = formula(Traced{&ledger}, 2.0, 3.0, 1.9);  // 6 and 5.7
  const Items rows = near_kinks(ledger, {result.id}, 0.1, 10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(std::get<std::string>(rows[0].find("wins")->data()), "first");
  EXPECT_EQ(std::get<std::string>(rows[0].find("next")->data()), "second");
  EXPECT_NEAR(*numeric(*rows[0].find("apart")), 0.05, 1e-12);
}

}  // namespace
}  // namespace assay::report
