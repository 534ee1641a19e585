#include "assay/profile/compare/ranks.h"

#include <gtest/gtest.h>

#include "assay/profile/trace/readers.h"
#include "assay/testing/catalogue.h"

namespace assay::compare {
namespace {

using trace::CollectiveSequence;
using trace::Doing;
using trace::RankSummary;

const trace::Vocabulary& beside_vocabulary() { return **trace::vocabulary_of(testing::catalogue()); }

/// A rank with calls of so many microseconds, and what it did before each.
RankSummary rank(std::int64_t number, std::vector<std::pair<int, std::array<float, trace::doing_kinds>>> calls,
                 const std::string& group = "0") {
  RankSummary out;
  out.rank = number;
  CollectiveSequence& sequence = out.collectives.emplace_back();
  sequence.kind = "all-reduce";
  sequence.group = group;
  std::uint32_t event = 0;
  for (const auto& [microseconds, before] : calls)
    sequence.calls.push_back({event++, microseconds * trace::ticks_per_microsecond, before});
  return out;
}

double cause(const RankDelay& delay, Doing doing) { return delay.causes[static_cast<std::size_t>(doing)].in(1_us); }

// Ranks 0 and 2 wait 90 us for rank 1 in the second call, whose host was 100 us late while it computed 10 us less.
TEST(Ranks, TheRankThatCameLastIsWaitedForByWhatItDidLonger) {
  const RankComparison of = compare_ranks({rank(0, {{10, {}}, {100, {50e-6f, 0, 0, 0, 0}}}),
                                           rank(1, {{10, {}}, {10, {40e-6f, 0, 0, 100e-6f, 0}}}),
                                           rank(2, {{10, {}}, {100, {50e-6f, 0, 0, 0, 0}}})});
  EXPECT_NEAR(of.ranks[1].held.in(1_us), 90.0, 1e-9);
  EXPECT_NEAR(of.ranks[1].waits.in(1_us), 0.0, 1e-9);
  EXPECT_NEAR(of.ranks[0].waits.in(1_us), 90.0, 1e-9);
  EXPECT_NEAR(cause(of.ranks[1], Doing::late_host), 90.0, 1e-3);
  EXPECT_NEAR(cause(of.ranks[1], Doing::computation), 0.0, 1e-3);
  EXPECT_NEAR(of.collectives[0].moving.in(1_us), 20.0, 1e-9);
  EXPECT_NEAR(of.collectives[0].largest_skew.in(1_us), 90.0, 1e-9);
  EXPECT_EQ(waited_for(of, 1_us), std::size_t{1});
  EXPECT_FALSE(waited_for(of, 1_ms));
}

TEST(Ranks, WhatNothingInTheProfileExplainsIsNotGuessed) {
  const RankComparison of = compare_ranks({rank(0, {{100, {}}}), rank(1, {{10, {}}})});
  EXPECT_NEAR(of.ranks[1].unexplained.in(1_us), 90.0, 1e-9);
}

TEST(Ranks, WhoWaitsInTurnHasNoStraggler) {
  const RankComparison of = compare_ranks({rank(0, {{100, {}}, {10, {}}}), rank(1, {{10, {}}, {90, {}}})});
  EXPECT_FALSE(waited_for(of, 1_us));
}

TEST(Ranks, GroupsDoNotWaitForEachOther) {
  const RankComparison of = compare_ranks({rank(0, {{100, {}}}, "a"), rank(1, {{10, {}}}, "b")});
  EXPECT_EQ(of.ranks[0].waits, Seconds(0));
  EXPECT_EQ(of.collectives.size(), 2u);
}

TEST(Ranks, ProfilesThatWereCutOffAreLeftOut) {
  const RankComparison of =
      compare_ranks({rank(0, {{30, {}}, {30, {}}}), rank(1, {{10, {}}, {10, {}}}), rank(2, {{1, {}}})});
  EXPECT_EQ(of.collectives[0].ranks, 2u);
  EXPECT_NEAR(of.collectives[0].moving.in(1_us), 20.0, 1e-9);
}

// An all-reduce of 2^20 bf16 over 4 ranks moves 2 x 3/4 of 2 MiB to each device.
TEST(Ranks, CollectivesHaveTheBytesOfTheirArguments) {
  const std::string text = R"({"distributedInfo": {"rank": 3, "world_size": 4}, "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 50, "args": {"device": 0}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 8, "ts": 170, "dur": 30, "args":
  {"device": 0, "Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576, "Group size": 4,
   "dtype": "BFloat16", "Process Group Name": "7", "Process Group Ranks": "[0, 1, 2, 3]"}}]})";
  const trace::Trace read = *trace::read_kineto(text, "rank3.json", beside_vocabulary());
  const auto events = trace::device_events(read, beside_vocabulary());
  const RankSummary summary = trace::rank_summary(read, beside_vocabulary(), 0, events.at(0));
  ASSERT_EQ(summary.collectives.size(), 1u);
  const CollectiveSequence& sequence = summary.collectives[0];
  EXPECT_EQ(sequence.kind, "all-reduce");
  EXPECT_EQ(sequence.devices, 4);
  EXPECT_EQ(sequence.last_rank, 3);
  EXPECT_EQ(sequence.bytes, 2_MiB);
  EXPECT_EQ(sequence.moved, 1.5 * 2_MiB);
  EXPECT_NEAR(sequence.calls[0].seconds_before[static_cast<std::size_t>(Doing::computation)], 50e-6, 1e-9);
  EXPECT_NEAR(sequence.calls[0].seconds_before[static_cast<std::size_t>(Doing::idle)], 20e-6, 1e-9);
}

}  // namespace
}  // namespace assay::compare
