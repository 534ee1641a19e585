#include "assay/ask/verbs/scaling/walk.h"

#include <fmt/format.h>

#include "assay/ask/report/reader.h"

namespace assay::verbs::scaling {
namespace {

/// One test; left out where the answer lacks what it compares.
struct Test {
  std::string_view name;
  const report::Value *have, *limit;
  bool at_most = false;  ///< what there is must not exceed what is needed
  std::string holds, fails;
};

}  // namespace

report::Items walk_rows(const report::Members& results) {
  const report::Reader read(results);
  const report::Items& splits = read.rows("splits");
  const report::Value* least = splits.empty() ? nullptr : splits.front().find("min_batch");
  const std::string split = fmt::format("FSDP {} x tensor {}", read.text("best.fsdp"), read.text("best.tensor"));
  const bool one_sequence = read.has("sequences");
  const Test tests[] = {
      {"weights and optimizer states fit on one chip", read.at("memory.replicated.bytes_per_chip"),
       read.at("memory.capacity"), true, "each chip may keep a copy of the model", "states have to be sharded"},
      {"a sequence for every chip", read.at("sequences"), read.at("chips"), false, "chips need not share sequences",
       "chips have to share sequences: split them, or use tensor or pipeline parallelism"},
      {"FSDP over all chips: tokens per chip", read.at("tokens_per_chip"), read.at("fsdp.min_tokens_per_chip"), false,
       one_sequence && read.truth("a_sequence_for_every_chip") ? "FSDP alone is enough"
                                                               : "FSDP alone would be compute-bound",
       "FSDP alone is limited by the network"},
      {"tensor parallelism over all chips: ways", read.at("chips"), read.at("tensor_parallel.max_ways"), true,
       "tensor parallelism alone is compute-bound", "tensor parallelism alone is limited by the network"},
      {"FSDP and tensor parallelism: tokens per chip", read.at("tokens_per_chip"), read.at("mixed.min_tokens_per_chip"),
       false, "both together are compute-bound on ideal axes", "no mix of both is compute-bound"},
      {"the best split on the real axes: batch", read.at("batch"), least, false, split + " is compute-bound",
       split + " is the best, and limited by the network"},
      {"across slices: tokens per slice", read.at("across_slices.tokens_per_slice"),
       read.at("across_slices.min_tokens_per_slice"), false, "slices may be joined by data parallelism",
       "the network between slices limits"},
      {"everything sharded fits", read.at("memory.sharded.bytes_per_chip"), read.at("memory.capacity"), true, "it fits",
       "more chips are needed"}};
  report::Items rows;
  for (const Test& test : tests) {
    if (!test.have || !test.limit) continue;
    const auto have = report::numeric(*test.have), limit = report::numeric(*test.limit);
    const bool holds = limit && (test.at_most ? *have <= *limit : *have >= *limit);  // no limit: nothing is enough
    rows.emplace_back(report::Members{{"test", test.name},
                                      {"have", *test.have},
                                      {"must_be", test.at_most ? "at most" : "at least"},
                                      {"limit", *test.limit},
                                      {"holds", holds},
                                      {"so", holds ? test.holds : test.fails}});
  }
  return rows;
}

}  // namespace assay::verbs::scaling
