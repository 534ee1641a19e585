// What whole prefill and decode steps cost beyond their kernels and collectives one by one: numbers of the chip's
// family and of the way the software works. catalogue/steps/serving.toml holds them; docs/validation.md says how well
// they do.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/estimate/interval.h"
#include "assay/estimate/training_effects.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/model/transformer.h"

namespace assay::estimate {

/// Who decides between two steps what the next one works on.
enum class Scheduler : std::uint8_t {
  loop,    ///< nobody: a batch is decoded to its end
  native,  ///< a compiled runtime
  python,  ///< an interpreted one
  ahead    ///< an interpreted one that works on the next step while the chips are at this one
};
inline constexpr std::string_view scheduler_names[] = {"loop", "native", "python", "ahead"};

/// What the user says of the software that serves.
struct ServingSoftware {
  Fusion fusion = Fusion::fused;
  Scheduler scheduler = Scheduler::native;
  bool captured = true;        ///< kernels of a decode step are replayed from a graph
  bool repeats_kv = false;     ///< keys and values are copied in each step, once for each head of queries
  bool one_shot = true;        ///< small all-reduces are done by kernels of the engine, not by the library
  bool vector_decode = false;  ///< attention over a cache runs on vector units, once for each head of queries
  bool whole_rows = false;     ///< a core takes all keys of a sequence's head: no cache is split along its context
};

/// Memory of a chip that holds neither weights nor caches: what its driver, libraries and graphs take. None of it by
/// default. catalogue/steps/serving_memory.toml holds the numbers and where they come from.
struct RuntimeMemory {
  double hidden = 0;    ///< share of the capacity that the driver keeps from all processes
  Bytes context;        ///< of one process: driver, libraries, code of kernels
  Bytes communication;  ///< the same of the communication library, where several chips make one server
  Bytes kernel;         ///< of one kernel in one graph
  double graphs = 0;    ///< decode steps that are captured, one for each size of the batch
  double reserved = 1;  ///< bytes that the allocator holds over those of activations; it cuts weights and caches whole
  double activations = 1;  ///< bytes of activations over the fewest
};

/// All neutral: without a calibration nothing is added.
struct ServingEffects {
  RuntimeMemory memory;
  bool joined = false;   ///< products that read the same input are one kernel: queries, keys and values; gate and up
  double kernels = 1;    ///< that element-wise steps take over their number in the program
  double pointwise = 1;  ///< bytes that element-wise steps move over the fewest
  double product = 1;    ///< time of products among other kernels over that of products alone
  double attention = 1;  ///< the same of attention over a prompt
  double decode = 1;     ///< the same of attention over a cache
  double experts = 1;    ///< products of experts over those of dense layers: ragged, sorted, uneven
  double vector = 0;     ///< share of the vector units' rate that attention over a cache is bound by; 0: it is not.
                         ///< A cache in 8 bits takes twice as long: its values are widened first

  Seconds token;          ///< of a core for each token of a cache that is not split; 0: caches are split
  double copies = 0;      ///< passes over copies of keys and values, one for each head of queries; 0: none are made
  Seconds start;          ///< of every kernel, beyond the launch of kernels that were measured one by one
  Seconds quantise;       ///< for each product in 8 bits or fewer: activations are scaled and cast
  Seconds launch;         ///< that the host takes for each kernel: a pass is at least as long
  bool captured = false;  ///< but for decode steps, which are replayed from a graph
  Seconds step;           ///< of the host between two steps: scheduling, sampling
  Seconds sequence;       ///< of the host for each sequence of a step
  Seconds first;          ///< of the host before the first token of a prompt
  Seconds one_shot;       ///< latency of an all-reduce whose devices read all of the others' arrays; 0: none
  Seconds meet;           ///< that devices wait for each other at each collective
};

/// The file of all effects: numbers by family, or by how software fuses.
struct ServingCalibration : MeasuredFamilies {
  static constexpr std::size_t ways = std::size(fusion_names);
  ServingCalibration() = default;
  /// All neutral.
  explicit ServingCalibration(Families all);

  std::vector<double> product, attention, decode;
  std::vector<Seconds> one_shot, meet;
  std::array<double, ways> kernels{1, 1, 1, 1}, pointwise{1, 1, 1, 1};
  std::array<Seconds, ways> start{};
  std::array<Seconds, 2> launch{};            ///< by a compiled host, by an interpreted one
  std::array<Seconds, 4> step{}, sequence{};  ///< by scheduler
  double experts = 1, copies = 0, vector = 0;
  std::array<RuntimeMemory, ways> memory{};  ///< of a file of its own: it is not fitted with the others

  Seconds quantise, first, token;
  std::vector<IntervalClass> prefill_intervals, decode_intervals;

  ServingEffects effects(const hardware::Chip& chip, const ServingSoftware& software) const;
};

/// The classes of steps that a step belongs to, the narrowest first: family and kind of model, kind of model, all.
/// `family` is that of the chip, nullptr where it has none.
std::vector<std::string> serving_classes(const Family* family, const model::Transformer& model);
/// Where a step of `batch` sequences with `context` tokens each lies among those that were measured.
std::vector<Coordinate> serving_coordinates(double chips, const model::Transformer& model, double batch,
                                            double context);

/// The numbers of files like catalogue/steps/serving.toml and serving_memory.toml; the first fault with its place.
Result<ServingCalibration> read_serving_steps(std::string_view document, std::string_view file, Families families);
Result<void> read_serving_memory(std::string_view document, std::string_view file, ServingCalibration& steps);
/// Those of the catalogue; neutral ones where it has none.
Result<ServingCalibration> serving_steps_of(const hardware::Catalogue& catalogue);
/// The tables that read back as these; `source` is the key of their source.
std::string serving_steps_text(const ServingCalibration& steps, std::string_view source);

}  // namespace assay::estimate
