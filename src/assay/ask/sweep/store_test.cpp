#include "assay/ask/sweep/store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

#include "assay/ask/sweep/claims.h"
#include "assay/ask/sweep/runner.h"
#include "assay/ask/sweep/summary.h"
#include "assay/ask/sweep/tables.h"
#include "assay/testing/test_directory.h"

namespace assay::sweep {
namespace {

std::string request_text(int i) { return fmt::format(R"({{"verb":"train","arguments":{{"batch":"{}"}}}})", i); }

std::vector<std::string> request_texts(int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(request_text(i));
  return out;
}

/// An answer that says which request it is to.
Row test_answer(const std::string& request) {
  Row row = *read_row(fmt::format(R"({{"request":{},"headline":"h, \"q\"","outcome":"ok"}})", request));
  row.results = {{"time", Seconds(std::stod(row.argument("batch")))}, {"fits", true}};
  return row;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(SweepRow, ReadsBackAsItWas) {
  const Row row = test_answer(request_text(7));
  const auto again = read_row(line_of(row));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->request, row.request);
  EXPECT_EQ(again->number("time"), 7.0);
  EXPECT_EQ(line_of(*again), line_of(row));
  const std::string line = line_of(row);
  for (std::size_t length = 0; length + 2 < line.size(); ++length)
    EXPECT_FALSE(read_row(std::string_view(line).substr(0, length))) << length;
}

TEST(SweepStore, GoesOnWhereAKilledProcessStopped) {
  const testing::TestDirectory directory;
  const std::string path = directory.path();
  const auto requests = request_texts(100);
  {
    auto store = Store::open(path, "me\n", 0);
    ASSERT_TRUE(store);
    for (int i = 0; i < 40; ++i) ASSERT_TRUE((*store)->add(test_answer(requests[static_cast<std::size_t>(i)])));
  }
  std::ofstream(path + "/rank-0.jsonl", std::ios::app) << R"({"request":{"verb":"tr)";  // cut short by a kill
  std::map<std::string, int> asked;
  std::mutex guard;
  const auto ask = [&](const std::string& request) {
    const std::lock_guard held(guard);
    ++asked[request];
    return test_answer(request);
  };
  auto store = Store::open(path, "me\n", 0);
  ASSERT_TRUE(store);
  const auto count = run(requests, ask, **store, 2, {});
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, 60u);
  EXPECT_EQ(asked.size(), 60u);
  EXPECT_FALSE(asked.contains(requests[39]));
  ASSERT_TRUE((*store)->finish(requests));
  std::string expected;
  for (const std::string& request : requests) expected += line_of(test_answer(request));
  EXPECT_EQ(content(path + "/rows.jsonl"), expected);
  EXPECT_FALSE(std::filesystem::exists(path + "/rank-0.jsonl"));
}

TEST(SweepStore, RefusesRowsOfAnotherVersionAndASecondWriter) {
  const testing::TestDirectory directory;
  const auto first = Store::open(directory.path(), "me\n", 0);
  ASSERT_TRUE(first);
  const auto second = Store::open(directory.path(), "me\n", 0);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().what.find("another process is writing"), std::string::npos);
  const auto other = Store::open(directory.path(), "you\n", 1);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("were answered by me, and this is you"), std::string::npos);
}

TEST(SweepClaims, EveryRequestGoesToOneRank) {
  for (const int ranks : {1, 2, 3, 8})
    for (const std::size_t count : {0u, 1u, 7u, 1000u}) {
      const testing::TestDirectory directory;
      std::vector<Claims> all;
      for (int rank = 0; rank < ranks; ++rank) all.emplace_back(directory.path(), Ranks{rank, ranks, "job 1"}, count);
      std::vector<int> times(count);
      std::mt19937 random(static_cast<unsigned>(count));
      for (std::vector<bool> done(all.size()); std::find(done.begin(), done.end(), false) != done.end();) {
        const std::size_t rank = random() % all.size();
        const auto part = all[rank].next();
        done[rank] = !part;
        for (std::size_t i = part ? part->first : 0; part && i < part->second; ++i) ++times[i];
      }
      EXPECT_EQ(times, std::vector<int>(count, 1));
    }
}

TEST(SweepTables, HoldEveryRow) {
  const testing::TestDirectory directory;
  auto store = Store::open(directory.path() + "/rows", "me\n", 0);
  ASSERT_TRUE(store);
  const auto requests = request_texts(3);
  Columns columns;
  for (const std::string& request : requests) {
    const Row row = test_answer(request);
    ASSERT_TRUE((*store)->add(row));
    columns.add(row);
  }
  ASSERT_TRUE((*store)->finish(requests));
  const std::string csv = directory.path() + "/rows.csv";
  ASSERT_TRUE(write_csv(csv, **store, requests, columns));
  EXPECT_EQ(content(csv),
            "arg.verb,arg.batch,outcome,headline,error,time [s],fits\n"
            "train,0,ok,\"h, \"\"q\"\"\",,0,yes\n"
            "train,1,ok,\"h, \"\"q\"\"\",,1,yes\n"
            "train,2,ok,\"h, \"\"q\"\"\",,2,yes\n");
}

TEST(SweepSummary, FindsWhatTryingAllPairsFinds) {
  Plan plan;
  plan.front = {{"lowest x", "x", false}, {"highest y", "y", true}};
  plan.best = {{"highest y", "y", true}};
  plan.for_each = {"batch"};
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Summary summary(plan);
    std::map<std::string, std::vector<std::pair<double, double>>> points;
    std::map<std::string, double> best;
    for (int i = 0; i < 30; ++i) {
      const double x = static_cast<double>(random() % 10), y = static_cast<double>(random() % 10);
      Row row = test_answer(request_text(i % 4));
      row.results = {{"x", x}, {"y", y}};
      summary.add(row);
      const std::string among = fmt::format("batch {}", i % 4);
      points[among].emplace_back(x, y);
      best[among] = std::max(best.contains(among) ? best[among] : y, y);
    }
    std::set<std::tuple<std::string, double, double>> expected, found;
    for (const auto& [among, own] : points)
      for (const auto& [x, y] : own)
        if (std::none_of(own.begin(), own.end(), [x_ = x, y_ = y](const auto& other) {
              return other.first <= x_ && other.second >= y_ && (other.first < x_ || other.second > y_);
            }))
          expected.insert({among, x, y});
    for (const Pick& pick : summary.front())
      found.insert({pick.among, *report::numeric(pick.values[0]), *report::numeric(pick.values[1])});
    EXPECT_EQ(found, expected);
    const std::vector<Pick> picks = summary.best();
    EXPECT_EQ(picks.size(), 4u);
    for (const Pick& pick : picks) EXPECT_EQ(*report::numeric(pick.values[0]), best[pick.among]);
  }
}

}  // namespace
}  // namespace assay::sweep
