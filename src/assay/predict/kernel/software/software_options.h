// Options that describe software: their words and what they set. Command lines and files of catalogue/software use the
// same ones.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/result.h"
#include "assay/hardware/calibration.h"
#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::kernel {

/// What training software does.
struct TrainingSoftware {
  numbers::StepSoftware step;
  hardware::AttentionKernel attention = hardware::AttentionKernel::automatic;
  bool flash = true;
  bool overlap = true;  ///< communication overlaps with compute
  bool dropout = false;
  bool copies_per_expert = false;  ///< a token is sent once for each of its experts, not once for each of their nodes
  bool pads_vocabulary = false;    ///< rows of logits are whole cache lines
  bool shared_master = false;      ///< see Optimizer::cast_when_gathered
};

/// How much of a chip's memory a server uses.
struct MemoryShare {
  double share = 1;
  bool of_free = false;  ///< the share is of what all but caches leave free, and caches take it
};
/// "0.9" or "0.9 of free".
Result<MemoryShare> parse_memory_share(std::string_view text, std::string_view where);
std::string text_of(MemoryShare memory);

/// What an inference engine does.
struct EngineSoftware {
  numbers::ServingSoftware step;
  hardware::AttentionKernel attention = hardware::AttentionKernel::automatic;  ///< of prompts
  bool pads_vocabulary = false;
  bool no_windows = false;  ///< attends to all tokens, where layers of the model see a window
  std::optional<Dtype> kv;  ///< of the cache; nothing: as weights and request say
  MemoryShare memory{};
  numbers::RequestPath path;
};

/// An option: a flag that is "yes" or "no", one of some words, or a number (neither).
struct SoftwareOption {
  std::string_view name;
  std::string_view words;
};
std::span<const SoftwareOption> training_software_options();
std::span<const SoftwareOption> engine_software_options();

/// What plans of training software may be: each rule allows a list of words, separated by blanks. The words that a rule
/// allows. The error lists those there are.
Result<std::vector<std::string>> plan_rule_words(std::string_view rule, std::string_view value, std::string_view where);

/// Sets what an option means. The error lists the words.
Result<void> set_software(TrainingSoftware& software, std::string_view option, std::string_view value,
                          std::string_view where);
Result<void> set_software(EngineSoftware& software, std::string_view option, std::string_view value,
                          std::string_view where);

}  // namespace assay::kernel
