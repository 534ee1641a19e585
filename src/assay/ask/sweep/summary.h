// What a sweep found: the best requests, those on a front, and a table of one result by two arguments.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assay/ask/sweep/plan.h"
#include "assay/ask/sweep/row.h"
#include "assay/predict/search/front.h"

namespace assay::sweep {

/// A request that stands out.
struct Pick {
  std::string goal;           ///< "lowest step_time.estimate"
  std::string among;          ///< "model llama-3-8b": the best for each value; empty where it is the best of all
  report::Members arguments;  ///< with the verb
  std::string headline;
  std::vector<report::Value> values;  ///< of the goals
};

/// One result by two arguments, in the order in which their values occur.
struct HeatTable {
  HeatMap map;
  std::string among;  ///< as of a pick
  std::vector<std::string> columns, rows;
  std::vector<std::vector<std::optional<double>>> cells;  ///< by row
  std::string unit;
};

/// Takes in one row after the other.
class Summary {
 public:
  explicit Summary(const Plan& plan);

  void add(const Row& row);

  std::vector<Pick> best() const;
  /// By the first goal, best first; of each value of for_each on its own.
  std::vector<Pick> front() const;
  /// Of all requests.
  std::optional<HeatTable> heat_table() const { return table_; }
  /// Of each value of for_each; none where for_each names rows or columns alone.
  const std::vector<HeatTable>& heat_tables() const { return tables_; }
  /// Results that the plan names and no answer has, with names that are near: an error once all rows are in.
  Result<void> check() const;

  std::size_t answered = 0, infeasible = 0, failed = 0;
  /// What was wrong, the first few kinds: how many requests have it, and the first of them.
  struct Fault {
    std::string error, first;
    std::size_t count = 0;
  };
  std::vector<Fault> faults;

 private:
  struct Best {
    double value = 0.0;
    Pick pick;
  };
  /// The values of these arguments: "model llama-3-8b, on h100-sxm".
  static std::string among(const Row& row, const std::vector<std::string>& names);
  void add_best(const Row& row);
  void add_to_front(const Row& row);
  static void add_to_table(const Row& row, HeatTable& table);

  const Plan& plan_;
  std::vector<std::pair<std::string, Best>> best_;
  std::vector<std::pair<search::FrontPoint, Pick>> front_;  ///< so far, in no order
  std::optional<HeatTable> table_;
  std::vector<HeatTable> tables_;
  std::vector<std::string> maps_for_;  ///< for_each, without rows and columns
  std::set<std::string> known_;        ///< paths of numbers
};

}  // namespace assay::sweep
