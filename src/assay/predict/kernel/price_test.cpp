#include "assay/predict/kernel/price.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "assay/model/model_catalogue.h"
#include "assay/program/lower/lowering.h"
#include "assay/program/lower/strategy.h"

namespace assay::kernel {
namespace {

const hardware::Catalogue& catalogue() {
  static const hardware::Catalogue builtin = hardware::Catalogue::builtin();
  return builtin;
}

struct Chip {
  hardware::Chip chip;
  std::optional<hardware::ChipCalibration> calibration;

  explicit Chip(const char* id)
      : chip(*catalogue().chip(id, "test")), calibration(*hardware::calibration_of(chip, catalogue())) {}
  KernelRates rates(bool calibrated) const {
    return *kernel_rates(chip, Dtype::bf16, "test", calibrated && calibration ? &calibration->values : nullptr);
  }
};

/// Numbers that all differ from one, so that each has to be in the right place.
numbers::StepEffects random_effects(std::mt19937& random) {
  std::uniform_real_distribution<double> factor(0.8, 2.0);
  numbers::StepEffects effects;
  for (Given<double> numbers::StepEffects::*number :
       {&numbers::StepEffects::product, &numbers::StepEffects::attention, &numbers::StepEffects::plain_attention,
        &numbers::StepEffects::unaligned, &numbers::StepEffects::pointwise, &numbers::StepEffects::cast,
        &numbers::StepEffects::loss, &numbers::StepEffects::scan, &numbers::StepEffects::expert_traffic,
        &numbers::StepEffects::expert_pointwise, &numbers::StepEffects::expert_bias})
    effects.*number = factor(random);
  for (auto& kind : effects.kinds) kind = numbers::Passes{factor(random), factor(random)};
  if (random() % 2) {
    numbers::ComposedTraffic& composed = effects.composed.emplace();
    for (Given<numbers::Passes>* passes : {&composed.joined_gate, &composed.rotated_part, &composed.rejoined_heads})
      *passes = numbers::Passes{factor(random), factor(random)};
    for (double& projection : composed.projections.value) projection = factor(random);
    for (Given<numbers::Passes>& function : composed.functions)
      function = numbers::Passes{factor(random), factor(random)};
    for (Given<numbers::Passes>& rotation : composed.rotations)
      rotation = numbers::Passes{factor(random), factor(random)};
    for (Given<numbers::Passes>& logits : composed.logits) logits = numbers::Passes{factor(random), factor(random)};
    composed.centred_norm = numbers::Passes{factor(random), factor(random)};
  }
  if (random() % 2) {
    effects.start = Seconds(1e-6 * factor(random));
    for (auto& kind : effects.kernels) kind = numbers::Passes{factor(random), factor(random)};
  }
  effects.adds_gradients = random() % 2;
  return effects;
}

numbers::ServingEffects random_serving_effects(std::mt19937& random) {
  std::uniform_real_distribution<double> factor(0.8, 2.0);
  numbers::ServingEffects effects;
  for (Given<double> numbers::ServingEffects::*number :
       {&numbers::ServingEffects::kernels, &numbers::ServingEffects::pointwise, &numbers::ServingEffects::product,
        &numbers::ServingEffects::decode})
    effects.*number = factor(random);
  if (random() % 2) effects.copies = factor(random);
  if (random() % 2) effects.vector = factor(random);
  effects.start = Seconds(1e-6 * factor(random));
  effects.token = Seconds(1e-9 * factor(random));
  effects.quantise = Seconds(1e-6 * factor(random));
  effects.joined = random() % 2;
  if (random() % 2) {
    effects.code = random_effects(random);
    effects.code->start = Seconds(1e-6 * factor(random));
  }
  return effects;
}

TEST(Price, KernelsOfComposedFunctionsAreCounted) {
  const numbers::StepCalibration steps = *numbers::steps_of(catalogue());
  const auto beyond = [&](model::Activation function) {
    return steps.composed.functions[static_cast<std::size_t>(function)].value;
  };
  // Six kernels of one operand and two of two, over one kernel: 12 + 6 - 2 tensors; backward 10 + 18 - 3.
  EXPECT_EQ(beyond(model::Activation::gelu_new), (numbers::Passes{16.0, 25.0}));
  EXPECT_EQ(beyond(model::Activation::simple), (numbers::Passes{0.0, 0.0}));
  const hardware::Chip chip = *catalogue().chip("h200-sxm", "test");
  EXPECT_TRUE(steps.effects(chip, {.fusion = numbers::Fusion::eager}).composed);
  EXPECT_FALSE(steps.effects(chip, {.fusion = numbers::Fusion::compiled}).composed);
  EXPECT_LT(steps.effects(chip, {.fusion = numbers::Fusion::xla}).fixed,
            steps.effects(chip, {.fusion = numbers::Fusion::eager}).fixed);
}

void expect_equal_bits(Seconds plain, NumberOf<Traced, Seconds> traced, const std::string& what) {
  EXPECT_EQ(plain.value(), traced.value()) << what;
  ASSERT_NE(traced.ledger, nullptr) << what;
  EXPECT_EQ(traced.ledger->at(traced.id).quantity.value, plain.value()) << what;
}

/// Evaluates a recorded node again from its operands.
double again(const Ledger& ledger, int id) {
  const Node& node = ledger.at(id);
  const auto of = [&](int operand) { return again(ledger, operand); };
  switch (node.op) {
    case Node::Op::given:
    case Node::Op::constant:
      return node.quantity.value;
    case Node::Op::alias:
      return of(node.lhs);
    case Node::Op::mul:
      return of(node.lhs) * of(node.rhs);
    case Node::Op::div:
      return of(node.lhs) / of(node.rhs);
    case Node::Op::add:
      return of(node.lhs) + of(node.rhs);
    case Node::Op::sub:
      return of(node.lhs) - of(node.rhs);
    case Node::Op::max:
      return std::max(of(node.lhs), of(node.rhs));
    case Node::Op::min:
      return std::min(of(node.lhs), of(node.rhs));
    case Node::Op::ceil:
      return std::ceil(of(node.lhs));
    case Node::Op::sqrt:
      return std::sqrt(of(node.lhs));
  }
  return 0.0;
}

bool is_kernel(const program::Step& step) { return !program::is_collective(step.op) && step.op != program::Op::slice; }

lower::TrainingPlan random_plan(std::mt19937& random) {
  lower::TrainingPlan plan;
  plan.work.sequences = 1 << random() % 4;
  plan.work.queries = plan.work.keys = 256 << random() % 4;
  plan.work.source = plan.work.keys;
  plan.work.flash = random() % 3 != 0;
  plan.work.expert_load = random() % 2 ? 1.0 : 1.3;
  if (random() % 2) plan.recompute = lower::Recompute::full();
  return plan;
}

constexpr const char* models[] = {"llama-3-8b",       "gemma-2-9b", "mixtral-8x7b",
                                  "deepseek-v2-lite", "gpt2-xl",    "jamba-v0.1"};
constexpr const char* chips[] = {"h100-sxm", "a100-sxm-80", "tpu-v5p", "mi300x"};

TEST(Price, PlainAndTracedHaveEqualBitsForEveryStepOfTraining) {
  std::mt19937 random(1);
  int products = 0;
  for (const char* id : models)
    for (const char* where : chips) {
      const model::Transformer model = model::load_model(id, catalogue(), "test")->model;
      const Chip chip(where);
      for (const bool calibrated : {false, true}) {
        lower::Parallelism p;
        p.tensor = 1 << random() % 3;
        const lower::StageRules stage = lower::training_stage(p, model);
        const program::Program program = lower::lower_training(model, stage.mesh, stage.rules, random_plan(random));
        const KernelRates rates = chip.rates(calibrated);
        const numbers::StepEffects effects = random_effects(random);
        const TrainingKernels kernels{rates, effects, random() % 2 == 0};
        Ledger ledger;
        const Traced num{&ledger};
        JoinedProducts joined;
        for (const program::Step& step : program.steps) {
          if (!is_kernel(step)) continue;
          const std::string what = std::string(id) + " on " + where + ": " + program::step_text(program, step);
          const StepPrice<Plain> plain = price(Plain{}, program, step, kernels);
          const StepPrice<Traced> traced = price(num, program, step, kernels);
          expect_equal_bits(plain.duration, traced.duration, what);
          expect_equal_bits(plain.compute, traced.compute, what);
          expect_equal_bits(plain.memory, traced.memory, what);
          expect_equal_bits(plain.slowed, traced.slowed, what);
          EXPECT_EQ(again(ledger, traced.duration.id), plain.duration.value()) << what;
          if (const auto part = JoinedProducts::part_of(rates, program, step)) joined.take(*part);
        }
        for (const JoinedProducts::Part& fused : joined.joints()) {
          const StepPrice<Plain> plain = price(Plain{}, fused, kernels);
          const StepPrice<Traced> traced = price(num, fused, kernels);
          expect_equal_bits(plain.duration, traced.duration, id);
          expect_equal_bits(plain.slowed, traced.slowed, id);
          ++products;
        }
      }
    }
  EXPECT_GT(products, 100);
}

TEST(Price, PlainAndTracedHaveEqualBitsForEveryStepOfServing) {
  std::mt19937 random(2);
  for (const char* id : models)
    for (const char* where : chips) {
      const model::Transformer model = model::load_model(id, catalogue(), "test")->model;
      const Chip chip(where);
      for (const std::int64_t queries : {1, 32, 1024}) {
        lower::Parallelism p;
        p.tensor = 1 << random() % 3;
        lower::Workload work;
        work.sequences = 8 << random() % 4;
        work.queries = queries;
        work.keys = 1024 + 512 * static_cast<std::int64_t>(random() % 8);
        work.cached = true;
        const program::Program program =
            lower::lower_serving(model, lower::stage_mesh(p), lower::serving_rules(p, {}), work, {});
        const KernelRates rates = chip.rates(random() % 4 != 0);
        const numbers::ServingEffects effects = random_serving_effects(random);
        Ledger ledger;
        for (const program::Step& step : program.steps) {
          if (!is_kernel(step)) continue;
          Kernel kernel = kernel_of(rates, program, step);
          kernel.load = std::max(1.0, kernel.load);
          ServedDetails details;
          details.quantises = random() % 2;
          details.heads = 256;
          details.shared_by = 4;
          details.met = 1000;
          details.arithmetic = kernel_time(rates, program, step).compute;
          if (effects.code) details.composition = stream_composition(*effects.code, program, step);
          const ServingKernels kernels{rates, effects};
          const Seconds plain = price(Plain{}, kernel, details, kernels);
          const auto traced = price(Traced{&ledger}, kernel, details, kernels);
          expect_equal_bits(plain, traced, program::step_text(program, step));
          EXPECT_EQ(again(ledger, traced.id), plain.value()) << program::step_text(program, step);
        }
      }
    }
}

TEST(Price, ShortKernelsTakeTheirStartAndLongOnesTheirTraffic) {
  const model::Transformer model = model::load_model("llama-3-8b", catalogue(), "test")->model;
  const KernelRates rates = Chip("h200-sxm").rates(true);
  numbers::StepEffects effects;
  effects.start = 2_us;
  effects.kinds[static_cast<std::size_t>(numbers::StreamKind::norm)] = numbers::Passes{9.0, 15.0};
  effects.kernels[static_cast<std::size_t>(numbers::StreamKind::norm)] = numbers::Passes{8.0, 17.0};
  numbers::ServingEffects serving;
  serving.code = effects;
  for (const std::int64_t tokens : {16, 4096}) {
    lower::TrainingPlan plan;
    plan.work.sequences = 1, plan.work.queries = plan.work.keys = tokens;
    const program::Program program =
        lower::lower_training(model, lower::stage_mesh({}), lower::training_rules({}), plan);
    const auto norm = std::find_if(program.steps.begin(), program.steps.end(),
                                   [](const program::Step& step) { return step.op == program::Op::norm; });
    const Kernel work = kernel_of(rates, program, *norm);
    const Seconds time = price(Plain{}, program, *norm, {rates, effects}).duration;
    // Eight kernels of 2 us, or nine times the 67 MB of 4096 tokens.
    EXPECT_EQ(time, tokens == 16 ? 16_us : 9.0 * streamed(Plain{}, rates, work, work.bytes));
    ServedDetails details;
    details.composition = stream_composition(effects, program, *norm);
    EXPECT_EQ(details.composition, (StreamComposition{8.0, 9.0, 0.0}));
    EXPECT_EQ(price(Plain{}, work, details, {rates, serving}), time);  // the same code serves
  }
}

TEST(Price, EveryFigureOfTheChipAndEveryFittedNumberHasItsFileAndLine) {
  const model::Transformer model = model::load_model("llama-3-8b", catalogue(), "test")->model;
  const KernelRates rates = Chip("h100-sxm").rates(true);
  lower::TrainingPlan plan;
  plan.work.sequences = 1, plan.work.queries = plan.work.keys = 4096;
  const program::Program program = lower::lower_training(model, lower::stage_mesh({}), lower::training_rules({}), plan);
  const numbers::StepEffects effects;
  Ledger ledger;
  std::vector<int> roots;
  for (const program::Step& step : program.steps)
    if (is_kernel(step)) roots.push_back(price(Traced{&ledger}, program, step, {rates, effects}).duration.id);
  std::set<std::string> names;
  for (const DerivationLine& line : derivation(ledger, roots)) {
    if (!line.formula.empty()) continue;
    names.insert(line.name);
    const bool of_chip = line.name == "hbm" || line.name == "peak" || line.name == "cores";
    const bool fitted = line.name == "droop" || line.name == "matrix share" || line.name == "launch" ||
                        line.name == "softmax" || line.name == "ramp" || line.name == "memory share";
    const std::string file = of_chip ? "chips/" : fitted ? "calibration/" : "";
    EXPECT_TRUE(line.source.starts_with(file)) << line.name << ": " << line.source;
    EXPECT_TRUE(file.empty() || line.source.find(".toml:") != std::string::npos) << line.name << ": " << line.source;
  }
  for (const char* name : {"hbm", "peak", "cores", "droop", "launch", "m", "n", "k", "tile rows", "bytes", "softmax"})
    EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace assay::kernel
