#include "assay/model/import/quantisation_config.h"

#include <gtest/gtest.h>

#include <string>

#include "assay/model/import/config_import.h"
#include "assay/model/model_catalogue.h"
#include "assay/model/weights.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

/// A small model with dense layers, or with experts, quantised like that.
ImportedModel imported(const std::string& quantisation, bool experts = false) {
  const std::string sizes =
      R"("hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000)";
  const std::string type = experts ? R"("model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2)"
                                   : R"("model_type": "llama")";
  const auto read = import_config("{" + type + ", " + sizes + R"(, "quantization_config": )" + quantisation + "}",
                                  "config.json", catalogue());
  EXPECT_TRUE(read) << quantisation;
  return read ? *read : ImportedModel{};
}

TEST(ImportQuantisation, EachToolsFormatIsRead) {
  struct Case {
    const char *config, *format;
    bool products;
  };
  const Case cases[] = {
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"})", "fp8-128x128",
       true},
      {R"({"quant_method": "fp8"})", "fp8", true},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true})", "int4-g128", false},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": true})", "int8", false},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": true})", "int4-g64z", false},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", "int8", false},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", "fp4-1x64", false},
      {R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})", "fp4-1x64", false},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
          "input_tensors": {"dtype": "fp8_e4m3"}}, "exclude": ["lm_head"]})",
       "fp8", true},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group",
          "group_size": 32, "scale_format": "e8m0"}, "input_tensors": {"dtype": "fp4"}}})",
       "mxfp4", true},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "uint4", "qscheme": "per_group",
          "group_size": 128}, "input_tensors": null}})",
       "int4-g128", false},
      {R"({"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4"}})", "nvfp4", true},
      {R"({"quant_method": "modelopt", "quant_algo": "FP8"})", "fp8", true},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", "nvfp4", true},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"input_activations": {"num_bits": 8},
          "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
       "fp8", true},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"input_activations": null,
          "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": true}}}})",
       "int4-g32", false},
      {R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {"group_0": {
          "input_activations": {"num_bits": 4}, "weights": {"num_bits": 4, "type": "float", "group_size": 16}}}})",
       "nvfp4", true},
  };
  for (const Case& c : cases) {
    const auto found = imported(c.config).quantisation;
    ASSERT_TRUE(found) << c.config;
    EXPECT_EQ(name(found->format), c.format) << c.config;
    EXPECT_EQ(found->products, c.products) << c.config;
    EXPECT_TRUE(found->has(Part::attention) && found->has(Part::mlp)) << c.config;
    EXPECT_FALSE(found->has(Part::head) || found->has(Part::embedding) || found->has(Part::norm)) << c.config;
  }
}

TEST(ImportQuantisation, WhatIsLeftOutStaysAsItIs) {
  const auto experts = imported(R"({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})", true);
  ASSERT_TRUE(experts.quantisation);
  EXPECT_TRUE(experts.quantisation->has(Part::experts));
  EXPECT_FALSE(experts.quantisation->has(Part::attention));
  const auto no_attention = imported(R"({"quant_method": "fp8", "ignored_layers": ["re:.*self_attn.*", "lm_head"]})");
  EXPECT_FALSE(no_attention.quantisation->has(Part::attention));
  EXPECT_TRUE(no_attention.quantisation->has(Part::mlp));
  EXPECT_EQ(text(*experts.quantisation, experts.model), "mxfp4 in experts");
  EXPECT_EQ(text(*no_attention.quantisation, no_attention.model), "fp8 in mlp");
  const auto by_layer =
      imported(R"({"quant_method": "fp8", "ignore": ["model.layers.0.self_attn*", "model.layers.1.self_attn*"]})");
  EXPECT_FALSE(by_layer.quantisation->has(Part::attention));
  const auto one_layer = imported(R"({"quant_method": "fp8", "ignore": ["model.layers.0.self_attn"]})");
  EXPECT_TRUE(one_layer.quantisation->has(Part::attention));
  ASSERT_FALSE(one_layer.notes.empty());
  EXPECT_EQ(one_layer.notes.back(), "1 of 2 layers keep their attention unquantised; all are counted as quantised");
}

TEST(ImportQuantisation, MlxQuantisesTablesAndHead) {
  for (const auto& [config, format] : {std::pair{R"({"bits": 4, "group_size": 64})", 4.5},
                                       std::pair{R"({"bits": 8, "group_size": 32, "mode": "affine"})", 9.0},
                                       std::pair{R"({"bits": 4, "group_size": 32, "mode": "mxfp4"})", 4.25}}) {
    const auto found = imported(config).quantisation;
    ASSERT_TRUE(found) << config;
    EXPECT_EQ(found->format.bits(), format) << config;
    EXPECT_TRUE(found->has(Part::head) && found->has(Part::embedding)) << config;
    EXPECT_FALSE(found->products) << config;
  }
  EXPECT_FALSE(imported(R"({"bits": 3, "group_size": 64})").quantisation);
}

TEST(ImportQuantisation, OfSeveralFormatsTheFirstIsTakenAndSaid) {
  const ImportedModel two = imported(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
      "weights": {"num_bits": 8, "type": "float"}}, "group_1": {"weights": {"num_bits": 4, "type": "int"}}}})");
  ASSERT_TRUE(two.quantisation);
  EXPECT_EQ(name(two.quantisation->format), "fp8");
  ASSERT_FALSE(two.notes.empty());
  EXPECT_NE(two.notes.back().find("all are counted as \"group_0\""), std::string::npos);
}

TEST(ImportQuantisation, WhatIsNotUnderstoodIsSaid) {
  for (const char* config :
       {R"({"quant_method": "quip"})", "3", "[]", R"({"quant_method": 4})", "{}",
        R"({"quant_method": "gptq", "bits": 3})", R"({"quant_method": "compressed-tensors", "config_groups": []})"}) {
    const ImportedModel model = imported(config);
    EXPECT_FALSE(model.quantisation) << config;
    ASSERT_FALSE(model.notes.empty()) << config;
    EXPECT_NE(model.notes.back().find("is not supported"), std::string::npos) << config;
  }
}

// OpenAI's card says 60.8 GiB for 120b and 12.8 GiB for 20b. The checkpoint of DeepSeek V3 has 688.6 GB, of which its
// prediction layer, which we leave out, has 14 G parameters: about 674 GB are left.
TEST(ImportQuantisation, PublishedBytesAreThoseOfTheCheckpoints) {
  const std::pair<const char*, double> published[] = {
      {"gpt-oss-120b", 60.8 * 1073741824.0}, {"gpt-oss-20b", 12.8 * 1073741824.0}, {"deepseek-v3", 674e9}};
  for (const auto& [id, bytes] : published) {
    const auto entry = catalogue_model(id, hardware::Catalogue::builtin(), "test");
    ASSERT_TRUE(entry) << id;
    const auto& quantisation = entry->imported.quantisation;
    ASSERT_TRUE(quantisation) << id;
    const double counted = weight_bytes(entry->imported.model, [&](const Weight& weight) {
                             return quantisation->covers(weight) ? quantisation->format : NumberFormat(Dtype::bf16);
                           }).value();
    EXPECT_NEAR(counted / bytes, 1.0, 0.005) << id;
  }
}

}  // namespace
}  // namespace assay::model
