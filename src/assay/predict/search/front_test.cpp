#include "assay/predict/search/front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace assay::search {
namespace {

bool beats(const FrontPoint& a, const FrontPoint& b) { return a.x <= b.x && a.y <= b.y && (a.x < b.x || a.y < b.y); }

TEST(ParetoFront, KeepsExactlyWhatNothingBeats) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<FrontPoint> points(round % 30);
    for (FrontPoint& p : points) p = {static_cast<double>(random() % 12), static_cast<double>(random() % 12)};
    const auto front = pareto_front(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const bool beaten = std::any_of(points.begin(), points.end(), [&](const auto& p) { return beats(p, points[i]); });
      const bool same = std::any_of(front.begin(), front.end(), [&](std::size_t k) {
        return points[k].x == points[i].x && points[k].y == points[i].y;
      });
      EXPECT_EQ(same, !beaten);
    }
    for (std::size_t k = 1; k < front.size(); ++k) EXPECT_LT(points[front[k - 1]].x, points[front[k]].x);
  }
}

}  // namespace
}  // namespace assay::search
