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
  std::string about = {};      ///< the field that the program has no such choice of
};
std::optional<Refusal> refusal_of(const Target& target, const Settings& plan);
/// Whether the program has what sets a model of this shape apart from plain layers.
bool has_layers_of(const Target& target, const Settings& shape);
/// Whether the program has the model of a plan and runs on its kind of chips, whatever it can do of the rest.
bool runs_model(const Target& target, const Settings& plan);

/// The options of a target that run a plan. What it has no way to say is an error that names the part and what it can
/// say. Options whose value is the program's own default are left out.
Result<std::vector<Line>> lines_of(const Target& target, const Settings& plan);

/// An error where the program would not take these options as they are meant: one that it does not know, or one that
/// is missing and has to be said.
Result<void> check_accepted(const Target& target, const Settings& plan, std::span<const Line> lines);

/// A text with the values of the fields that it names in braces.
std::string filled(std::string text, const Settings& plan);

/// Layers and what takes the place of one at either end of a pipeline, by how a plan splits them; nothing where it does
/// not say.
std::optional<std::string> layer_places(const Settings& plan);

/// How the nodes of this plan find each other; empty where there is one, or nothing to say.
std::string rendezvous_of(const Target& target, const Settings& plan);

/// Options that the program needs for a plan whose values the plan does not know.
std::vector<std::string> open_options(const Target& target, const Settings& plan);

/// An option that a prediction does not use, and why.
struct Unused {
  std::string name, value, why;
  bool is_open = false;  ///< a prediction would use it, could it be told what it means
};
/// What given options mean.
struct Reading {
  Settings plan;
  std::vector<Given> used;
  std::vector<Unused> unused;
  std::vector<std::string> open;  ///< fields whose options have values that only a shell knows
};

/// Reads options of a target; `known` is what the request itself says, and `relations` hold between the fields of a
/// plan. An option that the program does not have, but that is nearly one which would be used, is an error.
Result<Reading> read_lines(const Target& target, std::span<const Given> given, Settings known,
                           std::span<const Relation> relations);

}  // namespace assay::launch
