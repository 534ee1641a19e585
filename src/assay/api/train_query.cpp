#include "assay/api/train_query.h"

#include <fmt/format.h>

#include <cmath>

#include "assay/api/option_values.h"
#include "assay/api/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/model/model_catalogue.h"

namespace assay {

Result<double> parse_batch(std::string_view text, std::int64_t sequence, std::string_view where) {
  std::string_view number = trim(text);
  const bool in_sequences = number.ends_with("seq");
  if (in_sequences) number.remove_suffix(3);
  ASSAY_TRY(count, parse_count(number, where));
  const auto n = static_cast<double>(count);
  if (in_sequences) return n;
  const double sequences = n / static_cast<double>(sequence);
  if (sequences != std::floor(sequences) || sequences < 1.0) {
    const auto below = static_cast<std::int64_t>(sequences), above = below + 1;
    const auto words = [&](std::int64_t whole) {
      return fmt::format("{} tokens ({}seq)", human_count(whole * sequence), whole);
    };
    return fail(std::string(where),
                fmt::format("{} tokens are not a whole number of sequences of {}", human_count(count), sequence),
                below < 1 ? fmt::format("at least {}", words(above))
                          : fmt::format("the nearest are {} and {}", words(below), words(above)));
  }
  return sequences;
}

namespace {

template <class T>
struct Word {
  std::string_view word;
  T value;
};

template <class T, std::size_t N>
Result<void> read_word(const Request& request, std::string_view option, const Word<T> (&words)[N],
                       std::optional<T>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  std::vector<std::string> known;
  for (const Word<T>& word : words) {
    if (word.word == *text) {
      out = word.value;
      return {};
    }
    known.emplace_back(word.word);
  }
  return fail(fmt::format("--{}", option), fmt::format("{} is none of {}", in_quotes(*text), join(known, ", ")),
              suggestion(*text, known), Error::Kind::usage);
}

Result<void> read_choices(const Request& request, TrainingChoices& choices) {
  ASSAY_CHECK(read_count(request, "dp", choices.data));
  ASSAY_CHECK(read_count(request, "fsdp", choices.fsdp));
  ASSAY_CHECK(read_count(request, "tp", choices.tensor));
  ASSAY_CHECK(read_count(request, "pp", choices.pipeline));
  ASSAY_CHECK(read_count(request, "cp", choices.context));
  ASSAY_CHECK(read_count(request, "ep", choices.expert));
  ASSAY_CHECK(read_count(request, "micro-batch", choices.micro_batch));
  ASSAY_CHECK(read_count(request, "interleave", choices.interleave));
  static constexpr Word<int> stages[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}};
  ASSAY_CHECK(read_word(request, "zero", stages, choices.zero));
  if (const auto text = request.value("schedule")) {
    ASSAY_TRY(schedule, parse_schedule(*text, "--schedule"));
    choices.schedule = schedule;
  }
  static constexpr Word<RecomputePolicy> policies[] = {
      {"none", RecomputePolicy::none}, {"selective", RecomputePolicy::selective}, {"full", RecomputePolicy::full}};
  ASSAY_CHECK(read_word(request, "recompute", policies, choices.recompute));
  static constexpr Word<ResidualScheme> residuals[] = {{"replicated", ResidualScheme::replicated},
                                                       {"sequence", ResidualScheme::sequence},
                                                       {"model", ResidualScheme::model}};
  ASSAY_CHECK(read_word(request, "residual", residuals, choices.residual));
  if (request.has("sequence-parallel")) choices.residual = ResidualScheme::sequence;
  static constexpr Word<ContextScheme> schemes[] = {{"ring", ContextScheme::gather},
                                                    {"all-to-all", ContextScheme::exchange}};
  return read_word(request, "context-scheme", schemes, choices.context_scheme);
}

Result<void> read_formats(const Request& request, TrainQuery& query) {
  ASSAY_CHECK(read_dtype(request, "compute", query.compute));
  Formats& formats = query.question.setup.formats;
  Optimizer& optimizer = query.question.setup.optimizer;
  formats.compute = query.compute;
  formats.gradients = Dtype::fp32;
  ASSAY_CHECK(read_dtype(request, "params", formats.weights));
  if (facts(query.compute).bits >= 16) formats.activations = query.compute;
  ASSAY_CHECK(read_dtype(request, "grads", formats.gradients));
  ASSAY_CHECK(read_dtype(request, "moments", optimizer.first_moment));
  optimizer.second_moment = optimizer.first_moment;
  optimizer.master = facts(formats.weights).bits < 32;
  if (const auto text = request.value("optimizer")) {
    if (*text == "none") {
      optimizer.master = false;
    } else {
      ASSAY_TRY(master, parse_dtype(*text, "--optimizer"));
      if (master != Dtype::fp32)
        return fail("--optimizer", fmt::format("a master copy in {} is not modelled", name(master)),
                    "fp32 for a master copy of the weights, none for none");
    }
  }
  ASSAY_TRY(rates, kernel_rates(query.cluster.chip, query.compute, "--compute"));
  query.question.setup.rates = rates;
  query.notes.push_back(fmt::format(
      "formats: weights {}, products {}, gradients {}, Adam moments {}{}; change them with --params --compute --grads "
      "--moments --optimizer",
      name(formats.weights), name(query.compute), name(formats.gradients), name(optimizer.first_moment),
      optimizer.master ? ", fp32 master copy" : ", no master copy"));
  return {};
}

/// Kernels, collectives and steps as they were measured, under the software that the user names or good software.
Result<void> read_software(const Request& request, const Context& context, TrainQuery& query) {
  static constexpr Word<Fusion> fusions[] = {
      {"fused", Fusion::fused}, {"compiled", Fusion::compiled}, {"eager", Fusion::eager}};
  static constexpr Word<AttentionKernel> kernels[] = {
      {"auto", AttentionKernel::automatic}, {"flash2", AttentionKernel::flash2}, {"cudnn", AttentionKernel::cudnn}};
  std::optional<Fusion> asked;
  std::optional<AttentionKernel> kernel;
  ASSAY_CHECK(read_word(request, "software", fusions, asked));
  ASSAY_CHECK(read_word(request, "attention-kernel", kernels, kernel));
  ASSAY_TRY(calibration, calibration_of(query.cluster.chip, context.catalogue));
  if (!calibration && (asked || kernel))
    return fail(asked ? "--software" : "--attention-kernel",
                fmt::format("{} has no calibration", query.cluster.chip.id),
                "leave it out: the estimate then takes the efficiencies of the chip's file");
  if (!calibration) {
    query.notes.push_back(
        fmt::format("{} has no calibration: the estimate takes the efficiencies of its file", query.cluster.chip.id));
    return {};
  }
  const Fusion fusion = asked.value_or(Fusion::fused);
  ASSAY_TRY(rates, kernel_rates(query.cluster.chip, query.compute, "--compute", &calibration->values,
                                {kernel.value_or(AttentionKernel::automatic)}));
  ASSAY_TRY(steps, steps_of(context.catalogue));
  StepSoftware software;
  software.fusion = fusion;
  query.question.setup.rates = rates;
  query.question.setup.effects = steps.effects(query.cluster.chip, software);
  query.question.collectives = calibration->values.collective;
  query.notes.push_back(
      fmt::format("the estimate is that of {} and steps/training.toml for {} element-wise work (--software)",
                  calibration->basis, fusion_names[static_cast<std::size_t>(fusion)]));
  return {};
}

/// The rules that do not need the search: each names itself and the nearest legal values.
Result<void> check_choices(const TrainQuery& query) {
  const TrainingChoices& c = query.choices;
  Parallelism given;
  given.tensor = c.tensor.value_or(1), given.context = c.context.value_or(1), given.pipeline = c.pipeline.value_or(1);
  given.expert = 1;
  ASSAY_CHECK(check_parallelism(given, query.imported.model));
  std::int64_t product = 1;
  std::string factors;
  const auto factor = [&](std::string_view flag, const std::optional<std::int64_t>& n) {
    if (n) product *= *n, factors += fmt::format("{}--{} {}", factors.empty() ? "" : " x ", flag, *n);
  };
  factor("dp", c.data), factor("fsdp", c.fsdp), factor("tp", c.tensor), factor("cp", c.context),
      factor("pp", c.pipeline);
  const std::int64_t chips = query.cluster.chips();
  if (chips % product != 0 || (c.data && c.fsdp && c.tensor && c.context && c.pipeline && product != chips))
    return fail("strategy", fmt::format("{} = {}, but {} has {} chips", factors, product, query.cluster.text, chips),
                "their product must divide the number of chips, and equal it where all five are given",
                Error::Kind::usage);
  if (c.context && query.sequence % *c.context != 0)
    return fail("--cp", fmt::format("sequences of {} tokens do not split {} ways", query.sequence, *c.context),
                "give a divisor of the sequence length");
  if (c.expert) {
    Parallelism expert;
    expert.expert = expert.data = *c.expert;
    ASSAY_CHECK(check_parallelism(expert, query.imported.model));
  }
  if (c.data && c.fsdp) {
    const double groups = static_cast<double>(*c.data * *c.fsdp) * static_cast<double>(c.micro_batch.value_or(1));
    if (std::fmod(query.question.sequences, groups) != 0.0)
      return fail("--batch",
                  fmt::format("{} sequences do not split over {} data-parallel groups of {}",
                              human_number(query.question.sequences), *c.data * *c.fsdp, c.micro_batch.value_or(1)),
                  fmt::format("a multiple of {} sequences does", human_number(groups)));
  }
  return {};
}

}  // namespace

std::vector<OptionSpec> train_options() {
  return {
      {"batch", "TOKENS|Nseq", "tokens per step (4Mi), or sequences (1024seq)"},
      {"seq", "N", "tokens per sequence (default: the model's context, at most 8192)"},
      {"tokens", "N", "of the whole run (15T): adds time, cost and energy"},
      {"dp", "N", "replicas"},
      {"fsdp", "N", "data-parallel devices that share out the weights"},
      {"tp", "N", "tensor parallelism"},
      {"pp", "N", "pipeline stages"},
      {"cp", "N", "context parallelism"},
      {"ep", "N", "expert parallelism, a part of dp x fsdp"},
      {"zero", "0..3", "what replicas share out: 1 optimizer states, 2 gradients, 3 weights", false, "0|1|2|3"},
      {"micro-batch", "N", "sequences of one group at a time"},
      {"interleave", "N", "chunks of layers per stage"},
      {"schedule", "NAME", "gpipe, 1f1b, interleaved, zb, zb-h1, zb-h2, zb-v or dualpipe"},
      {"recompute", "POLICY", "none, selective or full", false, "none|selective|full"},
      {"sequence-parallel", "", "split activations between tensor-parallel blocks by sequence"},
      {"residual", "HOW", "what lies between blocks: replicated, sequence or model", false,
       "replicated|sequence|model"},
      {"context-scheme", "HOW", "ring or all-to-all", false, "ring|all-to-all"},
      {"plain-attention", "", "attention with score matrices in memory, not flash attention"},
      {"no-overlap", "", "gradients and weights move while nobody computes"},
      {"software", "HOW", "how element-wise work is run: fused (default), compiled or eager", false,
       "fused|compiled|eager"},
      {"attention-kernel", "NAME", "auto (default), flash2 or cudnn", false, "auto|flash2|cudnn"},
      {"compute", "DTYPE", "of products in layers (default bf16)"},
      {"params", "DTYPE", "of weights (default bf16)"},
      {"grads", "DTYPE", "of gradients (default fp32)"},
      {"moments", "DTYPE", "of Adam's moments (default fp32)"},
      {"optimizer", "DTYPE", "of the master copy: fp32, or none"},
      {"expert-load", "X", "slots of the busiest expert over an even share (default 1)"},
      {"top", "N", "runners-up to show (default 5)"},
      {"list", "", "print the program"},
      {"timeline", "FILE.json", "write the pipeline as a Chrome trace"},
      {"mtbf", "TIME", "mean time between failures of one chip: adds goodput (e.g. 50000h)"},
      {"restart", "TIME", "to detect a failure and restart (default 10min)"},
      {"checkpoint-bandwidth", "RATE", "at which the cluster writes checkpoints (default 100GB/s)"},
  };
}

Result<TrainQuery> read_train_query(const Request& request, const Context& context) {
  TrainQuery query;
  ASSAY_TRY(imported, load_model(request.arguments().front(), context.catalogue, "MODEL"));
  query.imported = imported;
  ASSAY_TRY(cluster, cluster_of(request, context));
  query.cluster = cluster;
  query.question.chips = static_cast<double>(cluster.chips());
  const std::int64_t longest = query.imported.model.max_context;
  if (const auto text = request.value("seq")) {
    ASSAY_TRY(sequence, parse_count(*text, "--seq"));
    query.sequence = sequence;
    if (longest > 0 && query.imported.model.learned_positions > 0 && sequence > longest)
      return fail("--seq",
                  fmt::format("{} has {} learned positions, not {}", query.imported.model.id, longest, sequence),
                  fmt::format("at most {}", longest));
    if (longest > 0 && sequence > longest)
      query.notes.push_back(fmt::format("--seq {} is beyond the {} tokens that {} was made for", sequence, longest,
                                        query.imported.model.id));
  } else {
    constexpr std::int64_t usual = 8192;
    query.sequence = longest > 0 ? std::min(longest, usual) : usual;
    query.notes.push_back(fmt::format("--seq not given: {} tokens", query.sequence));
  }
  const auto batch = request.value("batch");
  if (!batch)
    return fail("train", "--batch is missing", "tokens per step or sequences, e.g. --batch 4Mi or --batch 1024seq",
                Error::Kind::usage);
  ASSAY_TRY(sequences, parse_batch(*batch, query.sequence, "--batch"));
  query.question.sequences = sequences;
  query.batch_tokens = sequences * static_cast<double>(query.sequence);
  if (const auto text = request.value("tokens")) {
    ASSAY_TRY(tokens, parse_count(*text, "--tokens"));
    query.tokens = static_cast<double>(tokens);
  }
  if (const auto text = request.value("top")) {
    ASSAY_TRY(top, parse_count(*text, "--top"));
    query.top = static_cast<std::size_t>(std::min<std::int64_t>(top, 100));
  }
  query.question.setup.flash = !request.has("plain-attention");
  query.question.overlap = !request.has("no-overlap");
  if (const auto text = request.value("expert-load")) {
    const auto load = parse_number(*text);
    if (!load || *load < 1.0 || *load > 1e6)
      return fail("--expert-load", fmt::format("{} is not a number from 1 up", in_quotes(*text)), "1 is an even load");
    query.question.setup.expert_load = *load;
  }
  ASSAY_CHECK(read_formats(request, query));
  ASSAY_CHECK(read_software(request, context, query));
  ASSAY_CHECK(read_choices(request, query.choices));
  ASSAY_CHECK(check_choices(query));
  return query;
}

}  // namespace assay
