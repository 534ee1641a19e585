#include "assay/predict/kernel/software/software_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"

namespace assay::kernel {
namespace {

constexpr std::string_view free_suffix = " of free";

constexpr std::string_view flag_words = "yes|no";

constexpr SoftwareOption training_options[] = {{"fusion", "fused|compiled|eager|xla"},
                                               {"loss", "fused|compiled|eager"},
                                               {"attention-kernel", "auto|flash1|flash2|cudnn|math"},
                                               {"explicit-mask", flag_words},
                                               {"plain-attention", flag_words},
                                               {"graphs", flag_words},
                                               {"fused-experts", flag_words},
                                               {"drop-tokens", flag_words},
                                               {"tensor-overlap", "all|backward|none"},
                                               {"no-expert-overlap", flag_words},
                                               {"dispatch", "node|expert"},
                                               {"contiguous-context", flag_words},
                                               {"no-overlap", flag_words},
                                               {"dropout", flag_words},
                                               {"padded-vocabulary", flag_words},
                                               {"unfused-update", flag_words},
                                               {"optimizer", "fp32|shared"}};

constexpr SoftwareOption engine_options[] = {{"fusion", "fused|compiled|eager"},
                                             {"attention-kernel", "auto|flash2|cudnn"},
                                             {"graphs", flag_words},
                                             {"scheduler", "loop|native|python|ahead|ahead-native"},
                                             {"cache-kernel", "matrix|vector|unsplit|unsplit-matrix|copies"},
                                             {"expert-kernel", "library|blocks|best-blocks"},
                                             {"all-reduce", "one-shot|library"},
                                             {"padded-vocabulary", flag_words},
                                             {"no-windows", flag_words},
                                             {"kv", "bf16|fp8"},
                                             {"memory-share", ""},
                                             {"front-end", ""},
                                             {"tokenising", ""},
                                             {"delivery", ""},
                                             {"vocabulary-sort", ""},
                                             {"steps-ahead", "0|1"}};

constexpr SoftwareOption plan_rules[] = {
    {"schedules", "none|gpipe|1f1b|interleaved|zb-h1|zb-h2|zb-v|dualpipe"},
    {"layers", "even|ends|layout|any"},
    {"tensor", "none|key-heads|copies|any"},
    {"vocabulary", "even|padded"},
    {"residual", "replicated|sequence|model"},
    {"residual-with-experts", "replicated|sequence|model"},
    {"fsdp", flag_words},
    {"fsdp-with-stages", flag_words},
    {"hybrid", flag_words},
    {"zero", "0|1|2|3"},
    {"zero-with-stages", "0|1|2|3"},
    {"zero-with-fsdp", "0|1|2|3"},
    {"context", "none|ring|all-to-all"},
    {"experts", "none|data|tensor|context|whole-tensor|whole-context|sharded"},
    {"recompute", "none|element-wise|selective|feed-forward|operators|products|projections|full"},
    {"offload", "none|optimizer|activations|both"},
    {"order", ""}};

/// The place of a word in the list of its option.
Result<std::size_t> word_index(std::span<const SoftwareOption> options, std::string_view option, std::string_view value,
                               std::string_view where) {
  std::vector<std::string> names;
  for (const SoftwareOption& known : options) {
    names.emplace_back(known.name);
    if (known.name != option) continue;
    if (known.words.empty()) return std::size_t{0};
    const std::vector<std::string> words = split(known.words, '|');
    const auto at = std::find(words.begin(), words.end(), value);
    if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
    return fail(std::string(where), fmt::format("{} is none of {}", in_quotes(value), join(words, ", ")),
                suggestion(value, words), Error::Kind::usage);
  }
  return fail(std::string(where), fmt::format("{} is not an option of software", in_quotes(option)),
              suggestion(option, names), Error::Kind::usage);
}

hardware::AttentionKernel kernel_named(std::string_view word) {
  return word == "auto"    ? hardware::AttentionKernel::automatic
         : word == "cudnn" ? hardware::AttentionKernel::cudnn
                           : hardware::AttentionKernel::flash2;
}

/// A part of a request's path.
Result<void> set_part(std::string_view value, std::string_view where, Given<Seconds>& part) {
  ASSAY_TRY(time, parse_as<Seconds>(value, where));
  if (time < Seconds(0)) return fail(std::string(where), "a time cannot be negative", "e.g. 5ms", Error::Kind::usage);
  part = {time, std::string(where)};
  return {};
}
Result<void> set_part(std::string_view value, std::string_view where, Given<double>& part) {
  part = {*parse_number(value), std::string(where)};
  return {};
}

}  // namespace

std::span<const SoftwareOption> training_software_options() { return training_options; }
std::span<const SoftwareOption> engine_software_options() { return engine_options; }

Result<std::vector<std::string>> plan_rule_words(std::string_view rule, std::string_view value,
                                                 std::string_view where) {
  std::vector<std::string> words;
  for (const std::string& word : split(value, ' ')) {
    if (word.empty()) continue;
    ASSAY_CHECK(word_index(plan_rules, rule, word, where));
    words.push_back(word);
  }
  if (words.empty())
    return fail(std::string(where), "a rule allows something", "a list of words, separated by blanks",
                Error::Kind::usage);
  return words;
}

Result<void> set_software(TrainingSoftware& software, std::string_view option, std::string_view value,
                          std::string_view where) {
  ASSAY_TRY(word, word_index(training_options, option, value, where));
  const bool yes = word == 0;
  if (option == "fusion") software.step.fusion = static_cast<numbers::Fusion>(word);
  if (option == "loss") software.step.loss = static_cast<numbers::Fusion>(word);
  if (option == "attention-kernel") {
    software.attention = kernel_named(value);
    software.step.first_flash = word == 1;
    software.step.wide_attention = word == 4;
    if (word == 4) software.flash = false;
  }
  if (option == "explicit-mask") software.step.explicit_mask = yes;
  if (option == "plain-attention") software.flash = !yes;
  if (option == "graphs") software.step.captured = yes;
  if (option == "fused-experts") software.step.fused_experts = yes;
  if (option == "drop-tokens") software.step.fixed_capacity = yes;
  if (option == "tensor-overlap") {
    constexpr numbers::TensorOverlap ways[] = {numbers::TensorOverlap::all, numbers::TensorOverlap::backward,
                                               numbers::TensorOverlap::none};
    software.step.tensor_overlap = ways[word];
  }
  if (option == "no-expert-overlap") software.step.expert_overlap = !yes;
  if (option == "dispatch") software.copies_per_expert = word == 1;
  if (option == "contiguous-context") software.step.contiguous_context = yes;
  if (option == "no-overlap") software.overlap = !yes;
  if (option == "dropout") software.dropout = yes;
  if (option == "padded-vocabulary") software.pads_vocabulary = yes;
  if (option == "unfused-update") software.step.unfused_update = yes;
  if (option == "optimizer") software.shared_master = word == 1;
  return {};
}

Result<void> set_software(EngineSoftware& software, std::string_view option, std::string_view value,
                          std::string_view where) {
  ASSAY_TRY(word, word_index(engine_options, option, value, where));
  if (option == "fusion") {
    software.step.fusion = static_cast<numbers::Fusion>(word);
    software.step.captured = software.step.fusion != numbers::Fusion::eager;
  }
  if (option == "attention-kernel") software.attention = kernel_named(value);
  if (option == "graphs") software.step.captured = word == 0;
  if (option == "scheduler") software.step.scheduler = static_cast<numbers::Scheduler>(word);
  if (option == "cache-kernel") {
    software.step.vector_decode = word == 1 || word == 2;
    software.step.whole_rows = word == 2 || word == 3;
    software.step.repeats_kv = word == 4;
  }
  if (option == "expert-kernel") software.step.experts = static_cast<numbers::ExpertKernel>(word);
  if (option == "all-reduce") software.step.one_shot = word == 0;
  if (option == "padded-vocabulary") software.pads_vocabulary = word == 0;
  if (option == "no-windows") software.no_windows = word == 0;
  if (option == "kv") software.kv = word == 0 ? Dtype::bf16 : Dtype::fp8;
  if (option == "memory-share") {
    ASSAY_TRY(memory, parse_memory_share(value, where));
    software.memory = memory;
  }
  Result<void> set;
  numbers::visit_path(software.path, [&](std::string_view name, auto& part, std::string_view) {
    if (option == name) set = set_part(value, where, part);
  });
  return set;
}

Result<MemoryShare> parse_memory_share(std::string_view text, std::string_view where) {
  const bool free = text.ends_with(free_suffix);
  const auto share = parse_number(free ? text.substr(0, text.size() - free_suffix.size()) : text);
  if (!share || !(*share > 0.0 && *share <= 1.0))
    return fail(std::string(where), fmt::format("{} is not a share above 0 and up to 1", in_quotes(text)),
                "e.g. 0.9, or 0.9 of free", Error::Kind::usage);
  return MemoryShare{*share, free};
}

std::string text_of(MemoryShare memory) {
  return exact_number(memory.share) + std::string(memory.of_free ? free_suffix : std::string_view());
}

}  // namespace assay::kernel
