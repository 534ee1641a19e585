// A predicted step, as a list of kernels in the order in which they run: what measured kernels are matched with.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/predict/serving/point.h"
#include "assay/predict/training/step.h"
#include "assay/program/form/program.h"

namespace assay::compare {

/// One line of a program: a kernel, run so often in a step.
struct PredictedLine {
  std::string block, text;  ///< "layer forward", and the line as --list prints it
  program::Op op = program::Op::product;
  program::Phase phase = program::Phase::forward;  ///< of recomputed work: backward
  bool weight_gradient = false;                    ///< of a product
  Flops flops;                                     ///< of one run, on one device
  std::optional<Dtype> format;                     ///< of a product, where it is known
  Bytes bytes;                                     ///< the same
  std::vector<double> elements;                    ///< of its tensors on one device; empty: not known
  double width = 0;                                ///< last dimension of its largest tensor; 0: not known
  Seconds time;                                    ///< of one run
  Seconds slowed;                                  ///< of that: the lower clock under sustained power
  std::int64_t runs = 1;                           ///< in a step
};

/// The stages of a pipeline that a prediction is of: those from `first` to `last` are alike.
struct StageOfPrediction {
  std::int64_t first = 0, last = 0, stages = 1;
  friend bool operator==(const StageOfPrediction&, const StageOfPrediction&) = default;
};

/// What a request predicts of one step. Kernels and the parts outside of them add up to `time`.
struct Prediction {
  std::string what;  ///< "training step", "decode step", "prefill"
  Seconds time;
  std::vector<PredictedLine> lines;
  std::vector<std::uint32_t> order;        ///< lines as they run
  bool ordered = true;                     ///< false: the order inside of a layer is not known
  Seconds communication;                   ///< exposed
  std::optional<StageOfPrediction> stage;  ///< where there are several
  Seconds handover, bubble;                ///< sends to and receives from other stages, and waiting for them
  Seconds overhead;                        ///< outside of kernels: the host, and what a step costs beyond its kernels
  Seconds launch;                          ///< of each product and attention: the gap before it, as measured alone
};

/// The prediction for a chip that was busy for a short time alone: so much of the clock's fall under power has
/// happened.
void set_clock(double settled, Prediction& prediction);

/// The prediction without gaps before kernels, of which a profile has so much each apart.
Prediction without_gaps(Prediction prediction, Seconds between);

/// The class of a step in comparisons: products, attention, norms, rotations, ...
std::string_view class_of(program::Op op);

/// A training step of a strategy, on each kind of its stages.
Result<std::vector<Prediction>> training_predictions(const training::TrainingQuestion& question, std::int64_t sequence,
                                                     const hardware::Cluster& cluster,
                                                     const training::Strategy& strategy,
                                                     const training::TrainingCost& cost);

/// One step of a server from its listed kernels, and from the same ones without the clock's fall under power.
Prediction serving_prediction(const std::vector<serving::PricedStep>& steps,
                              const std::vector<serving::PricedStep>& at_full_clock, Seconds time, std::string what);

}  // namespace assay::compare
