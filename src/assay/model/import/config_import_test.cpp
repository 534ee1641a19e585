#include "assay/model/import/config_import.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "assay/model/accounting.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

std::int64_t total(std::string_view document) {
  const auto imported = import_config(document, "config.json", catalogue());
  EXPECT_TRUE(imported) << (imported ? "" : imported.error().where + ": " + imported.error().what);
  return imported ? parameter_counts(imported->model).total : 0;
}

/// All faults as text.
std::string faults(std::string_view document) {
  const auto imported = import_config(document, "config.json", catalogue());
  if (imported) return "read";
  std::string text = imported.error().where + ": " + imported.error().what + " (" + imported.error().hint + ")";
  for (const Error& error : imported.error().also) text += "\n" + error.where + ": " + error.what;
  return text;
}

void expect_fault(std::string_view document, std::string_view part) {
  const std::string text = faults(document);
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

TEST(ConfigImport, ADefaultConfigurationIsTheLibrarys) {
  EXPECT_EQ(total(R"({"model_type": "llama"})"), 6'738'415'616);
  EXPECT_EQ(total(R"({"model_type": "gpt2"})"), 124'439'808);
  EXPECT_EQ(total(R"({"model_type": "mistral"})"), 7'241'732'096);
  EXPECT_EQ(total(R"({"model_type": "deepseek_v3"})"), 671'026'419'200);
  EXPECT_EQ(total(R"({"model_type": "gpt_oss"})"), 116'829'156'672);
  EXPECT_EQ(total(R"({"model_type": "t5"})"), 60'506'624);
}

TEST(ConfigImport, GroupsOfExpertsDivideThemAndHoldThosePicked) {
  const auto v3 = import_config(R"({"model_type": "deepseek_v3"})", "config.json", catalogue());
  ASSERT_TRUE(v3);
  EXPECT_EQ(v3->model.decoder.kinds.back().feed_forward->expert_groups, 8);
  EXPECT_EQ(v3->model.decoder.kinds.back().feed_forward->groups_per_token, 4);
  expect_fault(R"({"model_type": "deepseek_v3", "n_group": 7})", "n_group");
  expect_fault(R"({"model_type": "deepseek_v3", "topk_group": 9})", "topk_group");
}

TEST(ConfigImport, EveryFamilyReadsItsDefaults) {
  const auto types = known_model_types(catalogue());
  ASSERT_TRUE(types);
  for (const std::string& type : *types) {
    // These say what each layer is.
    if (type == "transformer" || type == "deci" || type == "nemotron-nas" || type == "nemotron_h") continue;
    if (type == "openelm" || type == "kimi_linear") continue;
    const auto imported = import_config("{\"model_type\": \"" + type + "\"}", "config.json", catalogue());
    ASSERT_TRUE(imported) << type << ": " << imported.error().where << ": " << imported.error().what;
    EXPECT_GT(parameter_counts(imported->model).total, 0) << type;
    EXPECT_FALSE(imported->defaults.empty()) << type;
  }
}

TEST(ConfigImport, DefaultsLeaveNotes) {
  const auto imported =
      import_config(R"({"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 16})", "c", catalogue());
  ASSERT_TRUE(imported);
  std::string all;
  for (const std::string& text : imported->defaults) all += text + "\n";
  EXPECT_NE(all.find("head_dim not given: width / heads = 128"), std::string::npos) << all;
  EXPECT_NE(all.find("vocab_size not given: 32000"), std::string::npos) << all;
  EXPECT_EQ(all.find("hidden_size"), std::string::npos) << all;
}

TEST(ConfigImport, ArchitecturesStandInForAMissingType) {
  EXPECT_EQ(total(R"({"architectures": ["LlamaForCausalLM"]})"), 6'738'415'616);
  expect_fault(R"({"architectures": ["LlamaForCausalM"]})", "LlamaForCausalLM");
}

TEST(ConfigImport, AnUnknownTypeHasNearNames) {
  expect_fault(R"({"model_type": "lama"})", "did you mean llama");
  expect_fault(R"({"model_type": "zzzzzz"})", "unknown model type");
  expect_fault("{}", "is missing, and so is architectures");
}

TEST(ConfigImport, AFieldThatMayChangeTheShapeIsNamed) {
  expect_fault(R"({"model_type": "llama", "num_experts": 8})", "num_experts");
  expect_fault(R"({"model_type": "llama", "extra_hidden_layers": 2})", "extra_hidden_layers");
  EXPECT_EQ(faults(R"({"model_type": "llama", "hidden_act": "silu", "rope_theta": 1e4, "bos_token_id": 1,
                       "initializer_range": 0.02, "num_labels": 2, "some_layer_scale": 0.5, "spare_heads": 0})"),
            "read");
}

TEST(ConfigImport, ReportsEveryFault) {
  const std::string text =
      faults(R"({"model_type": "llama", "hidden_size": -1, "vocab_size": "many", "num_hidden_layers": 2.5})");
  for (const char* part : {"hidden_size", "vocab_size", "num_hidden_layers"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find("do not divide"), std::string::npos) << text;  // a width of -1 is one fault, not two
}

TEST(ConfigImport, RefusesSizesThatCannotBe) {
  expect_fault(R"({"model_type": "llama", "hidden_size": 0})", "between 1 and");
  expect_fault(R"({"model_type": "llama", "hidden_size": 1e30})", "between 1 and");
  expect_fault(R"({"model_type": "llama", "hidden_size": 99999999999999999999})", "hidden_size");
  expect_fault(R"({"model_type": "llama", "num_hidden_layers": 1000000})", "must be at most");
  expect_fault(R"({"model_type": "llama", "hidden_size": 1000000000, "intermediate_size": 1000000000})", "parameters");
  expect_fault(R"({"model_type": "llama", "hidden_size": 4097})", "do not divide");
  expect_fault(R"({"model_type": "llama", "num_key_value_heads": 5})", "must divide");
  expect_fault(R"({"model_type": "llama", "hidden_size": 1e18})", "must be between 1 and 1073741824, got 1");
  expect_fault(R"({"model_type": "gpt2", "n_embd": 768, "hidden_size": 1024})", "both name the same field");
  expect_fault(R"({"model_type": "mixtral", "num_experts_per_tok": 9})", "between 1 and the 8 experts");
  expect_fault(R"({"model_type": "deepseek_v2", "n_routed_experts": 64})", "num_experts_per_tok");
  expect_fault(R"({"model_type": "gpt_oss", "layer_types": ["full_attention"]})", "lists 1 layers");
  expect_fault(R"({"model_type": "gemma3_text", "num_hidden_layers": 1, "layer_types": ["odd"]})",
               "unknown layer type");
  expect_fault(R"({"model_type": "llama", "layer_types": ["full_attention"]})", "lists 1 layers");
  expect_fault(R"({"model_type": "llama", "num_hidden_layers": 1, "layer_types": ["mamba"]})", "are alike");
  expect_fault(R"({"model_type": "nemotron_h", "hybrid_override_pattern": "MX"})", "unknown layer type");
}

TEST(ConfigImport, WhatIsLeftAsideIsTold) {
  const auto notes = [](std::string_view document) {
    std::string all;
    const auto imported = import_config(document, "config.json", catalogue());
    EXPECT_TRUE(imported);
    if (imported)
      for (const std::string& text : imported->notes) all += text + "\n";
    return all;
  };
  for (const std::string key : {"qkv_bias", "use_qk_norm", "tie_embeddings", "bias", "use_bias"}) {
    const std::string document = "{\"model_type\": \"llama\", \"" + key + "\": ";
    EXPECT_NE(notes(document + "true}").find(key + " is true but ignored"), std::string::npos) << key;
    EXPECT_EQ(notes(document + "false}"), "") << key;
  }
  EXPECT_EQ(notes(R"({"model_type": "glm4_moe", "use_qk_norm": true})").find("ignored"), std::string::npos);
  const std::string twice = notes(R"({"model_type": "llama", "hidden_size": 4096, "rope_scaling": {"rope_type":
      "llama3", "factor": 2, "factor": 8}, "hidden_size": 4096})");
  EXPECT_NE(twice.find("\"hidden_size\" is given more than once"), std::string::npos) << twice;
  EXPECT_NE(twice.find("\"rope_scaling.factor\" is given more than once"), std::string::npos) << twice;
}

TEST(ConfigImport, FormatsAndBiasesThatCannotBe) {
  expect_fault(R"({"model_type": "llama", "torch_dtype": 7})", "torch_dtype: must be text, got a whole number");
  expect_fault(R"({"model_type": "falcon_h1", "projectors_bias": true})", "projectors_bias");
  const std::int64_t none = total(R"({"model_type": "falcon_h1"})");
  const std::int64_t both = total(R"({"model_type": "falcon_h1", "projectors_bias": true, "mamba_proj_bias": true})");
  // In front: two widths, B and C of one group of 256, a step of time for each of 128 heads; behind: the model's width.
  EXPECT_EQ(both - none, 32 * (2 * 8192 + 2 * 256 + 128 + 4096));
}

TEST(ConfigImport, WordsOfPythonAreNumbers) {
  const auto list = parse_json(R"([Infinity, -Infinity, NaN, "NaN \"Infinity", 0e0])", "list.json");
  ASSERT_TRUE(list) << list.error().what;
  ASSERT_EQ(list->items.size(), 5U);
  EXPECT_EQ(list->items[0].number, std::numeric_limits<double>::infinity());
  EXPECT_EQ(list->items[1].number, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(list->items[2].number));
  EXPECT_EQ(list->items[3].text, "NaN \"Infinity");
  EXPECT_EQ(list->items[4].number, 0);
  EXPECT_FALSE(parse_json("[Infinit]", "list.json"));
  EXPECT_FALSE(parse_json("[Infinityx]", "list.json"));
  expect_fault(R"({"model_type": "llama", "hidden_size": Infinity})", "must be a whole number, got Infinity");
  expect_fault(R"({"model_type": "llama", "hidden_size": NaN})", "must be a whole number, got NaN");
  expect_fault(R"({"model_type": "mamba2", "intermediate_size": 8000})", "is 8000, but expand x hidden_size is 8192");
  expect_fault(R"({"model_type": "openelm", "ffn_multipliers": [NaN]})", "must be a positive number, got NaN");
}

TEST(ConfigImport, RefusesWhatIsNoConfiguration) {
  expect_fault("", "empty");
  expect_fault("   \n", "empty");
  expect_fault("[1, 2]", "a configuration is an object");
  expect_fault(R"({"model_type": 5})", "must be text");
  expect_fault(R"({"model_type": "llama", "text_config": 5})", "must be an object");
  expect_fault(R"({"model_type": "nemotron-nas", "num_hidden_layers": 1, "block_configs": [1]})", "list of objects");
  expect_fault(R"({"ssm_cfg": {"layer": "Mamba3"}})", "unknown mixer");
  expect_fault(R"({"model_type": "llama")", "not JSON");
  expect_fault(
      "\x7f"
      "ELF\x02",
      "not JSON");
  expect_fault(std::string(100'000, '['), "nested deeper");
  expect_fault("{\"a\":" + std::string(100'000, '{'), "not JSON");
  expect_fault(std::string(17 << 20, ' ') + "{}", "limit is");
}

TEST(ConfigImport, NullSwitchesOffWhatIsOnByDefault) {
  const auto windowed = import_config(R"({"model_type": "mistral"})", "c", catalogue());
  const auto without = import_config(R"({"model_type": "mistral", "sliding_window": null})", "c", catalogue());
  ASSERT_TRUE(windowed && without);
  EXPECT_EQ(windowed->model.decoder.kinds[0].attention->window, 4096);
  EXPECT_EQ(without->model.decoder.kinds[0].attention->window, 0);
  const auto full_rank = import_config(R"({"model_type": "deepseek_v3", "q_lora_rank": null})", "c", catalogue());
  ASSERT_TRUE(full_rank);
  EXPECT_EQ(full_rank->model.decoder.kinds[0].attention->q_rank, 0);
}

TEST(ConfigImport, TakesTheTextPartOfAWrapper) {
  const auto imported = import_config(R"({"model_type": "llava", "tie_word_embeddings": true,
      "text_config": {"model_type": "llama"}, "vision_config": {"hidden_size": 1024}})",
                                      "c", catalogue());
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->family, "llama");
  EXPECT_TRUE(imported->model.tied);
  ASSERT_FALSE(imported->notes.empty());
  EXPECT_NE(imported->notes[0].find("vision_config is left out"), std::string::npos);
  expect_fault(R"({"text_config": {"model_type": "llama", "hidden_size": -4}})", "text_config.hidden_size");
}

TEST(ConfigImport, LayersOfSeveralKinds) {
  const auto gemma = import_config(R"({"model_type": "gemma3_text", "num_hidden_layers": 12})", "c", catalogue());
  ASSERT_TRUE(gemma);
  EXPECT_EQ(gemma->model.decoder.kinds.size(), 2U);
  EXPECT_EQ(gemma->model.decoder.count(1), 2);  // each sixth sees everything
  const auto deepseek = import_config(R"({"model_type": "deepseek_v3"})", "c", catalogue());
  ASSERT_TRUE(deepseek);
  EXPECT_EQ(deepseek->model.decoder.count(0), 3);
  const auto scout = import_config(R"({"model_type": "llama4_text"})", "c", catalogue());
  ASSERT_TRUE(scout);
  EXPECT_EQ(scout->model.decoder.count(0), 36);  // chunks, but for each fourth
  const auto jamba = import_config(R"({"model_type": "jamba"})", "c", catalogue());
  ASSERT_TRUE(jamba);
  EXPECT_EQ(jamba->model.decoder.kinds.size(), 3U);
}

TEST(ConfigImport, SomeLayersHaveNoPositions) {
  const auto without = [](std::string_view document) {
    const auto imported = import_config(document, "config.json", catalogue());
    EXPECT_TRUE(imported) << document;
    std::int64_t layers = 0;
    for (std::uint16_t kind : imported->model.decoder.order)
      layers += imported->model.decoder.kinds[kind].attention->rotary ? 0 : 1;
    return layers;
  };
  EXPECT_EQ(without(R"({"model_type": "llama4_text"})"), 48 / 4);
  EXPECT_EQ(without(R"({"model_type": "smollm3"})"), 36 / 4);
  EXPECT_EQ(without(R"({"model_type": "smollm3", "num_hidden_layers": 3, "no_rope_layers": [1, 0, 1]})"), 1);
  EXPECT_EQ(without(R"({"model_type": "cohere2"})"), 40 / 4);
  EXPECT_EQ(without(R"({"model_type": "exaone4", "sliding_window_pattern": "LLLG"})"), 32 / 4);
  EXPECT_EQ(without(R"({"model_type": "exaone4", "sliding_window": null})"), 0);
  expect_fault(R"({"model_type": "smollm3", "no_rope_layers": [1, 0]})", "no_rope_layers");
}

TEST(ConfigImport, TheDescriptionOfOurOwn) {
  // 2 layers: 4 x 64 x 64 + 2 x 64 x 256 + 2 x 64 norms, then vocabulary and final norm
  EXPECT_EQ(total(R"({"model_type": "transformer", "d_model": 64, "layers": 2, "heads": 4, "d_ff": 256,
                      "vocabulary": 100, "tied": true})"),
            2 * (4 * 64 * 64 + 2 * 64 * 256 + 128) + 100 * 64 + 64);
  expect_fault(R"({"model_type": "transformer", "d_model": 64})", "is missing");
  expect_fault(R"({"model_type": "transformer", "d_model": 64, "layers": 2, "heads": 4, "d_ff": 256,
                   "vocabulary": 100, "experts": 4})",
               "experts_per_token");
}

TEST(Json, KeepsKindsAndTheLastOfADoubleKey) {
  const auto json = parse_json(R"({"a": 1, "b": [true, null, -2, 0.5, "x"], "a": 3})", "j");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("a")->integer, 3);
  const Json& list = *json->find("b");
  EXPECT_EQ(list.items[0].kind, Json::Kind::boolean);
  EXPECT_EQ(list.items[1].kind, Json::Kind::null);
  EXPECT_EQ(list.items[2].integer, -2);
  EXPECT_EQ(list.items[3].number, 0.5);
  EXPECT_EQ(list.items[4].text, "x");
  EXPECT_EQ(json->find("c"), nullptr);
}

}  // namespace
}  // namespace assay::model
