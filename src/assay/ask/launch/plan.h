// A plan for a target: the options that run it, and the plan that given options mean.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/launch/document.h"
#include "assay/ask/launch/target.h"
#include "assay/base/result.h"

namespace assay::launch {

/// What a target cannot run of a plan, and what it can.
struct Refusal {
  std::string what, hint;
  std::vector<Pairs> changes;  ///< fields and values that it could run instead, the nearest first
};
std::optional<Refusal> refusal_of(const Target& target, const Settings& plan);

/// The options of a target that run a plan. What it has no way to say is an error that names the part and what it can
/// say. Options whose value is the program's own default are left out.
Result<std::vector<Line>> lines_of(const Target& target, const Settings& plan);

/// An option that a prediction does not use, and why.
struct Unused {
  std::string name, value, why;
};
/// What given options mean.
struct Reading {
  Settings plan;
  std::vector<Given> used;
  std::vector<Unused> unused;
};

/// Reads options of a target; `known` is what the request itself says, and `relations` hold between the fields of a
/// plan. An option that the program does not have, but that is nearly one which would be used, is an error.
Result<Reading> read_lines(const Target& target, std::span<const Given> given, Settings known,
                           std::span<const Relation> relations);

}  // namespace assay::launch
