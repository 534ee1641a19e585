// Files of benchmarks as rows of figures: what was asked, and how long it took.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/lab/benchmark/writer.h"

namespace assay::benchmark {

/// One run of a server or a training run. Times are seconds, rates per second.
struct BenchmarkRow {
  std::string place;  ///< "bench.jsonl:3"
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> texts;

  std::optional<double> number(std::string_view name) const;
  std::string text(std::string_view name) const;  ///< empty if the file does not say
};

struct BenchmarkFile {
  Writer writer;
  std::vector<BenchmarkRow> rows;
  std::vector<std::string> notes;
};

/// Reads the text by the writer that it is known by. A file of none, a run without requests or with failed ones, and
/// a figure that cannot be are errors; `file` names the place.
Result<BenchmarkFile> read_benchmark(std::string_view text, std::string_view file, const std::vector<Writer>& writers);

}  // namespace assay::benchmark
