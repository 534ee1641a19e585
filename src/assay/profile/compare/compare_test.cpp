#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/profile/compare/ranks.h"
#include "assay/profile/compare/recovered.h"
#include "assay/profile/compare/waterfall.h"
#include "assay/profile/trace/readers.h"

namespace assay::compare {
namespace {

const trace::Vocabulary& vocabulary() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **trace::vocabulary_of(catalogue);
}

/// A trace of our own: operations one after the other on the host, each with kernels on the device.
class Profile {
 public:
  /// The host launches a call each `pace` microseconds.
  explicit Profile(double pace = 10.0) : pace_(pace) {}

  /// A call whose kernel runs from `start` for `duration` microseconds.
  Profile& call(const std::string& name, const std::string& kernel, double start, double duration,
                const std::string& dims = "[]", int stream = 7) {
    ++id_;
    const double host = pace_ * id_ + waited_;  // by default everything is launched before the device starts
    start += 1000.0;
    text_ += fmt::format(
        R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":1,"ts":{},"dur":8,"args":{{"External id":{},"Input Dims":{},"Input type":["c10::BFloat16","c10::BFloat16"]}}}},)",
        name, host, id_, dims);
    text_ += fmt::format(
        R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":1,"args":{{"correlation":{}}}}},)",
        host + 1, id_);
    text_ += fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"correlation":{},"device":0,"stream":{}}}}},)",
        kernel, stream, start, duration, id_, stream);
    return *this;
  }
  /// The host does something else before the next call.
  void wait(double time) { waited_ += time; }
  trace::Trace read() const {
    return *trace::read_profile(fmt::format(R"({{"traceEvents":[{}{{"ph":"i","name":"end","ts":0}}]}})", text_),
                                "test.json", vocabulary());
  }

 private:
  double pace_, waited_ = 0;
  std::string text_;
  int id_ = 0;
};

PredictedLine line(program::Op op, double flops, Seconds time, std::vector<double> elements = {}) {
  PredictedLine out;
  out.block = "layer forward";
  out.text = std::string(program::name(op));
  out.op = op;
  out.flops = Flops(flops);
  out.time = time;
  out.elements = std::move(elements);
  return out;
}

/// norm, two products of one input, activation, product, add; times add up to 100 us with 10 us of overhead.
Prediction feed_forward() {
  Prediction out;
  out.what = "training step";
  out.lines = {line(program::Op::norm, 0, 10_us, {64 * 32}),
               line(program::Op::product, 2.0 * 64 * 32 * 128, 20_us, {64 * 32, 64 * 128}),
               line(program::Op::product, 2.0 * 64 * 32 * 128, 20_us, {64 * 32, 64 * 128}),
               line(program::Op::activate, 0, 10_us, {64 * 128}),
               line(program::Op::product, 2.0 * 64 * 32 * 128, 20_us, {64 * 32, 64 * 128}),
               line(program::Op::add, 0, 10_us, {64 * 32})};
  out.order = {0, 1, 2, 3, 4, 5};
  out.time = 100_us;
  out.overhead = 10_us;
  return out;
}

struct Compared {
  MeasuredStep measured;
  Matching matching;
  Waterfall gap;
};
Compared compared(const trace::Trace& trace, const Prediction& prediction) {
  Compared out;
  out.measured = measured_step(trace, vocabulary(), 0);
  out.matching = match(out.measured, prediction, vocabulary());
  out.gap = waterfall(out.measured, prediction, out.matching, vocabulary());
  return out;
}
std::vector<std::uint32_t> places(const Compared& of, std::size_t call) {
  return of.matching.places(of.matching.calls[call]);
}
const GapItem* item(const Waterfall& gap, GapKind kind, std::string_view group) {
  for (const GapItem& one : gap.items)
    if (one.kind == kind && one.group == group) return &one;
  return nullptr;
}

TEST(Match, EagerKernelsInTheOrderOfTheProgram) {
  Profile profile;
  profile.call("aten::pow", "pow_kernel", 0, 5, "[[64,32],[]]")
      .call("aten::mul", "elementwise_kernel", 5, 5, "[[64,32],[64,1]]")
      .call("aten::mm", "nvjet_a", 10, 15, "[[64,32],[32,128]]")
      .call("aten::silu", "silu_kernel", 25, 4, "[[64,128]]")
      .call("aten::mm", "nvjet_b", 30, 15, "[[64,32],[32,128]]")
      .call("aten::mul", "elementwise_kernel", 45, 6, "[[64,128],[64,128]]")
      .call("aten::mm", "nvjet_c", 51, 15, "[[64,128],[128,32]]")
      .call("aten::add", "elementwise_kernel", 66, 4, "[[64,32],[64,32],[]]")
      .call("aten::arange", "arange_kernel", 70, 2, "[[],[0]]");
  const Compared of = compared(profile.read(), feed_forward());
  const std::vector<std::vector<std::uint32_t>> expected = {{0}, {0}, {1}, {3}, {2}, {3}, {4}, {5}, {}};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(places(of, i), expected[i]) << "call " << i;
  EXPECT_NEAR(of.gap.matched_share, 69.0 / 71.0, 1e-12);
  const GapItem* norms = item(of.gap, GapKind::kernels, "norms");
  ASSERT_TRUE(norms);
  EXPECT_NEAR(norms->measured.in(1_us), 10.0, 1e-9);
  EXPECT_EQ(norms->kernels, 2.0);
  EXPECT_NEAR(item(of.gap, GapKind::extra, "element-wise")->measured.in(1_us), 2.0, 1e-9);
  EXPECT_NEAR(item(of.gap, GapKind::gaps, "")->measured.in(1_us), 1.0, 1e-9);
}

TEST(Match, SignsOfOtherStepsCountLessThanSizes) {
  Profile profile;
  profile.call("aten::pow", "pow_kernel", 0, 5, "[[64,32],[]]")
      .call("aten::mm", "nvjet_a", 10, 15, "[[64,32],[32,128]]")
      .call("aten::mm", "nvjet_b", 25, 15, "[[64,32],[32,128]]")
      .call("aten::pow", "pow_kernel", 40, 5, "[[64,128],[]]")
      .call("aten::tanh", "tanh_kernel", 45, 5, "[[64,128]]")
      .call("aten::mm", "nvjet_c", 51, 15, "[[64,128],[128,32]]");
  const Compared of = compared(profile.read(), feed_forward());
  EXPECT_EQ(places(of, 0), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(places(of, 3), (std::vector<std::uint32_t>{3}));  // of a composed activation, not of a norm
  EXPECT_EQ(places(of, 4), (std::vector<std::uint32_t>{3}));
}

TEST(Match, RowsTellNormsOfHeadsFromNormsOfTheWidth) {
  Prediction prediction = feed_forward();
  prediction.lines.push_back(line(program::Op::norm, 0, 10_us, {64 * 32}));
  prediction.lines[0].width = 32;
  prediction.lines[6].width = 8;
  prediction.order = {6, 0, 1, 2, 3, 4, 5};  // the step of heads is farther from where their kernel runs
  Profile profile;
  profile.call("aten::mm", "nvjet_a", 0, 15, "[[64,32],[32,128]]")
      .call("aten::pow", "pow_kernel", 15, 5, "[[64,4,8],[]]")
      .call("aten::pow", "pow_kernel", 20, 5, "[[64,32],[]]")
      .call("aten::mm", "nvjet_b", 25, 15, "[[64,32],[32,128]]")
      .call("aten::mm", "nvjet_c", 40, 15, "[[64,128],[128,32]]");
  const Compared of = compared(profile.read(), prediction);
  EXPECT_EQ(places(of, 1), (std::vector<std::uint32_t>{0}));  // places are of the order
  EXPECT_EQ(places(of, 2), (std::vector<std::uint32_t>{1}));
}

TEST(Waterfall, StagesOfAPipelineWaitForEachOther) {
  Profile profile;
  profile.call("nccl:recv 0<-1", "ncclDevKernel_SendRecv(a)", 0, 30)
      .call("aten::mm", "nvjet_a", 30, 15, "[[64,32],[32,128]]")
      .call("aten::mm", "nvjet_b", 45, 15, "[[64,32],[32,128]]")
      .call("nccl:recv 0<-1", "ncclDevKernel_SendRecv(a)", 60, 4)
      .call("aten::mm", "nvjet_c", 64, 15, "[[64,128],[128,32]]");
  Prediction prediction = feed_forward();
  prediction.stage = StageOfPrediction{1, 1, 2};
  prediction.time = 130_us;
  prediction.handover = 10_us;
  prediction.bubble = 20_us;
  const Compared of = compared(profile.read(), prediction);
  const GapItem* moved = item(of.gap, GapKind::communication, "sends and receives");
  const GapItem* waited = item(of.gap, GapKind::waiting, "other stages");
  ASSERT_TRUE(moved && waited);
  EXPECT_NEAR(moved->measured.in(1_us), 8.0, 1e-9);  // each as long as the shortest
  EXPECT_NEAR(moved->predicted.in(1_us), 10.0, 1e-9);
  EXPECT_NEAR(waited->measured.in(1_us), 26.0, 1e-9);
  EXPECT_NEAR(waited->predicted.in(1_us), 20.0, 1e-9);
  Seconds sum = of.gap.predicted;
  for (const GapItem& one : of.gap.items) sum += one.difference();
  EXPECT_NEAR((of.gap.measured - sum).in(1_us), 0.0, 1e-6);
}

TEST(Match, FusedKernelsAreSeveralStepsAndMissingOnesDidNotRun) {
  Profile profile;
  profile.call("triton_red_fused_mean_mul_pow_rsqrt_0", "triton_red_fused_mean_mul_pow_rsqrt_0", 0, 6, "[[64,32]]")
      .call("aten::mm", "nvjet_up_gate", 6, 30, "[[64,32],[32,256]]")
      .call("aten::mm", "nvjet_down", 36, 15, "[[64,128],[128,32]]")
      .call("triton_poi_fused_add_1", "triton_poi_fused_add_1", 51, 4, "[[64,32],[64,32]]");
  const Compared of = compared(profile.read(), feed_forward());
  EXPECT_EQ(places(of, 1), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(places(of, 2), (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(places(of, 3), (std::vector<std::uint32_t>{5}));
  EXPECT_NEAR(of.gap.steps[1].measured.in(1_us), 15.0, 1e-9);
  const GapItem* missing = item(of.gap, GapKind::missing, "activations");
  ASSERT_TRUE(missing);
  EXPECT_NEAR(missing->difference().in(1_us), -10.0, 1e-9);
}

TEST(Match, ABiasIsNoReasonNotToBeAProduct) {
  Profile profile;
  profile.call("aten::addmm", "nvjet", 0, 15, "[[128],[64,32],[32,128],[],[]]");
  const Compared of = compared(profile.read(), feed_forward());
  EXPECT_EQ(places(of, 0), (std::vector<std::uint32_t>{1}));
}

TEST(Match, PartsOfAProductAreOneStep) {
  Prediction prediction = feed_forward();
  prediction.order = {0, 1, 5};
  prediction.lines[1].flops = Flops(2.0 * 64 * 32 * 512);
  Profile profile;
  for (int i = 0; i < 4; ++i) profile.call("aten::mm", "nvjet", 10.0 * i, 8, "[[64,32],[32,128]]");
  const Compared of = compared(profile.read(), prediction);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(places(of, i), (std::vector<std::uint32_t>{1}));
}

TEST(Match, WithoutMarksAProfileHoldsAsManyStepsAsItsProducts) {
  Profile profile;
  for (int i = 0; i < 9; ++i) profile.call("aten::mm", "nvjet", 20.0 * i, 10, "[[64,32],[32,128]]");
  const Compared of = compared(profile.read(), feed_forward());
  EXPECT_EQ(of.matching.steps, 3);
  EXPECT_NEAR(of.gap.measured.in(1_us), 170.0 / 3.0, 1e-9);
  EXPECT_NEAR(item(of.gap, GapKind::kernels, "products")->measured.in(1_us), 30.0, 1e-9);
}

TEST(Match, WithoutShapesByClass) {
  Profile profile;
  profile.call("graph", "nvjet_a", 0, 50).call("graph", "loop_add_fusion", 50, 20);
  const Compared of = compared(profile.read(), feed_forward());
  EXPECT_TRUE(of.matching.by_class);
  EXPECT_EQ(of.gap.matched_share, 1.0);
  EXPECT_NEAR(item(of.gap, GapKind::kernels, "products")->difference().in(1_us), -10.0, 1e-9);
  EXPECT_NEAR(item(of.gap, GapKind::kernels, "element-wise and the rest")->difference().in(1_us), -10.0, 1e-9);
}

TEST(Match, CountsOfKernelsTellHowManyStepsTheyAre) {
  Profile profile;
  for (int i = 0; i < 20; ++i)
    profile.call("graph", "nvjet_a", 100.0 * i, 30).call("graph", "loop_add_fusion", 100.0 * i + 40, 40);
  const Compared of = compared(profile.read(), feed_forward());
  ASSERT_TRUE(of.matching.by_class);
  EXPECT_EQ(of.matching.steps, 20);  // by time alone they were 1400 / 90, 16
}

/// Products of which each step of feed_forward() has three, each of which takes 2 us.
Prediction short_products() {
  Prediction out = feed_forward();
  for (PredictedLine& line : out.lines) line.time = 2_us;
  out.time = 22_us;
  return out;
}

TEST(Waterfall, AHostThatIsSlowerThanTheDeviceLeavesItIdle) {
  // 99 kernels of 2 us, started every 30 us and 10 us after their launch: from the second on the device waits 28 us.
  Profile profile(30.0);
  for (int i = 0; i < 99; ++i) profile.call("aten::mm", "nvjet", 30.0 * i - 959.0, 2, "[[64,32],[32,128]]");
  const Compared of = compared(profile.read(), short_products());
  ASSERT_TRUE(of.gap.host);
  EXPECT_EQ(of.matching.steps, 33);
  const GapItem* host = item(of.gap, GapKind::host, "");
  ASSERT_TRUE(host);
  EXPECT_NEAR(host->measured.in(1_us), 98 * 28.0 / 33, 1e-9);
  EXPECT_NEAR(host->predicted.in(1_us), 98 * 28.0 / 33, 1e-6);
}

TEST(Waterfall, TheHostsTimeForAKernelIsThatOfItsKind) {
  // Every third one is prepared for 90 us: on average, launches take half of that.
  Profile profile(30.0);
  for (int i = 0; i < 99; ++i) {
    if (i % 3 == 0) profile.wait(60.0);
    profile.call("aten::mm", i % 3 == 0 ? "nvjet_slow" : "nvjet", 30.0 * i + 60.0 * (i / 3) - 899.0, 2,
                 "[[64,32],[32,128]]");
  }
  const Compared of = compared(profile.read(), short_products());
  const GapItem* host = item(of.gap, GapKind::host, "");
  ASSERT_TRUE(host);
  EXPECT_NEAR(host->predicted / host->measured, 1.0, 1e-6);
}

TEST(Waterfall, PausesOfTheHostAreNoLaunches) {
  Profile profile(30.0);
  for (int i = 0; i < 99; ++i) {
    if (i == 60) profile.wait(5000.0);
    profile.call("aten::mm", "nvjet", 30.0 * i + (i < 60 ? 0.0 : 5000.0) - 959.0, 2, "[[64,32],[32,128]]");
  }
  const Compared of = compared(profile.read(), short_products());
  const GapItem *host = item(of.gap, GapKind::host, ""), *pauses = item(of.gap, GapKind::pauses, "");
  ASSERT_TRUE(host && pauses);
  EXPECT_NEAR(pauses->measured.in(1_us), 5028.0 / 33, 1e-9);
  EXPECT_EQ(pauses->predicted, Seconds(0));
  EXPECT_NEAR(host->measured.in(1_us), 97 * 28.0 / 33, 1e-9);
  EXPECT_NEAR(host->predicted / host->measured, 1.0, 0.02);
}

TEST(Waterfall, AFullQueueStopsTheHostAndNotTheDevice) {
  // 2000 kernels of 40 us, launched every 10 us until 1020 of them wait, and then as fast as they run.
  Profile profile(10.0);
  for (int i = 0; i < 2000; ++i) {
    if (i > 1360) profile.wait(30.0);
    profile.call("aten::mm", "nvjet", 41.6 * i - 980.0, 40, "[[64,32],[32,128]]");
  }
  Prediction prediction = short_products();
  for (PredictedLine& line : prediction.lines) line.time = 40_us;
  const Compared of = compared(profile.read(), prediction);
  ASSERT_TRUE(of.gap.host);
  EXPECT_LT(of.gap.host->forward, 11_us);
  const GapItem* host = item(of.gap, GapKind::host, "");
  EXPECT_TRUE(!host || host->predicted < 1_us);
}

TEST(Measured, EachMomentBelongsToOneCall) {
  Profile profile;
  profile.call("aten::mm", "nvjet", 0, 10, "[[64,32],[32,128]]")
      .call("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum", 5, 15, "[]", 8)
      .call("aten::mul", "elementwise_kernel", 12, 4, "[[64,32]]")
      .call("aten::add", "elementwise_kernel", 25, 5, "[[64,32],[64,32]]");
  const MeasuredStep step = measured_step(profile.read(), vocabulary(), 0);
  ASSERT_EQ(step.calls.size(), 4u);
  const std::int64_t alone[] = {10, 6, 4, 5};  // 10 to 12 and 16 to 20 of the collective
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(step.calls[i].alone, alone[i] * trace::ticks_per_microsecond);
  EXPECT_EQ(step.total, 30 * trace::ticks_per_microsecond);
  EXPECT_EQ(step.other_gaps, 5 * trace::ticks_per_microsecond);
}

TEST(Measured, GapsBeforeLateLaunchesAreTheHosts) {
  Profile profile;
  for (int i = 0; i < 120; ++i) profile.call("aten::mul", "elementwise_kernel", i < 119 ? 0.0 : 400.0, 5, "[[64,32]]");
  const MeasuredStep step = measured_step(profile.read(), vocabulary(), 0);
  EXPECT_EQ(step.host_gaps, 395 * trace::ticks_per_microsecond);  // the last one is launched at 1201, dry since 1005
  EXPECT_EQ(step.other_gaps, 0);
}

TEST(Measured, CollectivesWaitForTheRankThatComesLast) {
  Profile early, late;
  early.call("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum", 0, 30);
  late.call("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum", 20, 10);
  std::vector<trace::RankSummary> ranks;
  const trace::Trace traces[] = {early.read(), late.read()};
  for (const trace::Trace& trace : traces)
    ranks.push_back(trace::rank_summary(trace, vocabulary(), 0, trace::device_events(trace, vocabulary()).at(0)));
  const MeasuredStep step = measured_step(traces[0], vocabulary(), 0, waits_of(compare_ranks(ranks), ranks, 0));
  ASSERT_EQ(step.calls.size(), 1u);
  EXPECT_EQ(step.calls[0].waited, 20 * trace::ticks_per_microsecond);
}

/// Layers of 4 heads of 8 with 2 for keys, 32 wide, 128 wide inside, over 2 x 16 tokens.
Profile two_layers(bool trains, bool predicts = true) {
  Profile profile;
  double at = 0;
  const auto product = [&](const char* dims) { profile.call("aten::mm", "nvjet", at += 10, 8, dims); };
  for (int layer = 0; layer < 2; ++layer) {
    product("[[32,32],[32,32]]");
    product("[[32,32],[32,16]]");
    product("[[32,32],[32,16]]");
    profile.call("aten::_scaled_dot_product_flash_attention", "flash_fwd", at += 10, 8,
                 "[[2,4,16,8],[2,2,16,8],[2,2,16,8],[],[]]");
    product("[[32,32],[32,32]]");
    product("[[32,32],[32,128]]");
    product("[[32,32],[32,128]]");
    product("[[32,128],[128,32]]");
  }
  if (predicts) product("[[32,32],[32,1000]]");
  for (int layer = 0; layer < 2 && trains; ++layer)
    profile.call("aten::_scaled_dot_product_flash_attention_backward", "flash_bwd", at += 10, 8,
                 "[[2,4,16,8],[2,4,16,8],[2,2,16,8],[2,2,16,8]]");
  return profile;
}

TEST(Recover, SizesFromShapes) {
  const auto run = recover(measured_step(two_layers(true).read(), vocabulary(), 0), vocabulary(), "test.json");
  ASSERT_TRUE(run) << run.error().what;
  EXPECT_EQ(run->kind, RecoveredRun::Kind::training);
  EXPECT_EQ(run->batch, 2);
  EXPECT_EQ(run->sequence, 16);
  const RecoveredModel& model = run->model;
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.hidden, 32);
  EXPECT_EQ(model.intermediate, 128);
  EXPECT_EQ(model.heads, 4);
  EXPECT_EQ(model.kv_heads, 2);
  EXPECT_EQ(model.head_dim, 8);
  EXPECT_EQ(model.vocabulary, 1000);
  EXPECT_TRUE(model.gated);
  EXPECT_FALSE(run->recomputes);
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  EXPECT_EQ(command_line(*run, model_argument(model, catalogue), "h200-sxm"),
            R"(assay train '{"model_type":"llama", "hidden_size":32, "intermediate_size":128, "num_hidden_layers":2, )"
            R"("num_attention_heads":4, "num_key_value_heads":2, "vocab_size":1000}' --on h200-sxm:1 )"
            "--batch 2seq --seq 16 --micro-batch 2 --recompute none --offload none --software any --fusion eager "
            "--attention-kernel flash2");
  EXPECT_EQ(run->lacks, (std::vector<std::string>{"the optimizer: no update of weights was found"}));
}

TEST(Recover, WithoutGradientsItIsAPrefill) {
  const auto run = recover(measured_step(two_layers(false).read(), vocabulary(), 0), vocabulary(), "test.json");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->kind, RecoveredRun::Kind::prefill);
}

TEST(Recover, AttentionOfSingleOperations) {
  Profile profile;
  double at = 0;
  const auto call = [&](const char* name, const char* dims) { profile.call(name, "kernel", at += 10, 8, dims); };
  call("aten::mm", "[[32,32],[32,96]]");  // queries, keys and values of 4 heads of 8
  call("aten::bmm", "[[8,16,8],[8,8,16]]");
  call("aten::_softmax", "[[2,4,16,16],[],[]]");
  call("aten::bmm", "[[8,16,16],[8,16,8]]");
  call("aten::mm", "[[32,32],[32,32]]");
  call("aten::mm", "[[32,32],[32,128]]");
  call("aten::mm", "[[32,128],[128,32]]");
  const auto run = recover(measured_step(profile.read(), vocabulary(), 0), vocabulary(), "test.json");
  ASSERT_TRUE(run) << run.error().what;
  EXPECT_TRUE(run->plain);
  EXPECT_EQ(run->batch, 2);
  EXPECT_EQ(run->sequence, 16);
  EXPECT_EQ(run->model.heads, 4);
  EXPECT_EQ(run->model.kv_heads, 4);
  EXPECT_EQ(run->model.head_dim, 8);
  EXPECT_EQ(run->model.hidden, 32);
  EXPECT_EQ(run->model.intermediate, 128);
}

/// A layer of which so much of each head turns: halves of that are negated, and parts are joined.
RecoveredModel turning(std::int64_t part, bool joins) {
  Profile profile;
  double at = 0;
  const auto call = [&](const std::string& name, const std::string& dims) {
    profile.call(name, "kernel", at += 10, 8, dims);
  };
  call("aten::native_layer_norm", "[[2,16,32],[],[32],[32],[]]");
  call("aten::mm", "[[32,32],[32,96]]");
  for (int heads = 0; heads < 2; ++heads) {
    call("aten::neg", fmt::format("[[2,4,16,{}]]", part / 2));
    call("aten::cat", "[[],[]]");
    if (joins) call("aten::cat", "[[],[]]");
  }
  call("aten::_scaled_dot_product_flash_attention", "[[2,4,16,8],[2,4,16,8],[2,4,16,8],[],[]]");
  call("aten::mm", "[[32,32],[32,32]]");
  call("aten::mm", "[[32,32],[32,256]]");
  call("aten::mm", "[[32,128],[128,32]]");
  call("aten::mm", "[[32,32],[32,1000]]");
  call("aten::_scaled_dot_product_flash_attention_backward", "[[2,4,16,8],[2,4,16,8],[2,4,16,8],[2,4,16,8]]");
  const auto run = recover(measured_step(profile.read(), vocabulary(), 0), vocabulary(), "test.json");
  return run ? run->model : RecoveredModel{};
}

TEST(Recover, PartsOfHeadsThatTurn) {
  EXPECT_EQ(turning(4, true).turned, 4);
  EXPECT_EQ(turning(8, true).turned, 8);
  EXPECT_EQ(turning(8, false).turned, 0);
  EXPECT_EQ(turning(4, true).projections, model::JoinedProjection::woven);
  EXPECT_EQ(turning(8, false).projections, model::JoinedProjection::split);
  EXPECT_TRUE(turning(8, false).joined_gate);
}

TEST(Recover, LayersOfPatchesAreNoLanguageModel) {
  const auto run = recover(measured_step(two_layers(true, false).read(), vocabulary(), 0), vocabulary(), "test.json");
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().what.find("no embedding and no head"), std::string::npos) << run.error().what;
  Profile texts = two_layers(true, false);
  texts.call("aten::embedding", "gather_kernel", 900, 8, "[[1000,32],[2,16]]");
  const auto named = recover(measured_step(texts.read(), vocabulary(), 0), vocabulary(), "test.json");
  ASSERT_TRUE(named) << named.error().what;
  EXPECT_EQ(named->model.embedded, 1000);
}

TEST(Recover, WithoutAttentionItIsAnError) {
  Profile profile;
  profile.call("aten::mm", "nvjet", 0, 8, "[[32,32],[32,32]]");
  const auto run = recover(measured_step(profile.read(), vocabulary(), 0), vocabulary(), "test.json");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().where, "test.json");
}

TEST(Recover, SizesOfTheCatalogueHaveItsName) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  RecoveredModel model{.layers = 32,
                       .hidden = 4096,
                       .heads = 32,
                       .kv_heads = 32,
                       .head_dim = 128,
                       .intermediate = 11008,
                       .vocabulary = 32000};
  EXPECT_FALSE(model_argument(model, catalogue).starts_with('{'));
  model.layers = 3;
  EXPECT_TRUE(model_argument(model, catalogue).starts_with(R"({"base":")"));
  model.vocabulary = 0;  // layers alone are those of many models
  EXPECT_TRUE(model_argument(model, catalogue).starts_with(R"({"model_type":")"));
}

RC_GTEST_PROP(Waterfall, PredictedAndItemsAreMeasured, ()) {
  const char* names[] = {"aten::mm", "aten::silu", "aten::pow", "aten::add", "aten::arange", "aten::copy_", "graph"};
  const char* kernels[] = {"nvjet", "elementwise_kernel", "Memcpy DtoD", "ncclDevKernel_AllReduce", "reduce_kernel"};
  const char* shapes[] = {"[[64,32],[32,128]]", "[[64,32],[32,256]]", "[[64,128]]", "[[64,32],[64,32]]", "[]"};
  Profile profile;
  const int calls = *rc::gen::inRange(1, 40);
  for (int i = 0; i < calls; ++i)
    profile.call(names[*rc::gen::inRange(0, 7)], kernels[*rc::gen::inRange(0, 5)], *rc::gen::inRange(0, 500),
                 *rc::gen::inRange(0, 60), shapes[*rc::gen::inRange(0, 5)], *rc::gen::inRange(7, 10));
  Prediction prediction = feed_forward();
  prediction.time = Seconds(*rc::gen::inRange(90, 200) * (1_us).value());
  prediction.communication = Seconds(*rc::gen::inRange(0, 9) * (1_us).value());
  prediction.overhead = prediction.time - 90_us - prediction.communication;
  const trace::Trace trace = profile.read();
  const Compared of = compared(trace, prediction);
  if (of.measured.total == 0) return;
  trace::Ticks sum = of.measured.host_gaps + of.measured.other_gaps;
  for (const MeasuredCall& call : of.measured.calls) sum += call.alone;
  RC_ASSERT(sum == of.measured.total);
  Seconds at = of.gap.predicted;
  for (const GapItem& one : of.gap.items) at += one.difference();
  RC_ASSERT(std::abs((at - of.gap.measured).value()) <= 1e-12 * of.gap.measured.value());
  RC_ASSERT(std::abs(of.gap.residual.value()) <= 1e-12 * of.gap.measured.value());
  RC_ASSERT(of.gap.matched_share >= 0.0 && of.gap.matched_share <= 1.0);
}

}  // namespace
}  // namespace assay::compare
