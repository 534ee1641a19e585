// What whole prefill and decode steps cost beyond the sum of their kernels and collectives: numbers by family of chips
// and by software. catalogue/steps/serving.toml holds them; docs/validation.md reports their errors.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/model/transformer.h"
#include "assay/predict/kernel/effects/training_effects.h"
#include "assay/predict/kernel/interval.h"

namespace assay::kernel {

/// What schedules the next step.
enum class Scheduler : std::uint8_t {
  loop,    ///< nothing: a batch is decoded to its end
  native,  ///< a compiled runtime
  python,  ///< an interpreted one
  ahead    ///< an interpreted one that prepares the next step while this one runs
};
inline constexpr std::string_view scheduler_names[] = {"loop", "native", "python", "ahead"};

/// What the user says about the serving software.
struct ServingSoftware {
  Fusion fusion = Fusion::fused;
  Scheduler scheduler = Scheduler::native;
  bool captured = true;        ///< decode kernels are replayed from a graph
  bool repeats_kv = false;     ///< keys and values are copied in each step, once per query head
  bool one_shot = true;        ///< small all-reduces run in kernels of the engine, not in the library
  bool vector_decode = false;  ///< attention over a cache runs on vector units, once per query head
  bool whole_rows = false;     ///< one core takes all keys of a head: caches are not split along the context
};

/// Memory of a chip other than weights and caches: driver, libraries and graphs. None by default;
/// catalogue/steps/serving_memory.toml holds the numbers and their sources.
struct RuntimeMemory {
  double hidden = 0;       ///< share of the capacity that the driver keeps for itself
  Bytes context;           ///< of one process: driver, libraries, kernel code
  Bytes communication;     ///< the communication library, where a server has several chips
  Bytes kernel;            ///< of one kernel in one graph
  double graphs = 0;       ///< captured decode steps, one for each batch size
  double reserved = 1;     ///< bytes that the allocator holds, relative to activations; weights and caches are exact
  double activations = 1;  ///< bytes of activations over the minimum
};

/// Neutral by default: without a calibration nothing is added.
struct ServingEffects {
  RuntimeMemory memory;
  bool joined = false;  ///< products that read the same input are one kernel: query, key and value; gate and up
  /// What element-wise steps are composed of, where every operation is a kernel: as in training.
  std::optional<StepEffects> code;
  double kernels = 1;    ///< other software: kernels of element-wise steps over their number in the program
  double pointwise = 1;  ///< bytes that element-wise steps move over the minimum
  double product = 1;    ///< time of products inside a step, relative to products measured alone
  double attention = 1;  ///< the same for attention over a prompt
  double decode = 1;     ///< the same for attention over a cache
  double experts = 1;    ///< time of expert products over dense ones: ragged, sorted, uneven
  double vector = 0;     ///< share of the vector units' rate that bounds attention over a cache; 0: unbounded

  Seconds item;           ///< core time of each query head of a sequence over a cache, where no kernel was measured
  Seconds token;          ///< core time for each token of an unsplit cache; 0: caches are split
  double copies = 0;      ///< passes over copies of keys and values, one per query head; 0: no copies
  Seconds start;          ///< of every kernel, beyond the launch of kernels measured individually
  Seconds quantise;       ///< for each product in 8 bits or fewer: scaling and casting activations
  Seconds launch;         ///< host time per kernel, a lower bound of a pass
  bool captured = false;  ///< decode steps are replayed from a graph and have no launches
  Seconds step;           ///< host time between two steps: scheduling, sampling
  Seconds sequence;       ///< host time for each sequence of a step
  Seconds first;          ///< host time before the first token of a prompt
  Seconds one_shot;       ///< latency of an all-reduce in which each device reads all others' arrays; 0: none
  Seconds meet;           ///< time that devices wait for each other at each collective
};

/// The file of all effects: numbers by family, or by how software fuses.
struct ServingCalibration : MeasuredFamilies {
  static constexpr std::size_t ways = std::size(fusion_names);
  ServingCalibration() = default;
  /// All neutral.
  explicit ServingCalibration(Families all);

  std::vector<double> product, attention, decode;
  std::vector<Seconds> one_shot, meet, item;
  std::vector<char> without_kernels;  ///< families whose `item` is stated: no decode kernel of theirs was measured
  std::array<double, ways> kernels{1, 1, 1, 1}, pointwise{1, 1, 1, 1};
  std::array<Seconds, ways> start{};
  std::array<Seconds, 2> launch{};            ///< by compiled and interpreted hosts
  std::array<Seconds, 4> step{}, sequence{};  ///< by scheduler
  double experts = 1, copies = 0, vector = 0;
  std::array<RuntimeMemory, ways> memory{};  ///< from a separate file: not fitted
  StepEffects code;                          ///< of eager software, as in training: not fitted

  Seconds quantise, first, token;
  std::vector<IntervalClass> prefill_intervals, decode_intervals;
  /// For chips and software without rows: of prefill, of decode steps.
  std::array<UnseenIntervals, 2> unseen_prefill, unseen_decode;

  /// Adds the source of each effect under its name to `sources`, unless null.
  ServingEffects effects(const hardware::Chip& chip, const ServingSoftware& software,
                         SourceTable* sources = nullptr) const;
};

/// Error classes of a step, narrowest first: family and kind of model, kind of model, all. None where no prefill or
/// decode steps were measured on the family. `family` is that of the chip, nullptr if it has none.
std::vector<std::string> serving_classes(const Family* family, const model::Transformer& model);
/// Coordinates of a step of `batch` sequences with `context` tokens each, to tell whether it extrapolates.
std::vector<Coordinate> serving_coordinates(double chips, const model::Transformer& model, double batch,
                                            double context);

/// Read files like catalogue/steps/serving.toml and serving_memory.toml; report every fault at once.
Result<ServingCalibration> read_serving_steps(std::string_view document, std::string_view file, Families families);
Result<void> read_serving_memory(std::string_view document, std::string_view file, ServingCalibration& steps);
/// The effects of the catalogue; neutral if it has none.
Result<ServingCalibration> serving_steps_of(const hardware::Catalogue& catalogue);
/// The tables of a file that reads back as these; `source` is the key of their source.
std::string serving_steps_text(const ServingCalibration& steps, std::string_view source);

}  // namespace assay::kernel
