// Stages that run as fast as they can or one long before the other: nothing is received out of order, and what is said
// to have arrived has.
#include "assay/engine/cuda/stage_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "assay/base/index.h"

namespace assay::engine {
namespace {

using clock::PipelineSchedule;

model::Transformer layers_alone(int layers) {
  model::Transformer m;
  model::Layer layer;
  layer.attention.emplace();
  for (int i = 0; i < layers; ++i) m.decoder.add(layer);
  return m;
}

/// Runs all stages, each as far as it gets before the next in `turns` does, and checks every message.
void expect_arrivals(const StageParts& parts, const std::vector<SentMessage>& messages,
                     const std::vector<std::int64_t>& turns) {
  const std::int64_t stages = parts.shape().stages;
  std::vector<std::int64_t> done(at(stages), 0), ends;
  for (std::int64_t stage = 0; stage < stages; ++stage) ends.push_back(std::ssize(parts.order(stage)));
  const auto may_run = [&](std::int64_t stage) {
    for (const SentMessage& one : messages)
      if (one.to == stage && one.received_before == done[at(stage)] && done[at(one.from)] <= one.sent_after)
        return false;
    return done[at(stage)] < ends[at(stage)];
  };
  for (bool works = true; works;) {
    works = false;
    for (const std::int64_t stage : turns)
      while (may_run(stage)) {
        for (const SentMessage& one : messages)
          if (one.from == stage && one.arrived_before == done[at(stage)]) {
            EXPECT_GT(done[at(one.to)], one.received_before) << "sent by " << stage << " after " << one.sent_after;
          }
        ++done[at(stage)];
        works = true;
      }
  }
  EXPECT_EQ(done, ends) << "stages wait for each other";
}

TEST(StageMessages, ArriveInOrderAndBeforeTheirArraysAreUsedAgain) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved, PipelineSchedule::zb_h1,
        PipelineSchedule::zb_h2, PipelineSchedule::zb_v, PipelineSchedule::dualpipe})
    for (const std::int64_t stages : {2, 4}) {
      const bool straight = schedule == PipelineSchedule::gpipe || schedule == PipelineSchedule::one_f_one_b ||
                            schedule == PipelineSchedule::zb_h1 || schedule == PipelineSchedule::zb_h2;
      const StageParts parts(layers_alone(16), {schedule, stages, 8, straight ? 1 : 2}, 8);
      const std::vector<SentMessage> messages = stage_messages(parts, 1);
      SCOPED_TRACE(fmt::format("{} stages of {}", stages, clock::schedule_name(schedule)));
      std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> last;  // by channel
      std::int64_t early = 0;
      for (const SentMessage& one : messages) {
        EXPECT_GE(one.received_before, last[std::pair(one.from, one.to)]);
        last[std::pair(one.from, one.to)] = one.received_before;
        early += one.arrived_before < std::ssize(parts.order(one.from)) ? 1 : 0;
      }
      EXPECT_GT(early, std::ssize(messages) / 4) << "arrays wait for the end of the step";
      expect_arrivals(parts, messages,
                      stages == 2 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{0, 1, 2, 3});
      expect_arrivals(parts, messages,
                      stages == 2 ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{3, 2, 1, 0});
    }
}

TEST(StageMessages, OneStageSendsNothing) {
  const StageParts parts(layers_alone(4), {}, 4);
  EXPECT_TRUE(stage_messages(parts, 1).empty());
  EXPECT_TRUE(stage_channels(parts, 1).empty());
}

}  // namespace
}  // namespace assay::engine
