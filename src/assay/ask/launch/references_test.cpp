#include "assay/ask/launch/references.h"

#include <gtest/gtest.h>

#include "assay/ask/launch/document.h"

namespace assay::launch {
namespace {

std::string value_in(const std::string& yaml, std::string_view name) {
  const auto given = read_document(Style::yaml, yaml, "test");
  if (!given) return given.error().what;
  for (const Given& one : *given)
    if (one.name == name) return one.value;
  return "absent";
}

TEST(References, StandForTheValueThatTheyName) {
  const std::string yaml =
      "model:\n  hidden_size: 12288\n  ffn: ${multiply:4, ${.hidden_size}}\n  data:\n    seq: ${model.length}\n"
      "    width: ${..hidden_size}\n  length: 2048\nnodes: ${oc.env:NODES,8}\nname: gpt-${nodes}-${model.length}\n"
      "chunks: ${divide_ceil:${.nodes},3}\n";
  EXPECT_EQ(value_in(yaml, "model.ffn"), "49152");
  EXPECT_EQ(value_in(yaml, "model.data.seq"), "2048");
  EXPECT_EQ(value_in(yaml, "model.data.width"), "12288");
  EXPECT_EQ(value_in(yaml, "nodes"), "8");
  EXPECT_EQ(value_in(yaml, "name"), "gpt-8-2048");
  EXPECT_EQ(value_in(yaml, "chunks"), "3");
}

TEST(References, ToNothingStayAsTheyAre) {
  EXPECT_EQ(value_in("a: ${b.c}/x\nb: 1\n", "a"), "${b.c}/x");
  EXPECT_EQ(value_in("a: ${unknown:1}\n", "a"), "${unknown:1}");
  EXPECT_EQ(value_in("a: ${\n", "a"), "${");
}

TEST(References, InACircleEnd) { EXPECT_NE(value_in("a: ${b}\nb: ${a}\n", "a").find("${"), std::string::npos); }

}  // namespace
}  // namespace assay::launch
