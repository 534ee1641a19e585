#include "assay/model/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "assay/model/accounting.h"
#include "assay/model/weights.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"

namespace assay::model {
namespace {

using testing::catalogue;

namespace fs = std::filesystem;

template <class T>
std::string little(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::string safetensors(const std::string& header, std::size_t data) {
  return little<std::uint64_t>(header.size()) + header + std::string(data, '\0');
}

std::string fault(const std::string& bytes) {
  const auto tensors = parse_safetensors(bytes, bytes.size(), "m.safetensors");
  return tensors ? "read" : tensors.error().where + ": " + tensors.error().what;
}

TEST(Safetensors, ReadsShapesAndFormats) {
  const std::string alone = safetensors(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 0);
  EXPECT_EQ(parse_safetensors(alone, alone.size(), "m")->front().elements, 2);
  const std::string bytes = safetensors(R"({"__metadata__": {"format": "pt"},
    "w": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [0, 24]},
    "b": {"dtype": "F32", "shape": [], "data_offsets": [24, 28]}})",
                                        28);
  const auto tensors = parse_safetensors(bytes, bytes.size(), "m");
  ASSERT_TRUE(tensors) << tensors.error().what;
  ASSERT_EQ(tensors->size(), 2U);
  EXPECT_EQ((*tensors)[0].elements, 12);
  EXPECT_EQ((*tensors)[0].bytes, 24_B);
  EXPECT_EQ((*tensors)[1].elements, 1);
}

TEST(Safetensors, RefusesWhatCannotBe) {
  EXPECT_NE(fault("").find("at least 8"), std::string::npos);
  EXPECT_NE(fault("short").find("at least 8"), std::string::npos);
  EXPECT_NE(fault(std::string(8, '\xff')).find("limit"), std::string::npos);
  EXPECT_NE(fault(little<std::uint64_t>(100) + "{}").find("ends before"), std::string::npos);
  EXPECT_NE(fault(safetensors(R"({"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                                  "v": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
                              3))
                .find("share the bytes"),
            std::string::npos);
  EXPECT_NE(fault(safetensors(R"({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                                  "w": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})",
                              2))
                .find("twice"),
            std::string::npos);
  EXPECT_NE(fault(safetensors("[]", 0)).find("must be an object"), std::string::npos);
  EXPECT_NE(fault(safetensors(R"({"w": 1})", 0)).find("dtype"), std::string::npos);
  EXPECT_NE(
      fault(safetensors(R"({"w": {"dtype": "Q9", "shape": [1], "data_offsets": [0, 1]}})", 1)).find("unknown dtype"),
      std::string::npos);
  EXPECT_NE(
      fault(safetensors(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 4)).find("not within"),
      std::string::npos);
  EXPECT_NE(fault(safetensors(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", 8)).find("takes 8"),
            std::string::npos);
  EXPECT_NE(
      fault(safetensors(R"({"w": {"dtype": "U8", "shape": [4611686018427387904, 8], "data_offsets": [0, 0]}})", 0))
          .find("counted"),
      std::string::npos);
  EXPECT_NE(fault(safetensors(R"({"w": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}})", 1)).find("shape"),
            std::string::npos);
}

std::string text(std::string_view value) { return little<std::uint64_t>(value.size()) + std::string(value); }
std::string key(std::string_view name, std::uint32_t value) {
  return text(name) + little<std::uint32_t>(4) + little(value);
}
std::string tensor(std::string_view name, std::vector<std::uint64_t> shape, std::uint32_t type) {
  std::string bytes = text(name) + little(static_cast<std::uint32_t>(shape.size()));
  for (std::uint64_t size : shape) bytes += little(size);
  return bytes + little(type) + little<std::uint64_t>(0);
}

/// A llama of one layer: width 64, two heads, feed-forward 256, vocabulary 3.
std::string tiny_gguf() {
  std::string keys = text("general.architecture") + little<std::uint32_t>(8) + text("llama");
  keys += key("llama.block_count", 1) + key("llama.embedding_length", 64) + key("llama.feed_forward_length", 256);
  keys += key("llama.attention.head_count", 2) + key("llama.attention.head_count_kv", 1);
  keys += text("tokenizer.ggml.tokens") + little<std::uint32_t>(9) + little<std::uint32_t>(8) +
          little<std::uint64_t>(3) + text("a") + text("b") + text("c");
  std::string tensors = tensor("token_embd.weight", {64, 3}, 8) + tensor("output_norm.weight", {64}, 0);
  tensors += tensor("blk.0.attn_norm.weight", {64}, 0) + tensor("blk.0.ffn_norm.weight", {64}, 0);
  tensors += tensor("blk.0.attn_q.weight", {64, 64}, 8) + tensor("blk.0.attn_k.weight", {64, 32}, 8);
  tensors += tensor("blk.0.attn_v.weight", {64, 32}, 8) + tensor("blk.0.attn_output.weight", {64, 64}, 8);
  tensors += tensor("blk.0.ffn_gate.weight", {64, 256}, 8) + tensor("blk.0.ffn_up.weight", {64, 256}, 8);
  tensors += tensor("blk.0.ffn_down.weight", {256, 64}, 8);
  return "GGUF" + little<std::uint32_t>(3) + little<std::uint64_t>(11) + little<std::uint64_t>(7) + keys + tensors;
}

TEST(Gguf, ReadsTensorsAndConfiguration) {
  const auto header = parse_gguf(tiny_gguf(), "tiny.gguf");
  ASSERT_TRUE(header) << header.error().where << header.error().what;
  EXPECT_EQ(header->architecture, "llama");
  std::int64_t elements = 0;
  for (const CheckpointTensor& each : header->tensors) elements += each.elements;
  EXPECT_EQ(header->tensors[0].bytes, Bytes(64 * 3 / 32 * 34));  // blocks of 32 in 34 bytes
  const auto imported = import_config(header->config, "tiny.gguf", catalogue());
  ASSERT_TRUE(imported) << imported.error().where << imported.error().what;
  EXPECT_TRUE(imported->model.tied);
  EXPECT_EQ(imported->model.vocabulary, 3);
  EXPECT_EQ(elements, 3 * 64 + 64 + 2 * 64 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 256);
}

std::string list(std::string_view name, const std::vector<std::uint32_t>& values) {
  std::string bytes = text(name) + little<std::uint32_t>(9) + little<std::uint32_t>(4);
  bytes += little<std::uint64_t>(values.size());
  for (const std::uint32_t value : values) bytes += little(value);
  return bytes;
}

/// The model that a header of these keys and tensors makes.
Transformer described(std::string_view architecture, const std::vector<std::string>& keys,
                      const std::vector<std::string>& tensors) {
  std::string bytes = text("general.architecture") + little<std::uint32_t>(8) + text(architecture);
  for (const std::string& each : keys) bytes += each;
  for (const std::string& each : tensors) bytes += tensor(each, {32}, 0);
  const auto header = parse_gguf("GGUF" + little<std::uint32_t>(3) + little<std::uint64_t>(tensors.size()) +
                                     little<std::uint64_t>(keys.size() + 1) + bytes,
                                 "some.gguf");
  const auto imported =
      header ? import_config(header->config, "some.gguf", catalogue()) : tl::unexpected<Error>(header.error());
  EXPECT_TRUE(imported) << imported.error().where << ": " << imported.error().what;
  return imported ? imported->model : Transformer{};
}

/// The header of a llama with these keys and maybe one tensor.
Result<GgufHeader> llama_header(const std::vector<std::string>& keys, const std::string& one = "") {
  std::string bytes = text("general.architecture") + little<std::uint32_t>(8) + text("llama");
  for (const std::string& each : keys) bytes += each;
  return parse_gguf("GGUF" + little<std::uint32_t>(3) + little<std::uint64_t>(one.empty() ? 0 : 1) +
                        little<std::uint64_t>(keys.size() + 1) + bytes + one,
                    "some.gguf");
}

std::string gguf_fault(const std::vector<std::string>& keys) {
  const auto header = llama_header(keys);
  if (header) return "read";
  std::string all = header.error().where + " " + header.error().what;
  for (const Error& error : header.error().also) all += "\n" + error.where + " " + error.what;
  return all;
}

TEST(Gguf, EachLayerMayHaveItsOwnHeadsOfKeys) {
  const std::vector<std::string> sizes = {key("llama.block_count", 3), key("llama.embedding_length", 64),
                                          key("llama.attention.head_count", 4), key("llama.vocab_size", 10)};
  std::vector<std::string> keys = sizes;
  keys.push_back(key("llama.feed_forward_length", 256));
  keys.push_back(list("llama.attention.head_count_kv", {4, 2, 1}));
  const Transformer model = described("llama", keys, {"output.weight"});
  ASSERT_EQ(model.decoder.layers(), 3);
  ASSERT_EQ(model.decoder.kinds.size(), 3U);
  EXPECT_EQ(model.decoder.kinds[1].attention->kv_heads, 2);
  EXPECT_EQ(parameter_counts(model).total,
            2 * 64 * 10 + 64 + 3 * (2 * 64 * 64 + 3 * 64 * 256 + 2 * 64) + 2 * 64 * 16 * (4 + 2 + 1));
  keys = sizes;
  keys.push_back(list("llama.feed_forward_length", {256, 256, 128}));
  EXPECT_NE(gguf_fault(keys).find("llama.feed_forward_length differs between layers"), std::string::npos)
      << gguf_fault(keys);
}

TEST(Gguf, WithoutItsKeysAModelIsNoOther) {
  const std::string all = gguf_fault({});
  for (const char* missing : {"llama.block_count is missing", "llama.embedding_length is missing",
                              "llama.feed_forward_length is missing", "llama.attention.head_count is missing"})
    EXPECT_NE(all.find(missing), std::string::npos) << all;
  const std::vector<std::string> sizes = {key("llama.block_count", 1), key("llama.embedding_length", 64),
                                          key("llama.feed_forward_length", 256), key("llama.attention.head_count", 2)};
  EXPECT_NE(gguf_fault(sizes).find("llama.vocab_size is missing"), std::string::npos) << gguf_fault(sizes);
  const auto embedded = llama_header(sizes, tensor("token_embd.weight", {64, 77}, 0));
  ASSERT_TRUE(embedded);
  EXPECT_EQ(embedded->config.find("vocab_size")->integer, 77);
  EXPECT_NE(gguf_fault({text("general.type") + little<std::uint32_t>(8) + text("adapter")}).find("is an adapter"),
            std::string::npos);
}

// DeepSeek V3 as converters write it today: heads of keys and values under names of their own.
TEST(Gguf, LatentAttentionAndCorrectedRouters) {
  const Transformer model =
      described("deepseek2",
                {key("deepseek2.block_count", 61), key("deepseek2.embedding_length", 7168),
                 key("deepseek2.feed_forward_length", 18432), key("deepseek2.attention.head_count", 128),
                 key("deepseek2.attention.head_count_kv", 1), key("deepseek2.attention.q_lora_rank", 1536),
                 key("deepseek2.attention.kv_lora_rank", 512), key("deepseek2.attention.key_length", 576),
                 key("deepseek2.attention.value_length", 512), key("deepseek2.attention.key_length_mla", 192),
                 key("deepseek2.attention.value_length_mla", 128), key("deepseek2.rope.dimension_count", 64),
                 key("deepseek2.leading_dense_block_count", 3), key("deepseek2.expert_count", 256),
                 key("deepseek2.expert_used_count", 8), key("deepseek2.expert_shared_count", 1),
                 key("deepseek2.expert_feed_forward_length", 2048), key("deepseek2.vocab_size", 129280)},
                {"output.weight", "blk.3.exp_probs_b.bias"});
  EXPECT_EQ(parameter_counts(model).total, 671'026'419'200);
}

// GLM 4.5 Air: its last block predicts a further token.
TEST(Gguf, BlocksThatPredictAreNoLayers) {
  const Transformer model = described(
      "glm4moe",
      {key("glm4moe.block_count", 47), key("glm4moe.embedding_length", 4096), key("glm4moe.feed_forward_length", 10944),
       key("glm4moe.attention.head_count", 96), key("glm4moe.attention.head_count_kv", 8),
       key("glm4moe.attention.key_length", 128), key("glm4moe.leading_dense_block_count", 1),
       key("glm4moe.expert_count", 128), key("glm4moe.expert_used_count", 8), key("glm4moe.expert_shared_count", 1),
       key("glm4moe.expert_feed_forward_length", 1408), key("glm4moe.nextn_predict_layers", 1),
       key("glm4moe.vocab_size", 151552)},
      {"output.weight", "blk.0.attn_q.bias", "blk.1.exp_probs_b.bias"});
  EXPECT_EQ(model.decoder.layers(), 46);
  EXPECT_EQ(parameter_counts(model).total, 106'852'251'264);
}

TEST(Gguf, LayersWithoutHeadsOfKeysConvolve) {
  const Transformer model =
      described("lfm2",
                {key("lfm2.block_count", 16), key("lfm2.embedding_length", 2048), key("lfm2.feed_forward_length", 8192),
                 key("lfm2.attention.head_count", 32), key("lfm2.vocab_size", 65536), key("lfm2.shortconv.l_cache", 3),
                 list("lfm2.attention.head_count_kv", {0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0})},
                {"token_embd.weight"});
  EXPECT_EQ(parameter_counts(model).total, 1'170'340'608);
}

// Gemma 3n E2B: converters leave the last 256 rows of its table out.
TEST(Gguf, InputsFromTheTokenAndSharedKeys) {
  const Transformer model = described(
      "gemma3n",
      {key("gemma3n.block_count", 30), key("gemma3n.embedding_length", 2048), key("gemma3n.attention.head_count", 8),
       list("gemma3n.feed_forward_length", std::vector<std::uint32_t>(30, 8192)),
       key("gemma3n.attention.head_count_kv", 2), key("gemma3n.attention.key_length", 256),
       key("gemma3n.attention.sliding_window", 512), key("gemma3n.attention.shared_kv_layers", 10),
       key("gemma3n.embedding_length_per_layer_input", 256), key("gemma3n.altup.num_inputs", 4),
       key("gemma3n.vocab_size", 262144)},
      {"token_embd.weight"});
  EXPECT_EQ(parameter_counts(model).total, 4'456'156'768 - 256 * 2048);
}

TEST(Gguf, TheModelHasTheFormatsOfItsTensors) {
  const auto header = parse_gguf(tiny_gguf(), "tiny.gguf");
  ASSERT_TRUE(header);
  Checkpoint checkpoint;
  checkpoint.tensors = header->tensors;
  checkpoint.imported = *import_config(header->config, "tiny.gguf", catalogue());
  take_formats(checkpoint);
  const ImportedModel& imported = *checkpoint.imported;
  ASSERT_TRUE(imported.quantisation);
  EXPECT_EQ(imported.quantisation->format.bits(), 8.5);  // Q8_0: 34 bytes for 32
  Bytes bytes;
  for (const CheckpointTensor& each : checkpoint.tensors)
    if (each.shape.size() > 1) bytes += each.bytes;
  const Bytes counted = weight_bytes(imported.model, [&](const Weight& weight) {
    return imported.quantisation->covers(weight) ? imported.quantisation->format : NumberFormat(Dtype::bf16);
  });
  EXPECT_EQ(counted, bytes + Bytes(3 * 64 * 2.0));  // norms in bf16

  for (CheckpointTensor& each : checkpoint.tensors) {
    each.dtype = "F16";
    each.bytes = Bytes(2.0 * static_cast<double>(each.elements));
  }
  checkpoint.imported = *import_config(header->config, "tiny.gguf", catalogue());
  take_formats(checkpoint);
  EXPECT_FALSE(checkpoint.imported->quantisation);
  EXPECT_EQ(checkpoint.imported->model.dtype, Dtype::fp16);
}

TEST(Gguf, EveryTruncationIsAnError) {
  const std::string bytes = tiny_gguf();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(parse_gguf(std::string_view(bytes).substr(0, length), "t")) << length;
}

TEST(Gguf, RefusesWhatCannotBe) {
  const auto what = [](const std::string& bytes) {
    const auto header = parse_gguf(bytes, "t");
    return header ? std::string("read") : header.error().what;
  };
  EXPECT_NE(what("GGML").find("does not begin"), std::string::npos);
  EXPECT_NE(what("GGUF" + little<std::uint32_t>(1) + std::string(16, '\0')).find("version 1"), std::string::npos);
  const std::string start = "GGUF" + little<std::uint32_t>(3);
  EXPECT_NE(what(start + little<std::uint64_t>(~0ULL) + little<std::uint64_t>(~0ULL)).find("truncated"),
            std::string::npos);
  EXPECT_NE(
      what(start + little<std::uint64_t>(1) + little<std::uint64_t>(0) + tensor("w", {1ULL << 41}, 0)).find("counted"),
      std::string::npos);
  EXPECT_NE(what(start + little<std::uint64_t>(1) + little<std::uint64_t>(0) + tensor("w", {31}, 8))
                .find("multiple of blocks"),
            std::string::npos);
  EXPECT_NE(
      what(start + little<std::uint64_t>(1) + little<std::uint64_t>(0) + tensor("w", {32}, 77)).find("quantisation"),
      std::string::npos);
}

/// A directory of its own for each test.
class Checkpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() /
                 ("assay_checkpoint_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
  }
  Result<Checkpoint> read(const std::string& name = "") const {
    return read_checkpoint((directory_ / name).string(), "models", catalogue());
  }

  fs::path directory_;
};

constexpr const char* tiny_config = R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 16,
  "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 10, "tie_word_embeddings": true})";

TEST_F(Checkpoints, AConfigurationAlone) {
  write("config.json", tiny_config);
  const auto checkpoint = read();
  ASSERT_TRUE(checkpoint);
  EXPECT_TRUE(checkpoint->imported);
  EXPECT_TRUE(checkpoint->tensors.empty());
  EXPECT_TRUE(read("config.json"));
}

TEST_F(Checkpoints, AModelIsNamedByItsFolderOrItsFile) {
  write("config.json", tiny_config);
  write("tiny-2.5.json", tiny_config);
  EXPECT_EQ(read()->imported->model.id, directory_.filename());
  EXPECT_EQ(read("config.json")->imported->model.id, directory_.filename());
  EXPECT_EQ(read("tiny-2.5.json")->imported->model.id, "tiny-2.5");
}

TEST_F(Checkpoints, ShardsOfAnIndex) {
  write("config.json", tiny_config);
  write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  write("one.safetensors", safetensors(R"({"a": {"dtype": "BF16", "shape": [80], "data_offsets": [0, 160]}})", 160));
  const auto half = read();
  ASSERT_TRUE(half);
  EXPECT_TRUE(half->tensors.empty());
  EXPECT_NE(half->notes.at(0).find("1 of 2 shards are missing"), std::string::npos);
  write("two.safetensors", safetensors(R"({"b": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}})", 16));
  const auto both = read();
  ASSERT_TRUE(both);
  EXPECT_EQ(both->tensors.size(), 2U);
}

TEST_F(Checkpoints, AnIndexWithoutItsShardsSaysSo) {
  write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors"}})");
  EXPECT_NE(read().error().what.find("1 of 1 shards are missing"), std::string::npos);
  write("model.safetensors.index.json", R"({"weight_map": {}})");
  EXPECT_NE(read().error().what.find("names no tensors"), std::string::npos);
}

TEST_F(Checkpoints, AnIndexOfManyExpertsIsLong) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  write("config.json", tiny_config);
  std::string index = R"({"weight_map": {)";
  for (int i = 0; index.size() < (17U << 20); ++i)
    index += (i ? ", \"" : "\"") + std::string(2000, 'x') + std::to_string(i) + R"(": "one.safetensors")";
  write("model.safetensors.index.json", index + "}}");
  const auto checkpoint = read();
  ASSERT_TRUE(checkpoint) << checkpoint.error().where << ": " << checkpoint.error().what;
  EXPECT_NE(checkpoint->notes.at(0).find("1 of 1 shards are missing"), std::string::npos);
  fs::resize_file(directory_ / "model.safetensors.index.json", (256U << 20) + 1);
  EXPECT_NE(read().error().what.find("larger than 256 MiB"), std::string::npos) << read().error().what;
}

TEST_F(Checkpoints, ShardsWithoutAnIndexAreToldByTheirNames) {
  write("model-00001-of-1e999.safetensors", "");
  EXPECT_NE(read().error().what.find("neither config.json nor safetensors"), std::string::npos);
  write("model-00001-of-00002.safetensors",
        safetensors(R"({"a": {"dtype": "BF16", "shape": [80], "data_offsets": [0, 160]}})", 160));
  write("other-00001-of-00003.safetensors", "");
  EXPECT_NE(read().error().what.find("1 of 2 shards are missing"), std::string::npos) << read().error().what;
  write("model-00002-of-00002.safetensors",
        safetensors(R"({"b": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}})", 16));
  const auto alone = read();
  ASSERT_TRUE(alone) << alone.error().what;
  EXPECT_FALSE(alone->imported);
  EXPECT_EQ(alone->tensors.size(), 2U);
  write("config.json", tiny_config);
  EXPECT_EQ(read()->tensors.size(), 2U);
}

TEST_F(Checkpoints, AnIndexNamesNoFileElsewhere) {
  write("model.safetensors.index.json", R"({"weight_map": {"a": "../secret.safetensors"}})");
  const auto checkpoint = read();
  ASSERT_FALSE(checkpoint);
  EXPECT_NE(checkpoint.error().what.find("same directory"), std::string::npos);
}

TEST_F(Checkpoints, TensorsAloneHaveNoModel) {
  write("model.safetensors", safetensors(R"({"a": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}})", 8));
  const auto checkpoint = read("model.safetensors");
  ASSERT_TRUE(checkpoint);
  EXPECT_FALSE(checkpoint->imported);
}

TEST_F(Checkpoints, AnEmptyDirectoryAndAMissingFile) {
  ASSERT_FALSE(read());
  EXPECT_EQ(read("config.json").error().kind, Error::Kind::missing);
}

TEST(Checkpoint, WhatCountsAsAParameter) {
  EXPECT_TRUE(counts_as_parameter("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_FALSE(counts_as_parameter("model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(counts_as_parameter("vision_tower.layers.0.weight"));
  EXPECT_FALSE(counts_as_parameter("model.layers.0.mlp.down_proj.weight_scale_inv"));
  EXPECT_TRUE(is_model_path("./x"));
  EXPECT_FALSE(is_model_path("llama-3-8b"));
}

}  // namespace
}  // namespace assay::model
