#include "assay/profile/compare/recognition.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "assay/testing/catalogue.h"

namespace assay::compare {
namespace {

hlo::Module module_of(const std::string& text) {
  auto read = hlo::read_module(text, "test.hlo", **hlo::calls_of(testing::catalogue()));
  if (!read) throw InternalError(read.error().where + read.error().what);
  return std::move(*read);
}

RecognisedModel recognised(const hlo::Module& module) {
  return recognise(module, *hlo::program_mesh(module), *hlo::program_kernels(module));
}

std::string sample() {
  std::ifstream file("tests/data/programs/llama-2l-fsdp4.hlo");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Recognition, FindsModelMeshAndRecomputation) {
  const hlo::Module module = module_of(sample());
  const RecognisedModel model = recognised(module);
  EXPECT_EQ(model.hidden, 256);
  EXPECT_EQ(model.intermediate, 768);
  EXPECT_EQ(model.heads, 4);
  EXPECT_EQ(model.kv_heads, 2);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.vocabulary, 1024);
  EXPECT_EQ(model.tied, false);
  EXPECT_TRUE(model.gated);
  EXPECT_EQ(model.copies, 3);
  EXPECT_EQ(model.weight_type->name, "f32");
  EXPECT_EQ(model.state_type->name, "f32");
  EXPECT_EQ(model.batch, 8);
  EXPECT_EQ(model.sequence, 128);
  EXPECT_EQ(model.recompute, "full");
  // 2 x 256 x 1024 outside of layers, 786,432 in each of two, five norms.
  EXPECT_DOUBLE_EQ(model.parameters, 524288.0 + 2 * 786432.0 + 5 * 256.0);
  ASSERT_EQ(model.axes.size(), 1u);
  EXPECT_EQ(model.axes[0].role(), "fsdp");
}

TEST(Recognition, ACutProgramStillHasItsSizes) {
  std::string text = sample();
  text.resize(text.find("ENTRY"));
  const hlo::Module module = module_of(text);
  ASSERT_TRUE(module.cut);
  const RecognisedModel model = recognised(module);
  EXPECT_EQ(model.hidden, 256);
  EXPECT_EQ(model.heads, 4);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.vocabulary, 1024);
  EXPECT_EQ(model.batch, 8);
  EXPECT_EQ(model.recompute, "full");
}

TEST(Recognition, WhatIsNoTransformerHasNoModel) {
  EXPECT_EQ(recognised(module_of("ENTRY e {\n  x = f32[256] parameter(0)\n  ROOT a = f32[256] negate(x)\n}")).hidden,
            0);
}

}  // namespace
}  // namespace assay::compare
