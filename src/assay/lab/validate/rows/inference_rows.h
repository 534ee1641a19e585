// Measured prefill and decode: rows of a table as a model, a cluster, a strategy and a load, and as requests of
// `assay serve`.
#pragma once
#include <string>
#include <vector>

#include "assay/lab/validate/rows/csv.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/lab/validate/validation.h"
#include "assay/predict/kernel/software/software.h"
#include "assay/predict/search/serving/search.h"

namespace assay::validate {

/// What a row measured. Times are per step or per output token of a sequence.
enum class InferenceFigure : std::uint8_t {
  first_token,   ///< a batch of prompts on an idle server
  step,          ///< one decode step of a batch at a context
  static_token,  ///< a batch from its prompts to its last token, per output token
  loaded_token,  ///< between two tokens of a sequence under continuous batching
  throughput     ///< output tokens per second of a server at the stated load, or at the largest
};

struct InferenceRow : RowModel {
  std::string id, group, what;  ///< group: source, model, hardware
  std::string source = "own";
  InferenceFigure figure = InferenceFigure::step;
  std::string cluster;  ///< in the CLUSTER grammar
  serving::ServingStrategy strategy;
  lower::Formats formats;
  kernel::EngineSoftware software;
  std::string engine;              ///< as requests name it; empty: none
  kernel::EngineSoftware assumed;  ///< what requests that name the engine assume
  double step_tokens = 0;          ///< most prompt tokens of one step; 0: no limit
  double sequences = 0;            ///< the most that the engine decodes together on a replica; 0: no limit
  double batch = 1;                ///< sequences over all replicas; 0: as many as fit
  std::int64_t prompt = 1, output = 1;
  AnyQuantity measured;  ///< seconds, or tokens per second of a server
  std::size_t fold = held_out;
  bool typical = true;  ///< false: approximate, excluded from fits
};

/// A figure without a prediction.
struct UnansweredFigure : UnansweredCase {
  InferenceFigure figure = InferenceFigure::step;
};
struct InferenceRows {
  std::vector<InferenceRow> rows;
  std::vector<UnansweredFigure> unanswered;
};
/// Our own H200 tables (catalogue/validation/h200_infer.csv, h200_decode.csv); models come from the catalogue.
Result<InferenceRows> read_h200_infer(const CsvTable& table, const hardware::Catalogue& catalogue);
Result<InferenceRows> read_h200_decode(const CsvTable& table, const hardware::Catalogue& catalogue);
/// Tables of published and third-party figures; a row may yield a time to the first token and a time per output token.
Result<InferenceRows> read_inference(const CsvTable& table, const hardware::Catalogue& catalogue);

/// The request that predicts a row.
Question question_of(const InferenceRow& row);

}  // namespace assay::validate
