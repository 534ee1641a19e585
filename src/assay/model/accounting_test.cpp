#include "assay/model/accounting.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/hardware/catalogue.h"
#include "assay/model/model_catalogue.h"
#include "assay/model/quantisation.h"
#include "assay/model/scan_kernels.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

Transformer model(std::string_view id) {
  auto found = catalogue_model(id, catalogue(), "test");
  EXPECT_TRUE(found) << id;
  return found ? found->imported.model : Transformer{};
}

/// Keys that queries really meet, counted one by one.
double counted_keys(const Attention& a, std::int64_t sequence) {
  std::int64_t pairs = 0;
  for (std::int64_t query = 0; query < sequence; ++query)
    for (std::int64_t key = 0; key < sequence; ++key) {
      bool seen = !a.causal || key <= query;
      if (a.window > 0) seen = seen && (a.causal ? query - key < a.window : 2 * std::abs(query - key) < a.window);
      if (a.chunk > 0) seen = seen && query / a.chunk == key / a.chunk;
      pairs += seen ? 1 : 0;
    }
  if (a.index_heads > 0 && a.compression == 0) pairs = 0;  // of all keys, those that are picked
  for (std::int64_t query = 0; query < sequence; ++query) {
    std::int64_t others = a.compression > 0 ? (query + 1) / a.compression : a.index_heads > 0 ? query + 1 : 0;
    if (a.index_heads > 0) others = std::min(others, a.index_picks);
    pairs += others;
  }
  return static_cast<double>(pairs) / static_cast<double>(sequence);
}

RC_GTEST_PROP(MeanKeys, AreThoseThatTheMaskLeaves, ()) {
  Attention a;
  const auto sequence = *rc::gen::inRange<std::int64_t>(1, 60);
  const auto kind = *rc::gen::inRange(0, 8);
  const auto limit = *rc::gen::inRange<std::int64_t>(1, 70);
  a.causal = kind != 0 && kind != 7;
  if (kind == 2 || kind == 7) a.window = limit;
  if (kind == 3) a.chunk = limit;
  if (kind == 5 || kind == 6) {
    a.window = 8;
    a.compression = *rc::gen::inRange<std::int64_t>(1, 9);
  }
  if (kind == 4 || kind == 6) {
    a.index_heads = 1;
    a.index_picks = limit;
  }
  const double expected = counted_keys(a, sequence);
  RC_ASSERT(std::abs(mean_keys(a, static_cast<double>(sequence), MaskCount::exact) - expected) < 1e-9 * expected);
  RC_ASSERT(mean_keys(a, static_cast<double>(sequence), MaskCount::full) >= expected - 1e-9);
}

TEST(MeanKeys, HalfIsTheAreaUnderTheMask) {
  EXPECT_EQ(mean_keys({}, 8192, MaskCount::half), 4096);
  EXPECT_EQ(mean_keys({.window = 1024}, 8192, MaskCount::half), 960);  // 1024 x (1 - 1024 / 16384)
  EXPECT_EQ(mean_keys({.window = 8192}, 8192, MaskCount::half), 4096);
  EXPECT_EQ(mean_keys({}, 8192, MaskCount::full), 8192);
}

// 80 layers of 855,638,016 (the textbook's sample layer) and the head: 2 x (80 x 855,638,016 + 128256 x 8192) forward.
TEST(TokenFlops, OfTheMatricesAreTwicePerElement) {
  const auto flops = token_flops(Plain{}, model("llama-3-70b"), 0);
  EXPECT_EQ(flops.forward.value(), 2.0 * (80.0 * 855638016.0 + 128256.0 * 8192.0));
  EXPECT_EQ(flops.train.value(), 3.0 * flops.forward.value());
}

// 12 T^2 N H of the textbook for one layer, one sequence and training: 6.597e12 at T = 8192, N = 64, H = 128.
TEST(TokenFlops, OfFullAttentionAreTheTextbooks) {
  const auto flops = token_flops(Plain{}, model("llama-3-70b"), 8192, MaskCount::full);
  EXPECT_EQ(3.0 * 8192.0 * flops.attention.value() / 80.0, 12.0 * 8192.0 * 8192.0 * 64.0 * 128.0);
}

TEST(TokenFlops, ATiedHeadIsMultipliedAllTheSame) {
  Transformer tied = model("llama-2-7b");
  const double untied = token_flops(Plain{}, tied, 0).forward.value();
  tied.tied = true;
  EXPECT_EQ(token_flops(Plain{}, tied, 0).forward.value(), untied);
}

TEST(TokenFlops, PlainAndTracedAgreeForEveryModel) {
  for (const std::string& id : model_ids(catalogue())) {
    const Transformer m = model(id);
    Ledger ledger;
    const Traced num{&ledger};
    const auto plain_flops = token_flops(Plain{}, m, 3000), half = token_flops(Plain{}, m, 3000, MaskCount::half);
    const auto traced = token_flops(num, m, 3000);
    EXPECT_EQ(plain_flops.train.value(), traced.train.value()) << id;
    EXPECT_EQ(plain_flops.attention.value(), traced.attention.value()) << id;
    EXPECT_LE(half.attention.value(), plain_flops.attention.value()) << id;
    EXPECT_EQ(kv_bytes_per_token(Plain{}, m, Dtype::fp8).value(), kv_bytes_per_token(num, m, Dtype::fp8).value()) << id;
    EXPECT_EQ(parameter_total(Plain{}, m), static_cast<double>(parameter_counts(m).total)) << id;
    EXPECT_EQ(parameter_total(num, m).value(), parameter_total(Plain{}, m)) << id;
  }
}

TEST(ParameterCounts, PartsSumToTheTotalAndActiveIsNoMore) {
  for (const std::string& id : model_ids(catalogue())) {
    const ParameterCounts counts = parameter_counts(model(id));
    std::int64_t sum = 0;
    for (std::int64_t part : counts.by_part) sum += part;
    EXPECT_EQ(sum, counts.total) << id;
    EXPECT_LE(counts.active, counts.total) << id;
    EXPECT_GT(counts.active_matrix, 0) << id;
  }
}

// Two of eight experts in each of 32 layers: 46,702,792,704 - 32 x 6 x 3 x 4096 x 14336 = 12,879,925,248.
TEST(ParameterCounts, IdleExpertsAreNotActive) {
  EXPECT_EQ(parameter_counts(model("mixtral-8x7b")).active, 12'879'925'248);
  EXPECT_EQ(parameter_counts(model("mixtral-8x7b")).of(Part::experts), 32LL * 8 * 3 * 4096 * 14336);
}

// 2 x 32 layers x 8 heads x 128 x 2 bytes.
TEST(Cache, OfGroupedQueriesHoldsKeysAndValues) {
  EXPECT_EQ(kv_bytes_per_token(Plain{}, model("llama-3-8b"), Dtype::bf16), 128_KiB);
  EXPECT_EQ(kv_bytes_per_token(Plain{}, model("llama-3-8b"), Dtype::int8), 64_KiB);
}

// 61 layers of 512 + 64 values.
TEST(Cache, OfLatentAttentionHoldsTheCompressedPart) { EXPECT_EQ(kv_values_per_token(model("deepseek-v3")), 61 * 576); }

// All 43 layers keep 128 tokens of 512 values; of 1000 tokens, 21 layers keep 250 keys and the index's 128 values each,
// 20 layers keep 7 keys.
TEST(Cache, OfCompressedKeysGrowsWithTheirNumber) {
  const Transformer m = model("deepseek-v4-flash");
  EXPECT_EQ(kv_values_per_sequence(m, 1000), 43 * 128 * 512 + 21 * 250 * (512 + 128) + 20 * 7 * 512);
  EXPECT_EQ(kv_values_per_token(m), 43 * 512 + 21 * (512 + 128) / 4 + 20 * 512 / 128);
}

/// Heads of 64 channels in 8 groups.
StateSpace mamba2(std::int64_t heads, std::int64_t key_dim, std::int64_t chunk) {
  StateSpace s;
  s.inner = 64 * heads;
  s.heads = heads;
  s.key_heads = 8;
  s.key_dim = key_dim;
  s.chunk = chunk;
  return s;
}

ScanPass<Plain> pass_of(const StateSpace& s, bool backward) { return scan_pass(Plain{}, scan_kernels(s), backward); }

// 256 heads of 64 channels, 256 numbers of a key, 8 groups, chunks of 128 tokens. For each token and channel 2 numbers
// of states and 128 / 64 x 8 / 256 = 1/16 of scores, which 16 multiply-adds make.
TEST(ScanKernels, OfMamba2AreProductsOfChunks) {
  const StateSpace s = mamba2(256, 256, 128);
  const ScanPass<Plain> forward = pass_of(s, false), backward = pass_of(s, true);
  EXPECT_DOUBLE_EQ(forward.flops.value(), 2.0 * (2 * 256 + 128 + 16));
  EXPECT_DOUBLE_EQ(backward.flops.value(), 2.0 * (5 * 256 + 3 * 128 + 3 * 16));
  EXPECT_DOUBLE_EQ(forward.bytes.value(), 2 * (4 + 4 + 2 + 2) + 8.0 / 16 + 2);
  EXPECT_DOUBLE_EQ(backward.bytes.value(), 2 * (6 * 4 + 5 * 2) + 16.0 / 16 + 7 * 2);
}

TEST(ScanKernels, LongerChunksComputeMoreAndMoveFewerStates) {
  const ScanPass<Plain> narrow = pass_of(mamba2(64, 128, 64), false), wide = pass_of(mamba2(64, 128, 256), false);
  EXPECT_GT(wide.flops, narrow.flops);
  EXPECT_LT(wide.bytes, narrow.bytes);
}

TEST(ScanKernels, TokenByTokenDoTheRecurrence) {
  StateSpace s;
  s.kind = StateSpace::Kind::mamba1;
  s.inner = 4096;
  s.key_dim = 16;
  EXPECT_EQ(pass_of(s, false).flops, 16.0 * scan_work(s).per_cell);
  EXPECT_EQ(pass_of(s, false).bytes, Bytes());
}

// The index scores all complete keys, (0 + 0 + 0 + 1 + 1 + 1 + 1 + 2) / 8 of 4 tokens each, with 64 heads of 128
// values.
TEST(TokenFlops, OfAnIndexAreThoseOfItsCandidates) {
  const Attention a{.heads = 64,
                    .head_dim = 512,
                    .value_dim = 512,
                    .window = 8,
                    .compression = 4,
                    .index_heads = 64,
                    .index_dim = 128,
                    .index_picks = 512};
  EXPECT_EQ(mean_candidates(a, 8, MaskCount::exact), 0.75);
  EXPECT_EQ(mean_keys(a, 8, MaskCount::exact), 4.5 + 0.75);
  EXPECT_EQ(attention_flops(a, 8, MaskCount::exact), Flops(2.0 * 64 * 1024 * 5.25 + 2.0 * 64 * 129 * 0.75));
}

// Every other of 36 layers keeps 128 tokens at most; a layer has 2 x 8 x 64 values a token.
TEST(Cache, OfWindowsIsCapped) {
  EXPECT_EQ(kv_values_per_sequence(model("gpt-oss-120b"), 4096), 18 * 1024 * (4096 + 128));
  EXPECT_EQ(kv_values_per_sequence(model("gpt-oss-120b"), 100), 36 * 1024 * 100);
}

TEST(Cache, OfSharedKeysIsNone) {
  Transformer m = model("llama-3-8b");
  m.decoder.kinds[0].attention->shares_kv = true;
  EXPECT_EQ(kv_values_per_token(m), 0);
}

// Encoder and decoder of one layer without feed-forward, D = 4, two heads of 2. One token more for the encoder: 2 x (64
// of its own projections and 32 of the decoder's keys and values over it), and a key more of 16 FLOP for each pair of
// its tokens (5 x 5 - 4 x 4) and for each of the decoder's three.
TEST(SequenceFlops, TheEncodersTokensCountForThemselves) {
  Transformer m;
  m.d_model = 4;
  m.vocabulary = 16;
  Attention attention;
  attention.heads = attention.kv_heads = 2;
  attention.head_dim = attention.value_dim = 2;
  Layer decoder, encoder;
  decoder.attention = attention;
  attention.causal = false;
  encoder.attention = attention;
  attention.cross = true;
  decoder.cross_attention = attention;
  m.decoder.add(decoder);
  m.encoder.emplace().add(encoder);
  EXPECT_EQ((sequence_flops(m, 3, 5) - sequence_flops(m, 3, 4)).value(), 2.0 * (64 + 32) + 9 * 16 + 3 * 16);
  for (const char* id : {"t5-small", "bart-large", "llama-3-8b"}) {
    const Transformer known = model(id);
    EXPECT_EQ(sequence_flops(known, 128, 128), 128.0 * token_flops(Plain{}, known, 128).forward) << id;
  }
}

// 64 layers of 5120 x 16 cells and 3 past inputs of the convolution.
TEST(Cache, StatesDoNotGrow) {
  const Transformer m = model("mamba-2.8b");
  EXPECT_EQ(kv_values_per_token(m), 0);
  EXPECT_EQ(state_values_per_sequence(m), 64 * (5120 * 16 + 5120 * 3));
}

// Llama 3 8B, all kept: input 4096, norm 4096, q 4096, k and v 2 x 1024, attention 4096, after it 4096, norm 4096,
// 2 x 14336 and 14336, in two bytes; 32 sums in four.
TEST(Activations, OfADenseLayerByHand) {
  const Transformer m = model("llama-3-8b");
  const double all = 2.0 * (7 * 4096 - 4096 + 2048 + 3 * 14336) + 4.0 * 32;
  EXPECT_EQ(kept_bytes_per_token(m, KeepPolicy::none, Dtype::bf16).value(), 32 * all);
  EXPECT_EQ(kept_bytes_per_token(m, KeepPolicy::full, Dtype::bf16).value(), 32 * 2.0 * 4096);
}

TEST(Activations, ShrinkFromPolicyToPolicy) {
  for (const std::string& id : model_ids(catalogue())) {
    const Transformer m = model(id);
    const auto bytes = [&](KeepPolicy policy) { return kept_bytes_per_token(m, policy, Dtype::bf16); };
    EXPECT_GE(bytes(KeepPolicy::none), bytes(KeepPolicy::selective)) << id;
    EXPECT_GE(bytes(KeepPolicy::selective), bytes(KeepPolicy::products)) << id;
    EXPECT_GT(bytes(KeepPolicy::products), bytes(KeepPolicy::full)) << id;
  }
}

// What PEFT prints for Llama 3 8B with rank 16 beside all linear layers, and rank 64 of attention alone by hand.
TEST(Accounting, SharedWeightsAreHeldOnceAndMultipliedInEachLayer) {
  Transformer apart = model("llama-2-7b"), together = apart;
  for (Layer& layer : together.decoder.kinds) layer.shared = SharedBlock{};
  const std::int64_t layer = layer_parameter_counts(apart, apart.decoder.kinds[0]).total;
  const ParameterCounts each = parameter_counts(apart), one = parameter_counts(together);
  EXPECT_EQ(one.total, each.total - 31 * layer);
  EXPECT_EQ(one.active, one.total);
  EXPECT_EQ(one.trained, one.total);
  EXPECT_EQ(one.active_matrix, each.active_matrix);
  EXPECT_EQ(parameter_total(Plain{}, together), static_cast<double>(one.total));
  EXPECT_EQ(kv_values_per_token(together), kv_values_per_token(apart));
  EXPECT_EQ(weight_bytes(together, [](const Weight&) { return NumberFormat(Dtype::bf16); }),
            Bytes(2.0 * static_cast<double>(one.total)));
}

TEST(Accounting, AdaptersAreCountedBesideWhatTheyAdapt) {
  const auto read = catalogue_model("llama-3-8b", hardware::Catalogue::builtin(), "model");
  ASSERT_TRUE(read);
  Transformer model = read->imported.model;
  const ParameterCounts base = parameter_counts(model);
  EXPECT_EQ(base.trained, base.total);
  EXPECT_EQ(base.frozen_matrix, 0);
  model.adapters = Adapters{16, true, true};
  const ParameterCounts all = parameter_counts(model);
  EXPECT_EQ(all.trained, 41'943'040);
  EXPECT_EQ(all.total, base.total + all.trained);
  EXPECT_EQ(all.frozen_matrix, base.active_matrix);
  EXPECT_DOUBLE_EQ(training_flops(model, 8192, 0).value(), 3.0 * sequence_flops(model, 8192, 0).value() -
                                                               8192.0 * 2.0 * static_cast<double>(base.active_matrix));
  model.adapters = Adapters{64, true, false};
  EXPECT_EQ(parameter_counts(model).trained, 32 * 64 * (2 * (4096 + 4096) + 2 * (4096 + 1024)));
}

}  // namespace
}  // namespace assay::model
