#include "assay/predict/serving/load/traffic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::serving {
namespace {

std::vector<FleetRequest> all_of(const TrafficPlan& plan) {
  std::vector<FleetRequest> out;
  for (Traffic traffic(plan); traffic.next() != Traffic::never;) {
    EXPECT_TRUE(out.empty() || traffic.next() >= out.back().arrival);
    out.push_back(traffic.take());
    EXPECT_EQ(out.back().id, std::ssize(out) - 1);
  }
  return out;
}

RequestTrace trace_of(std::initializer_list<double> times) {
  RequestTrace trace;
  for (const double time : times) {
    TracedRequest request;
    request.prompt = 100 + std::ssize(trace.requests), request.output = 10, request.arrival = Seconds(time);
    request.session = std::ssize(trace.requests) / 2;
    trace.requests.push_back(request);
  }
  trace.span = *trace.requests.back().arrival;
  return trace;
}

// Gaps of a gamma distribution with shape k have a squared variation of 1 / k.
TEST(Traffic, BurstsHaveTheRateAndTheVariationAsked) {
  for (const double shape : {0.3, 1.0, 4.0}) {
    TrafficPlan plan;
    plan.rate = Hertz(5.0), plan.burstiness = shape, plan.requests = 40000;
    const auto requests = all_of(plan);
    double sum = 0.0, squares = 0.0;
    for (std::size_t i = 1; i < requests.size(); ++i) {
      const double gap = requests[i].arrival - requests[i - 1].arrival;
      sum += gap, squares += gap * gap;
    }
    const double n = static_cast<double>(requests.size() - 1), mean = sum / n;
    EXPECT_NEAR(mean, 0.2, 0.2 * 4.0 / std::sqrt(shape * n)) << shape;
    EXPECT_NEAR(squares / n / (mean * mean) - 1.0, 1.0 / shape, 0.08 / shape) << shape;
  }
}

TEST(Traffic, ATraceComesInItsTimes) {
  const RequestTrace trace = trace_of({0.0, 1.0, 1.0, 4.0});
  TrafficPlan plan;
  plan.trace = &trace, plan.stretch = 2.0;
  const auto requests = all_of(plan);
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[3].arrival, 8.0);
  EXPECT_EQ(requests[3].prompt, 103);
  EXPECT_EQ(requests[2].session, requests[3].session);
}

TEST(Traffic, ScaledTracesHaveCopiesThatShareNothing) {
  const RequestTrace trace = trace_of({0.0, 1.0, 2.0, 3.0});
  TrafficPlan plan;
  plan.trace = &trace, plan.scale = 3.0;
  const auto requests = all_of(plan);
  ASSERT_EQ(requests.size(), 12U);
  EXPECT_LT(requests[2].arrival, 1.0);
  for (const FleetRequest& one : requests) EXPECT_EQ(one.session / 4, one.copy);
  plan.scale = 0.5, plan.seed = 3;
  EXPECT_LT(all_of(plan).size(), 4U);
}

TEST(Traffic, TheSameSeedMakesTheSameRequestsAtAnyRate) {
  TrafficPlan plan;
  plan.prompts = *parse_lengths("lognormal:1", 500, "test"), plan.outputs = Lengths::fixed(10);
  plan.rate = Hertz(1.0), plan.requests = 100;
  const auto slow = all_of(plan);
  plan.scale = 2.0;
  const auto fast = all_of(plan);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    EXPECT_EQ(slow[i].prompt, fast[i].prompt);
    EXPECT_NEAR(slow[i].arrival, 2.0 * fast[i].arrival, 1e-9);
  }
}

// Two sessions of two requests: a client goes through one, thinks for 5 s in between, and takes the other.
TEST(Traffic, ClientsGoThroughSessionsThatSayHowLongTheyThought) {
  RequestTrace trace = trace_of({0.0, 1.0, 2.0, 3.0});
  trace.requests[1].think = trace.requests[3].think = 5_s;
  TrafficPlan plan;
  plan.trace = &trace, plan.clients = 1;
  Traffic traffic(plan);
  double at = 0.0;
  for (const double think : {0.0, 5.0, 0.0, 5.0}) {
    const FleetRequest request = traffic.take();
    EXPECT_EQ(request.arrival, at + think);
    EXPECT_EQ(request.session, request.id / 2);
    traffic.ended(request, at = request.arrival + 1.0);
  }
  EXPECT_EQ(traffic.next(), Traffic::never);
}

TEST(Traffic, ClientsWaitForTheirAnswers) {
  TrafficPlan plan;
  plan.clients = 2, plan.requests = 3;
  Traffic traffic(plan);
  EXPECT_EQ(traffic.take().arrival, 0.0);
  EXPECT_EQ(traffic.take().arrival, 0.0);
  EXPECT_EQ(traffic.next(), Traffic::never);
  traffic.ended({}, 7.0);
  EXPECT_EQ(traffic.take().arrival, 7.0);
  traffic.ended({}, 8.0);
  EXPECT_EQ(traffic.next(), Traffic::never);  // three were asked for
}

}  // namespace
}  // namespace assay::serving
