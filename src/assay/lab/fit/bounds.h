// Fitted numbers beside the ranges that they were fitted in. A number at its bound is a sign that the model lacks
// something, or that the number is fitted where no row can tell it.
#pragma once
#include <string>
#include <vector>

#include "assay/hardware/catalogue.h"

namespace assay::validate {

/// A number of a fitted file that has a range. Texts are as in the files.
struct RangedNumber {
  std::string file, name;  ///< "calibration/hopper.toml", "matmul.fill"
  std::string range;       ///< "fits/kernels.toml: matmul.fill"
  std::string value, low, high;
  std::string bound;  ///< the one that it is at; empty: none
};

/// All numbers of calibrations, harnesses and whole steps that have a range in fits/ or families/, except those that a
/// family takes over from another.
Result<std::vector<RangedNumber>> ranged_numbers(const hardware::Catalogue& catalogue);

/// Those at a bound: nearer to it than a thousandth of the range, in logarithms. A number at its start was not fitted,
/// or stays there because nothing moves it; 0 is the absence of what the number describes.
Result<std::vector<RangedNumber>> numbers_at_bounds(const hardware::Catalogue& catalogue);

}  // namespace assay::validate
