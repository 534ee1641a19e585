#include "assay/base/explain.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace assay {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

double any_double() { return std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>()); }

/// One formula with every operator, on quantities of several dimensions.
template <class N>
auto step_time(const N& num, const std::vector<double>& in) {
  auto flops = num.given("flops", Flops(in[0]), "counted");
  auto bytes = num.given("bytes", Bytes(in[1]), "counted");
  auto peak = num.given("peak", Sourced<FlopsPerSecond>{FlopsPerSecond(in[2]), "chip.toml:1 (a)", "", {}});
  auto wire = num.given("bandwidth", BytesPerSecond(in[3]), "chip.toml:2 (a)");
  auto share = num.given("share", Sourced<double>{in[4], "assumed", "", {}});
  auto tiles = num.given("tiles", in[5], "counted");
  auto latency = num.given("latency", Seconds(in[6]), "measured");
  auto waves = num.named("waves", ceil(tiles / 132.0 + 0.5) - 0.25);
  auto compute = num.named("compute", 2.0 * flops / (peak * share) * waves);
  auto memory = num.named("memory", bytes * 1.5 / wire + latency / 3.0);
  auto slack = min(memory, compute) - latency;
  return num.named("total", max(compute, memory) + slack * (waves / tiles));
}

RC_GTEST_PROP(Traced, AFormulaHasTheBitsOfThePlainOne, ()) {
  std::vector<double> in;
  for (int i = 0; i < 7; ++i) in.push_back(any_double());
  Ledger ledger;
  const double plain_value = step_time(Plain{}, in).value();
  const auto traced_value = step_time(Traced{&ledger}, in);
  RC_ASSERT(same_bits(plain_value, traced_value.value()));
  RC_ASSERT(same_bits(plain_value, ledger.at(traced_value.id).quantity.value));
  RC_ASSERT(ledger.at(traced_value.id).quantity.dim == Seconds::dim);
}

/// A random formula: each entry applies one operator to earlier results.
struct Operation {
  int op;
  std::size_t lhs, rhs;
  double constant;
};

template <class N>
double evaluate(const N& num, const std::vector<double>& in, const std::vector<Operation>& operations) {
  std::vector<typename N::template Number<Dim{}>> values;
  for (double value : in) values.push_back(num.given("x", value, "random"));
  for (const Operation& o : operations) {
    const auto a = values[o.lhs % values.size()], b = values[o.rhs % values.size()];
    switch (o.op) {
      case 0:
        values.push_back(a + b);
        break;
      case 1:
        values.push_back(a - b);
        break;
      case 2:
        values.push_back(a * b);
        break;
      case 3:
        values.push_back(a / b);
        break;
      case 4:
        values.push_back(max(a, b));
        break;
      case 5:
        values.push_back(min(a, b));
        break;
      case 6:
        values.push_back(ceil(a));
        break;
      case 7:
        values.push_back(o.constant * a);
        break;
      case 8:
        values.push_back(a / o.constant);
        break;
      default:
        values.push_back(num.named("y", a - o.constant));
        break;
    }
  }
  return plain(values.back());
}

RC_GTEST_PROP(Traced, RandomFormulasHaveTheBitsOfThePlainOnes, ()) {
  std::vector<double> in;
  for (int i = 0; i < 4; ++i) in.push_back(any_double());
  std::vector<Operation> operations;
  for (int i = *rc::gen::inRange(1, 40); i > 0; --i)
    operations.push_back({*rc::gen::inRange(0, 10), *rc::gen::arbitrary<std::size_t>(),
                          *rc::gen::arbitrary<std::size_t>(), any_double()});
  Ledger ledger;
  RC_ASSERT(same_bits(evaluate(Plain{}, in, operations), evaluate(Traced{&ledger}, in, operations)));
  for (int id = 0; id < ledger.size(); ++id)
    RC_ASSERT(ledger.at(id).lhs < id && ledger.at(id).rhs < id);  // children first
}

std::vector<DerivationLine> lines_of(const Ledger& ledger, int root) {
  return derivation(ledger, std::vector<int>{root});
}

template <class N>
auto gemm(const N& num) {
  auto flops = num.given("flops", 2.147_TFLOP, "2mnk");
  auto bytes = num.given("bytes", 134.7_GB, "operands and result, once each");
  auto peak = num.given("peak", 989_TFLOP_per_s, "chips/h100-sxm.toml:12");
  auto hbm = num.given("hbm bandwidth", 3.35_TB_per_s, "chips/h100-sxm.toml:16");
  return num.named("gemm", max(num.named("compute", flops / peak), num.named("memory", bytes / hbm)));
}

TEST(Derivation, ReadsLikeTheFormula) {
  // compute = 2.147e12 / 989e12 = 2.170880 ms; memory = 134.7e9 / 3.35e12 = 40.208955 ms: memory wins.
  Ledger ledger;
  const auto time = gemm(Traced{&ledger});
  EXPECT_NEAR(time.value(), 40.208955e-3, 1e-9);
  const auto lines = lines_of(ledger, time.id);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0].name, "gemm");
  EXPECT_EQ(lines[0].formula, "max(compute, memory)");
  EXPECT_EQ(lines[0].bound_by, "memory");
  EXPECT_EQ(lines[1].formula, "flops / peak");
  EXPECT_EQ(lines[1].depth, 1);
  EXPECT_NEAR(lines[1].quantity.value, 2.170880e-3, 1e-9);
  EXPECT_EQ(lines[3].name, "peak");
  EXPECT_EQ(lines[3].depth, 2);
  EXPECT_EQ(lines[3].formula, "");
  EXPECT_EQ(lines[3].source, "chips/h100-sxm.toml:12");
  EXPECT_EQ(lines[6].name, "hbm bandwidth");
}

TEST(Derivation, ParenthesesStandOnlyWhereTheyAreNeeded) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto a = num.given("a", 6.0, ""), b = num.given("b", 3.0, ""), c = num.given("c", 2.0, "");
  const auto text = [&](auto value) { return lines_of(ledger, value.id).front().formula; };
  EXPECT_EQ(text(a + b * c), "a + b * c");
  EXPECT_EQ(text((a + b) * c), "(a + b) * c");
  EXPECT_EQ(text(a - (b - c)), "a - (b - c)");
  EXPECT_EQ(text(a - b - c), "a - b - c");
  EXPECT_EQ(text(a / (b * c)), "a / (b * c)");
  EXPECT_EQ(text(min(a + b, ceil(c / 1.5))), "min(a + b, ceil(c / 1.5))");
  EXPECT_EQ(text(num.named("sum", a + b) * c), "sum * c");
}

TEST(Derivation, AValueUsedTwiceIsDerivedOnce) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto a = num.given("a", 6.0, "here");
  const auto twice = num.named("twice", a + a);
  const auto square = num.named("square", twice * twice);
  const auto lines = lines_of(ledger, num.named("sum", square + twice).id);
  ASSERT_EQ(lines.size(), 5u);  // sum, square, twice, a, twice again
  EXPECT_EQ(lines[3].name, "a");
  EXPECT_FALSE(lines[2].repeated);
  EXPECT_TRUE(lines[4].repeated);
}

TEST(Derivation, ALongSumNamesEachTermOnce) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto a = num.given("a", 1.0, "here"), b = num.given("b", 2.0, "here");
  NumberOf<Traced, double> sum;
  for (int i = 0; i < 20; ++i) sum = sum + a + b * b;
  const auto lines = lines_of(ledger, num.named("sum", sum + b).id);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].formula.starts_with("20 * a + b * b + ")) << lines[0].formula;
  EXPECT_TRUE(lines[0].formula.ends_with(" + b")) << lines[0].formula;
  EXPECT_EQ(lines[0].quantity.value, 102.0);
}

TEST(Traced, NothingLeavesNoTrace) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto a = num.given("a", 3_s, "here");
  const NumberOf<Traced, Seconds> none;
  EXPECT_EQ((none + a).id, a.id);
  EXPECT_EQ((a - none).id, a.id);
  EXPECT_EQ(max(none, a).id, a.id);
  EXPECT_TRUE(min(none, a).is_nothing());
  EXPECT_TRUE((2.0 * none).is_nothing());
  EXPECT_TRUE(num.named("none", none).is_nothing());
  EXPECT_EQ(num.times("one", 1.0, "here", a).id, a.id);
  EXPECT_TRUE(num.times("none", 0.0, "here", a).is_nothing());
  EXPECT_EQ((none - a).value(), -3.0);
}

TEST(Traced, RootsHalveTheDimension) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto a = num.given("a", 4_s, "here"), b = num.given("b", 9_s, "here");
  const NumberOf<Traced, Seconds> root = sqrt(a * b);
  EXPECT_EQ(root.value(), sqrt(4_s * 9_s).value());
  EXPECT_EQ(root.value(), 6.0);
}

TEST(Derivation, AGivenNumberStandsOnceForAllRoots) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto double_a = num.named("double", 2.0 * num.given("a", 6.0, "here"));
  const auto triple_a = num.named("triple", 3.0 * num.given("a", 6.0, "here"));  // the same number, recorded again
  const auto lines = derivation(ledger, std::vector<int>{double_a.id, triple_a.id});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].formula, "2 * a");
  EXPECT_EQ(lines[1].name, "a");
  EXPECT_EQ(lines[2].formula, "3 * a");
  EXPECT_EQ(lines[2].depth, 0);
}

TEST(Derivation, ASecondNameStandsForTheFirst) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto first = num.given("link bandwidth", 50_GB_per_s, "chip.toml:3");
  const auto second = num.named("bandwidth", first);
  EXPECT_EQ(second.value(), first.value());
  const auto lines = lines_of(ledger, second.id);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].name, "bandwidth");
  EXPECT_EQ(lines[0].formula, "link bandwidth");
  EXPECT_EQ(lines[1].source, "chip.toml:3");
}

TEST(Limiter, ATieGoesToTheFirst) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto both = max(num.given("compute", 2_s, ""), num.given("memory", 2_s, ""));
  EXPECT_EQ(ledger.at(limiter(ledger, both.id)).name, "compute");
}

TEST(Limiter, ASumLimitsItself) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto sum = max(num.given("a", 1_s, ""), num.given("b", 2_s, "")) + num.given("c", 9_s, "");
  EXPECT_EQ(limiter(ledger, sum.id), sum.id);
}

RC_GTEST_PROP(Limiter, IsTheWinnerOfAllTheMaxima, (const std::vector<std::uint16_t>& drawn)) {
  RC_PRE(!drawn.empty());
  Ledger ledger;
  const Traced num{&ledger};
  std::vector<TracedQuantity<Seconds::dim>> open;
  for (std::uint16_t value : drawn) open.push_back(num.given("part", Seconds(value), ""));
  while (open.size() > 1) {  // join two at a time in random order, some under a second name
    const auto at = *rc::gen::inRange<std::size_t>(0, open.size() - 1);
    auto winner = max(open[at], open[at + 1]);
    if (*rc::gen::arbitrary<bool>()) winner = num.named("outer", num.named("inner", winner));
    open[at] = winner;
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  const int first = static_cast<int>(std::max_element(drawn.begin(), drawn.end()) - drawn.begin());
  RC_ASSERT(limiter(ledger, open[0].id) == first);  // givens were pushed in order
  RC_ASSERT(open[0].value() == static_cast<double>(drawn[static_cast<std::size_t>(first)]));
}

TEST(Origins, AGivenNumberOfTheSameNameAndValueIsDerived) {
  Ledger ledger;
  const Traced num{&ledger};
  const auto bytes = [&](double count) { return num.given("bytes", Bytes(count), "of the step"); };
  {
    Origins origins(num);
    origins.add("bytes", num.given("elements", 4.0, "of the array") * num.given("each", 2_B, "bf16"));
    EXPECT_EQ(ledger.at(bytes(8.0).id).op, Node::Op::mul);
    EXPECT_EQ(ledger.at(bytes(8.0).id).name, "bytes");
    EXPECT_EQ(ledger.at(bytes(9.0).id).op, Node::Op::given) << "another value";
    EXPECT_EQ(ledger.at(num.given("array", 8_B, "").id).op, Node::Op::given) << "another name";
    EXPECT_EQ(ledger.at(num.given("bytes", 8.0, "").id).op, Node::Op::given) << "another unit";
    {
      Origins inner(num);  // counts before the outer one
      inner.add("bytes", num.given("halves", 2.0, "") * num.given("half", 4_B, ""));
      EXPECT_EQ(ledger.at(ledger.at(bytes(8.0).id).lhs).name, "halves");
    }
    EXPECT_EQ(ledger.at(ledger.at(bytes(8.0).id).lhs).name, "elements");
  }
  EXPECT_EQ(ledger.at(bytes(8.0).id).op, Node::Op::given) << "nobody knows any more";
}

TEST(Factors, OfNothingAreOne) {
  Ledger ledger;
  const Traced num{&ledger};
  EXPECT_EQ(Factors<Traced>().of(num).value(), 1.0);
  EXPECT_EQ(Factors<Plain>().of(Plain{}), 1.0);
  Factors<Traced> traced;
  traced *= num.given("a", 3.0, "");
  traced *= num.given("b", 5.0, "");
  EXPECT_EQ(traced.of(num).value(), 15.0);
}

}  // namespace
}  // namespace assay
