#include <gtest/gtest.h>

#include <string>

#include "assay/program/language/lowering.h"

namespace assay::language {
namespace {

Result<Compiled> compiled(const std::string& text) {
  const Source source{"program", text};
  ASSAY_TRY(syntax, parse(source));
  return compile(source, syntax, Reading::sharded, plan::byte_prices(mesh_of(syntax)), false);
}

struct Mistake {
  const char* line;  ///< after the declarations; ^ stands before the character that the error points at
  const char* what;
};

TEST(Language, MistakesPointAtTheCharacter) {
  const std::string before = "mesh X=2, Y=2\ndims B=4, C=4, D=8\ninput x[B_X, D]\ninput w[D, C_Y]\n";
  const Mistake mistakes[] = {
      {"y = x + ^q", "unknown tensor"},
      {"y = x + ^B", "unknown tensor"},
      {"y = ^tanf(x)", "unknown function"},
      {"y[B, ^Q] = x", "unknown dimension"},
      {"y[B, ^B] = x", "appears twice"},
      {"y[B_^Z, D] = x", "not an axis"},
      {"y[B_X, D_^X] = x", "used twice"},
      {"y[B, C] = x ^w", "expected the end of the line"},
      {"y = (x * x) ^* w", "sum over"},
      {"y[^C] = x", "has no dimension C"},
      {"^y[B] = x", "also has dimension D"},
      {"y[B] = x ^* w", "in only one operand"},
      {"y = sum(x, ^C)", "has no dimension C"},
      {"y = sum(x, ^3)", "name of a dimension"},
      {"y = ^sum(x)", "takes 2 or more operands"},
      {"y = softmax(x, ^Q)", "unknown dimension"},
      {"y = chunk(x, D, 0, ^3)", "does not divide"},
      {"y = chunk(x, D, ^x, 2)", "one number"},
      {"y = rename(x, D ^-> B)", "B is 4"},
      {"y = rename(x, B -> ^B2)", "unknown dimension"},
      {"y = rename(x, ^B)", "OLD -> NEW"},
      {"y = ^psum(x, X)", "manual programs"},
      {"y = x ^-> w", "expected the end of the line"},
      {"y = gather(^3, x)", "no dimension to gather"},
      {"input ^x[B]", "declared twice"},
      {"input v[B] = ^[1, 2]", "has 4 elements"},
      {"input v[B] = ^hello", "expected a value"},
      {"input v[B_X] {U_^Y}", "an input is whole"},
      {"y = 1 ^? 2", "unexpected character"},
      {"y = ^3x", "not a number"},
      {"^yy x", "begins no statement"},
      {"repeat ^x { }", "whole number"},
      {"repeat 2 ^y = x", "expected \"{\""},
      {"^}", "without a loop"},
      {"mode ^magic", "unknown mode"},
      {"gradients ^x", "expected \"of\""},
      {"gradients of ^q", "unknown tensor"},
      {"result ^q", "unknown tensor"},
      {"dims ^B=3", "given twice"},
      {"mesh Z^", "expected \"=\""},
      {"expect ^q = x", "neither a result nor used"},
  };
  for (const Mistake& mistake : mistakes) {
    std::string line = mistake.line;
    const std::size_t at = line.find('^');
    line.erase(at, 1);
    const auto made = compiled(before + line + "\nresult x\n");
    ASSERT_FALSE(made) << line;
    EXPECT_NE(made.error().what.find(mistake.what), std::string::npos) << line << ": " << made.error().what;
    EXPECT_EQ(made.error().where, "program:5:" + std::to_string(at + 1)) << line << ": " << made.error().what;
  }
}

TEST(Language, TheLineIsShownWithACaretBelowTheCharacter) {
  const auto made = compiled("dims B=4\ninput x[B]\n  y = x + z\nresult y\n");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().what, "unknown tensor \"z\"\n    y = x + z\n            ^");
  EXPECT_EQ(made.error().hint, "did you mean x?");
}

TEST(Language, SmallTextsMakeNoLargePrograms) {
  for (const char* text : {
           "dims A=16000000, B=16000000; input x[A]; input y[B]; z[A, B] = x * y; result z",
           "dims A=4; input x[A]; repeat 4096 { repeat 4096 { x = x + 1 } }; result x",
           "dims A=4; input x[A]; repeat 4096 { x = x + 1 }; result x",
           "mesh X=4096, Y=4096; dims A=4; input x[A]; result x",
           "dims A=2000, B=2000, C=2000; input x[A, B]; input y[B, C]; z[A, C] = x * y; result z",
           "mesh X=256; dims A=2000000; input x[A]; y = x + 1; result y",
       }) {
    const auto made = compiled(text);
    EXPECT_TRUE(!made || made->too_large) << text;
  }
  EXPECT_FALSE(compiled(std::string(70000, '#')));
  EXPECT_FALSE(compiled("y = " + std::string(5000, '(')));
  EXPECT_FALSE(compiled("y = " + std::string(5000, '-') + "1; result y"));
}

TEST(Language, ATensorIsMovedOnceForAllItsUses) {
  const auto made = compiled(
      "mesh X=4; dims B=8, D=64, F=64; input x[B, D_X]; input w[D, F_X]; input u[D, F_X]\n"
      "y = relu(x); a[B, F] = y * w; b[B, F] = y * u; result a, b");
  ASSERT_TRUE(made) << made.error().what;
  std::size_t gathers = 0;
  for (const program::Step& step : made->program.steps) gathers += step.is(program::Collective::all_gather);
  EXPECT_EQ(gathers, 1u);
}

TEST(Language, SumsOfPartialSumsStayPartial) {
  const auto made = compiled(
      "mesh X=4; dims B=8, D=64, F=8; input x[B, D_X]; input w[D_X, F]; input u[D_X, F]\n"
      "y[B, F] = x * w + x * u; result y");
  ASSERT_TRUE(made) << made.error().what;
  std::size_t collectives = 0;
  for (const program::Step& step : made->program.steps) collectives += program::is_collective(step.op);
  EXPECT_EQ(collectives, 1u);
}

TEST(Language, AxesThatAreWordsAreReadAsTheyArePrinted) {
  const std::string mesh = "mesh dp=2, fsdp=2\ndims B=8, D=8\n";
  for (const char* axes : {"dpfsdp", "dp+fsdp"}) {
    const auto made = compiled(mesh + "input x[B_" + axes + ", D]; y = x + 1; result y");
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_EQ(listed_text(*made, made->program.steps.front()), "y[B_dp+fsdp, D] = add(x[B_dp+fsdp, D], 1)");
  }
}

TEST(Language, ADimensionOfAProgramHasItsOwnName) {
  const auto made = compiled("mesh X=2; dims batch=4, depth=8; input x[batch_X, depth]; y = x + 1; result y");
  ASSERT_TRUE(made);
  EXPECT_EQ(listed_text(*made, made->program.steps.front()), "y[batch_X, depth] = add(x[batch_X, depth], 1)");
}

}  // namespace
}  // namespace assay::language
