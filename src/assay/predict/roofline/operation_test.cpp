#include "assay/predict/roofline/operation.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::roofline {
namespace {

Operation operation_of(std::string_view text) {
  const Result<Operation> operation = parse_operation(text, "OP");
  if (!operation) throw std::runtime_error(operation.error().where + ": " + operation.error().what);
  return *operation;
}

Error refused(std::string_view text) {
  const Result<Operation> operation = parse_operation(text, "OP");
  EXPECT_FALSE(operation) << text;
  return operation ? Error{} : operation.error();
}

void expect_sizes(const Matmul& got, double batch, double m, double k, double n) {
  EXPECT_EQ(got.batch, batch);
  EXPECT_EQ(got.m, m);
  EXPECT_EQ(got.k, k);
  EXPECT_EQ(got.n, n);
}

TEST(Operation, AProductTakesItsShapeFromPositions) {
  const Operation product = operation_of("bf16[240,8192] @ int8[8192,4Ki]");
  EXPECT_TRUE(product.is_matmul());
  EXPECT_EQ(product.text(), "bf16[240,8192] @ int8[8192,4096] -> bf16[240,4096]");
  expect_sizes(product.matmul(), 1, 240, 8192, 4096);
  EXPECT_EQ(product.matmul().a, Dtype::bf16);
  EXPECT_EQ(product.matmul().b, Dtype::int8);
}

TEST(Operation, LeadingSizesOfBothOperandsAreABatch) {
  expect_sizes(operation_of("bf16[16,128,64] @ bf16[16,64,128]").matmul(), 16, 128, 64, 128);
  expect_sizes(operation_of("bf16[8,16,128,64] @ bf16[16,64,32]").matmul(), 16, 8 * 128, 64, 32);
  expect_sizes(operation_of("bf16[128,64] @ bf16[16,64,32]").matmul(), 1, 128, 64, 16 * 32);
}

// numpy: (3,7) @ (5,7,2) has shape (5,3,2).
TEST(Operation, ABatchOfTheSecondOperandAloneComesFirstInTheResult) {
  EXPECT_EQ(operation_of("bf16[3,7] @ bf16[5,7,2]").text(), "bf16[3,7] @ bf16[5,7,2] -> bf16[5,3,2]");
  EXPECT_TRUE(parse_operation("bf16[3,7] @ bf16[5,7,2] -> fp32[5,3,2]", "OP"));
}

TEST(Operation, LettersEverywhereMakeAnEinsum) {
  const Operation scores = operation_of("bf16[B=2,N=4,T=3,H=5] @ bf16[B,S=7,N,H] -> fp32[B,N,T,S]");
  expect_sizes(scores.matmul(), 2 * 4, 3, 5, 7);
  EXPECT_EQ(scores.matmul().out, Dtype::fp32);
  EXPECT_EQ(scores.group_name('b'), "B*N");
  EXPECT_EQ(scores.group_name('k'), "H");
}

// As an einsum, [D,D] @ [D,F] -> [D,F] would keep every D; with a letter twice in one tensor, positions decide.
TEST(Operation, ASquareMatrixMayUseOneLetterTwice) {
  expect_sizes(operation_of("bf16[D=8,D] @ bf16[D,F=3] -> bf16[D,F]").matmul(), 1, 8, 8, 3);
}

TEST(Operation, ALetterLearnsItsNumberWhereverItStands) {
  expect_sizes(operation_of("bf16[B,D] @ bf16[8192,F] -> bf16[240,F=16]").matmul(), 1, 240, 8192, 16);
  EXPECT_TRUE(operation_of("bf16[B,D] @ bf16[8192,F] -> bf16[240,F=16]").free_sizes().empty());
  EXPECT_EQ(operation_of("bf16[B,D] @ bf16[D=4,F]").free_sizes(), (std::vector<std::string>{"B", "F"}));
  EXPECT_EQ(operation_of("add(bf16[N]) -> fp32[512]").pointwise().elements, 512);
}

TEST(Operation, AVectorProductGivesOneValue) {
  EXPECT_EQ(operation_of("bf16[64] @ bf16[64]").text(), "bf16[64] @ bf16[64] -> bf16[]");
  EXPECT_EQ(operation_of("dot(fp32[1Ki])").text(), "dot(fp32[1024]) -> fp32[]");
  EXPECT_EQ(operation_of("sum(bf16[4,8]) -> fp32[4]").pointwise().results, 4);
  EXPECT_EQ(operation_of("sum(bf16[8]) -> fp32[1]").pointwise().results, 1);
}

TEST(Operation, AFunctionOverABareCountTakesTheDefaultDtype) {
  EXPECT_EQ(parse_operation("dot(1Mi)", "OP", Dtype::fp32)->text(), "dot(fp32[1048576]) -> fp32[]");
}

TEST(Operation, SettingALetterLeavesTheOthersFree) {
  const Operation product = operation_of("bf16[B,D] @ bf16[D,F]").with("D", 64);
  EXPECT_EQ(product.text(), "bf16[B,D=64] @ bf16[D=64,F] -> bf16[B,F]");
  EXPECT_EQ(product.free_sizes(), (std::vector<std::string>{"B", "F"}));
}

// 8 * 128 * 8192 elements of 2 bytes; two int4 share a byte.
TEST(Operation, ATensorsBytesFollowItsDtype) {
  EXPECT_EQ(tensor_bytes(*parse_tensor("bf16[8,128,8192]", "--bytes")), 16_MiB);
  EXPECT_EQ(tensor_bytes(*parse_tensor("int4[10]", "--bytes")), 5_B);
  EXPECT_FALSE(parse_tensor("bf16[B]", "--bytes"));
  EXPECT_FALSE(parse_tensor("bf16[]", "--bytes"));
  EXPECT_FALSE(parse_tensor("bf16[2] x", "--bytes"));
}

TEST(Operation, ErrorsPointAtTheCharacter) {
  EXPECT_EQ(refused("bf16[240,0] @ bf16[8,8]").where, "OP, character 10");
  EXPECT_EQ(refused("bf61[4,4] @ bf16[4,4]").where, "OP, character 1");
  EXPECT_EQ(refused("bf16[4,4] @ bf16[4,4] -> bf16[4,5]").where, "OP, character 26");
  EXPECT_EQ(refused("bf16[4,4] @ bf16[4,4] please").where, "OP, character 23");
}

TEST(Operation, ErrorsNameTheRuleAndTheRemedy) {
  EXPECT_EQ(refused("bf16[4,5] @ bf16[6,7]").what, "contracting sizes differ: 5 and 6");
  EXPECT_EQ(refused("bf16[B,D] @ bf16[E,F]").what, "contracting sizes differ: D and E");
  EXPECT_EQ(refused("bf16[2,4,5] @ bf16[3,5,7]").what, "batch sizes differ: 2 and 3");
  EXPECT_EQ(refused("bf16[B=2,4] @ bf16[4,B=3]").what, "\"B\" is both 2 and 3");
  EXPECT_EQ(refused("bf16[B,D] @ bf16[D,F] -> bf16[B]").what, "\"F\" is in one operand only and not in the result");
  EXPECT_EQ(refused("bf16[B,D] @ bf16[D,F] -> bf16[B,F,X]").what, "\"X\" of the result is in neither operand");
  EXPECT_EQ(refused("add(bf16[4]) -> bf16[5]").what, "the result has shape bf16[4], not bf16[5]");
  EXPECT_EQ(refused("softmax(bf16[8,16]) -> bf16[128]").what, "the result has shape bf16[8,16], not bf16[128]");
  EXPECT_EQ(refused("sotfmax(bf16[4])").hint, "did you mean softmax?");
}

TEST(Operation, WhatIsNotAnOperationIsRefused) {
  for (const char* text : {"",
                           " ",
                           "@",
                           "bf16",
                           "bf16[",
                           "bf16[]",
                           "bf16[4",
                           "bf16[4,",
                           "bf16[4]",
                           "bf16[4] @",
                           "dot",
                           "dot(",
                           "dot()",
                           "dot(bf16[])",
                           "sum(bf16[4]",
                           "bf16[-4] @ bf16[4]",
                           "bf16[1.5] @ bf16[1.5]",
                           "bf16[1e300] @ bf16[1]",
                           "bf16[nan] @ bf16[4]",
                           "dot(Inf)",
                           "bf16[4] @ bf16[]",
                           "bf16[1,1,1,1,1,1,1,1,1] @ bf16[1]",
                           "bf16[9P,9P] @ bf16[9P,9P]",
                           "bf16[1,1,1,1,1] @ bf16[1,1,1,1,1,1,1] -> bf16[1]"})
    EXPECT_FALSE(parse_operation(text, "OP")) << text;
  EXPECT_FALSE(parse_operation(std::string(5000, ' '), "OP"));
}

// Every function of the list parses, and what it reads is operands x elements.
TEST(Operation, EveryFunctionParses) {
  for (const PointwiseFunction& function : pointwise_functions()) {
    const Operation operation = operation_of(std::string(function.name) + "(bf16[4,8])");
    EXPECT_EQ(operation.operands().size(), static_cast<std::size_t>(function.operands));
    EXPECT_EQ(operation.pointwise().results, function.reduces ? 4 : 32) << function.name;
  }
}

/// One dimension: its letter fixes its size, so that equal letters never contradict each other.
struct Dimension {
  char letter;
  std::string number() const { return std::to_string(2 + letter % 7); }
};

/// A dimension as a letter, as a number, or as both.
std::string spelled(const Dimension& dimension) {
  const std::string letter(1, dimension.letter), number = dimension.number();
  return *rc::gen::elementOf(std::vector<std::string>{letter, number, letter + "=" + number});
}

std::string spelled(const std::vector<Dimension>& dimensions) {
  std::string text = *rc::gen::elementOf(std::vector<std::string>{"bf16[", "int8[", "fp32[", "fp4["});
  for (std::size_t i = 0; i < dimensions.size(); ++i) text += (i ? "," : "") + spelled(dimensions[i]);
  return text + "]";
}

std::vector<Dimension> any_dimensions(int most) {
  std::vector<Dimension> all;
  const int count = *rc::gen::inRange(0, most + 1);
  for (int i = 0; i < count; ++i) all.push_back({*rc::gen::elementOf(std::string("BDFKMNT"))});
  return all;
}

std::vector<Dimension> operator+(std::vector<Dimension> a, const std::vector<Dimension>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// [only a's batch, shared batch, m, k] @ [shared batch, k, n], with and without the result.
std::string any_product() {
  const auto one = [] { return std::vector<Dimension>{{*rc::gen::elementOf(std::string("BDFKMNT"))}}; };
  const auto extra = any_dimensions(2), shared = any_dimensions(2), m = one(), k = one(), n = one();
  const std::string product = spelled(extra + shared + m + k) + " @ " + spelled(shared + k + n);
  return *rc::gen::arbitrary<bool>() ? product : product + " -> " + spelled(extra + shared + m + n);
}

std::string any_call() {
  const std::span<const PointwiseFunction> all = pointwise_functions();
  const std::string_view function = all[*rc::gen::inRange<std::size_t>(0, all.size())].name;
  return std::string(function) + "(" + spelled(any_dimensions(3) + std::vector<Dimension>{{'N'}}) + ")";
}

RC_GTEST_PROP(OperationLaws, TheNormalisedTextReadsBackAsTheSameOperation, ()) {
  const Operation first = operation_of(*rc::gen::arbitrary<bool>() ? any_product() : any_call());
  const Operation second = operation_of(first.text());
  RC_ASSERT(second.text() == first.text());
  RC_ASSERT(second.free_sizes() == first.free_sizes());
  if (!first.is_matmul()) return;
  const Matmul a = first.matmul(), b = second.matmul();
  RC_ASSERT(a.batch == b.batch);
  RC_ASSERT(a.m == b.m);
  RC_ASSERT(a.k == b.k);
  RC_ASSERT(a.n == b.n);
}

// The parts of a product are the elements of its tensors: batch m k, batch k n, batch m n.
RC_GTEST_PROP(OperationLaws, TheRolesCoverEverySizeOfEveryTensor, ()) {
  Operation operation = operation_of(any_product());
  for (const std::string& letter : operation.free_sizes()) operation = operation.with(letter, 3);
  const Matmul product = operation.matmul();
  const auto elements = [](const OperationTensor& tensor) {
    double count = 1;
    for (const OperationSize& size : tensor.sizes) count *= *size.value;
    return count;
  };
  RC_ASSERT(elements(operation.operands()[0]) == product.batch * product.m * product.k);
  RC_ASSERT(elements(operation.operands()[1]) == product.batch * product.k * product.n);
  RC_ASSERT(elements(operation.result()) == product.batch * product.m * product.n);
}

}  // namespace
}  // namespace assay::roofline
