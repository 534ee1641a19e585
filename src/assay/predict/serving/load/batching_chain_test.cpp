#include "assay/predict/serving/load/batching_chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace assay::serving {
namespace {

// Prompts that cost nothing and one place: an M/M/1 queue. At 0.8 of its load 0.8 are served and 0.64 / 0.2 = 3.2 wait.
TEST(BatchingChain, OnePlaceIsAnMm1Queue) {
  const std::vector<Seconds> nothing{Seconds()};
  const ChainTimes times = solve_chain({Hertz(0.8), nothing, [](double) { return Hertz(1.0); }, 1});
  EXPECT_NEAR(times.sequences, 0.8, 1e-9);
  EXPECT_NEAR(times.full, 0.8, 1e-9);
  EXPECT_NEAR(times.waiting, 3.2, 1e-6);
  EXPECT_NEAR(times.idle, 0.2, 1e-9);
}

// Enough places, and each leaves by itself: a Poisson number of sequences, as in an M/M/oo queue.
TEST(BatchingChain, EnoughPlacesHoldAPoissonNumber) {
  const std::vector<Seconds> nothing{Seconds()};
  const ChainTimes times = solve_chain({Hertz(7.0), nothing, [](double n) { return Hertz(n); }, 60});
  EXPECT_NEAR(times.sequences, 7.0, 1e-6);
  EXPECT_NEAR(times.variance, 7.0, 1e-5);
  EXPECT_NEAR(times.idle, std::exp(-7.0), 1e-9);
  EXPECT_LT(times.waiting, 1e-12);
}

/// Simulates the server event by event on its clock.
ChainTimes played(const ChainServer& server, int arrivals, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto share = [&] { return static_cast<double>(engine() >> 11) * 0x1.0p-53; };
  const auto exponential = [&](Hertz rate) { return -std::log1p(-share()) / rate.value(); };
  ChainTimes sums;
  double now = 0.0, active = 0.0, waiting = 0.0, next = exponential(server.rate);
  int came = 0;
  bool at_work = false;    // on a prompt
  bool from_full = false;  // the batch was full until now
  const auto pass = [&](double until, bool is_full) {
    const double time = until - now;
    sums.sequences += time * active, sums.variance += time * active * active;
    if (is_full) sums.full += time, sums.waiting += time * waiting;
    if (active == 0.0 && waiting == 0.0 && !at_work) sums.idle += time;
    now = until;
  };
  const auto arrive = [&] { waiting += 1.0, ++came, next = now + exponential(server.rate); };
  while (came < arrivals) {
    if (waiting > 0.0 && active < server.most) {
      const bool was_full = from_full;
      from_full = false;
      const auto which = static_cast<std::size_t>(share() * static_cast<double>(server.prompts.size()));
      const double end = now + server.prompts[which].value();
      waiting -= 1.0;
      at_work = true;
      while (next < end) pass(next, was_full), arrive();
      pass(end, was_full);
      at_work = false;
      active += 1.0;
      continue;
    }
    const double leaves = active > 0.0 ? now + exponential(server.leave(active)) : HUGE_VAL;
    if (next < leaves) {
      pass(next, active == server.most);
      arrive();
    } else {
      pass(leaves, active == server.most);
      from_full = active == server.most && waiting > 0.0;
      active -= 1.0;
    }
  }
  sums.sequences /= now, sums.waiting /= now, sums.full /= now, sums.idle /= now;
  sums.variance = sums.variance / now - sums.sequences * sums.sequences;
  return sums;
}

TEST(BatchingChain, AgreesWithTheSameServerPlayedOut) {
  const std::vector<Seconds> prompts{10_ms, 20_ms, 60_ms};
  for (double used : {0.3, 0.6, 0.8, 0.9})
    for (double most : {4.0, 32.0}) {
      // A step of 10 ms and 1 ms for each sequence, 40 of them on average.
      const auto leave = [](double n) { return n / (40.0 * (10_ms + n * 1_ms)); };
      const Hertz rate = used / (30_ms + 1.0 / leave(most));
      const ChainServer server{rate, prompts, leave, most};
      const ChainTimes solved = solve_chain(server), counted = played(server, 250000, 5);
      const auto what = ::testing::Message() << used << " of the load, " << most << " places";
      EXPECT_NEAR(solved.sequences, counted.sequences, 0.02 * counted.sequences) << what;
      EXPECT_NEAR(solved.variance, counted.variance, 0.05 * counted.variance) << what;
      EXPECT_NEAR(solved.idle, counted.idle, 0.03 * counted.idle + 3e-4) << what;
      EXPECT_NEAR(solved.full, counted.full, 0.1 * counted.full + 1e-3) << what;
      EXPECT_NEAR(solved.waiting, counted.waiting, 0.1 * counted.waiting + 0.04) << what;
    }
}

}  // namespace
}  // namespace assay::serving
