// Fits the few numbers of a deployment to its own rows: those that the rows determine, with their uncertainty.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"

namespace assay::benchmark {

/// A number that may be fitted, as a factor of what is assumed.
struct DeploymentNumber {
  std::string key;
  double within = 2;  ///< four in five deployments are within this factor: what is known before anything is measured
};

/// Those of a verb, serving or training: catalogue/fits/deployment.toml.
Result<std::vector<DeploymentNumber>> deployment_numbers(const hardware::Catalogue& catalogue, std::string_view table);

/// log(measured / predicted) of every figure of the rows, nothing where a row has none, with the numbers at these
/// factors.
using Misfits = std::vector<std::vector<double>>;
using PredictAt = std::function<Result<Misfits>(const std::vector<double>& factors)>;

struct FittedNumber {
  double factor = 1;
  double spread = 1;  ///< four in five times the factor is within this one of it
  bool determined = false;
};

struct DeploymentFit {
  std::vector<FittedNumber> numbers;
  Misfits before, after;               ///< of all rows, as assumed and as fitted
  std::optional<Misfits> of_held_out;  ///< each row by a fit without it; nothing for a single row
};

/// The most probable factors, given that four in five deployments are within the numbers' own: least squares of the
/// misfits, where times are sums in which each number has its share; figures far off the others count less (Huber). A
/// number is determined where its uncertainty becomes at most half of what it was before; one that is not stays as it
/// is assumed, the least determined first.
Result<DeploymentFit> fit_deployment(const std::vector<DeploymentNumber>& numbers, const PredictAt& predict);

}  // namespace assay::benchmark
