// The parts of `assay calibrate` besides the answer itself.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/lab/benchmark/benchmark_file.h"

namespace assay::verbs::calibrate {

/// A measured figure, and where the answer to its request has the predicted one.
struct ComparedFigure {
  std::string part, path;
  AnyQuantity measured;
};

/// A row as the request that predicts it.
struct AskedRow {
  std::string place;
  Request request;
  std::vector<ComparedFigure> figures;
  std::string left_out;  ///< why some of its figures are not compared; empty: all are
};

/// The requests of the rows: what their files say, and what this request adds. All that neither says is one error.
Result<std::vector<AskedRow>> asked_rows(const Request& request, const Context& context,
                                         const std::vector<benchmark::BenchmarkFile>& files);

}  // namespace assay::verbs::calibrate
