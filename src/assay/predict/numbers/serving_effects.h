// What whole prefill and decode steps cost beyond the sum of their kernels and collectives: numbers by family of chips
// and by software. catalogue/steps/serving.toml holds them; docs/validation.md reports their errors.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/model/transformer.h"
#include "assay/predict/numbers/expert_kernels.h"
#include "assay/predict/numbers/interval.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::numbers {

/// What schedules the next step.
enum class Scheduler : std::uint8_t {
  loop,         ///< nothing: a batch is decoded to its end
  native,       ///< a compiled runtime
  python,       ///< an interpreted one
  ahead,        ///< an interpreted one that prepares the next step while this one runs
  ahead_native  ///< likewise, with compiled parts for what grows with the sequences
};
inline constexpr std::string_view scheduler_names[] = {"loop", "native", "python", "ahead", "ahead-native"};

/// What the user says about the serving software.
struct ServingSoftware {
  Fusion fusion = Fusion::fused;
  Scheduler scheduler = Scheduler::native;
  bool captured = true;        ///< decode kernels are replayed from a graph
  bool repeats_kv = false;     ///< keys and values are copied in each step, once per query head
  bool one_shot = true;        ///< small all-reduces run in kernels of the engine, not in the library
  bool vector_decode = false;  ///< attention over a cache runs on vector units, once per query head
  bool whole_rows = false;     ///< one core takes all keys of a head: caches are not split along the context
  ExpertKernel experts = ExpertKernel::library;
};

/// What a request meets outside of the model, by its client's clock: by engine and release in catalogue/software.
/// Nothing by default: a prompt enters the next step, and a token counts when its step ends.
struct RequestPath {
  Given<Seconds> front_end;   ///< of a request: HTTP, checks, and queues between processes
  Given<Seconds> tokenising;  ///< of each token of a prompt
  Given<Seconds> delivery;    ///< of each sequence of a step: detokenising and sending
  Given<Seconds> sorting;     ///< chip time of each entry of the vocabulary, for sequences that draw from the likeliest
  Given<double> ahead = 0;    ///< steps that are prepared already, and that a new request misses
};
/// Every part of a path: the option that sets it, its value, and what it means.
template <class P, class V>
void visit_path(P& path, const V& visit) {
  visit("front-end", path.front_end, "of a request");
  visit("tokenising", path.tokenising, "of a token of the prompt");
  visit("delivery", path.delivery, "of a sequence of a step");
  visit("vocabulary-sort", path.sorting, "of an entry of the vocabulary");
  visit("steps-ahead", path.ahead, "that a new request misses");
}

/// Memory of a chip other than weights and caches: driver, libraries and graphs. None by default;
/// catalogue/steps/serving_memory.toml holds the numbers and their sources.
struct RuntimeMemory {
  Given<double> hidden = 0;    ///< share of the capacity that the driver keeps for itself
  Given<Bytes> context;        ///< of one process: driver, libraries, kernel code
  Given<Bytes> communication;  ///< the communication library, where a server has several chips
  Given<Bytes> kernel;         ///< of one kernel in one graph
  Given<double> graphs = 0;    ///< captured decode steps, one for each batch size
  /// Bytes that the allocator holds, relative to activations; weights and caches are exact.
  Given<double> reserved = {1, "1: nothing was measured"};
  Given<double> activations = {1, "1: nothing was measured"};  ///< bytes of activations over the minimum
};

/// Neutral by default: without a calibration nothing is added.
struct ServingEffects {
  RuntimeMemory memory;
  bool joined = false;  ///< products that read the same input are one kernel: query, key and value; gate and up
  /// What element-wise steps are composed of, where every operation is a kernel: as in training.
  std::optional<StepEffects> code;
  Given<double> kernels = 1;    ///< other software: kernels of element-wise steps over their number in the program
  Given<double> pointwise = 1;  ///< bytes that element-wise steps move over the minimum
  Given<double> product = 1;    ///< time of products inside a step, relative to products measured alone
  Given<double> decode = 1;     ///< time of attention over a cache inside a step, relative to kernels measured alone
  Given<double> vector = 0;     ///< share of the vector units' rate that bounds attention over a cache; 0: unbounded

  Given<Seconds> item;       ///< core time of each query head of a sequence over a cache, where no kernel was measured
  Given<Seconds> token;      ///< core time for each token of an unsplit cache; 0: caches are split
  Given<double> copies = 0;  ///< passes over copies of keys and values, one per query head; 0: no copies
  /// Choosing, sorting and gathering tokens for a layer with experts, beyond its steps.
  Given<Seconds> routing{Seconds(0), "0: no kernels of their own"};
  Given<double> expert_traffic{1, "1: the fewest bytes"};  ///< of bringing tokens to experts and back
  double tile_rows = 1;                                    ///< of libraries' products of experts
  Given<Seconds> gathering_routing = routing;              ///< instead, where products gather their tokens themselves
  std::span<const std::string> gathering_formats;          ///< of weights whose products do so in libraries
  std::shared_ptr<const ExpertKernels> experts;            ///< none: layers with experts have no kernels of their own
  ExpertKernel expert_kernel = ExpertKernel::library;
  std::string chip;         ///< whose tables of blocks hold
  Given<Seconds> start;     ///< of every kernel, beyond the launch of kernels measured individually
  Given<Seconds> quantise;  ///< for each product in 8 bits or fewer: scaling and casting activations
  Given<Seconds> launch;    ///< host time per kernel, a lower bound of a pass
  bool captured = false;    ///< decode steps are replayed from a graph and have no launches
  Given<Seconds> step;      ///< host time between two steps: scheduling, sampling
  Given<Seconds> sequence;  ///< host time for each sequence of a step
  Given<Seconds> beside;    ///< host time for each sequence while the step runs: the longer of both counts
  Given<Seconds> sampling;  ///< chip time to pick the next token of a sequence, beyond finding the likeliest
  Given<Seconds> first;     ///< host time before the first token of a prompt
  Given<Seconds> one_shot;  ///< latency of an all-reduce in which each device reads all others' arrays; 0: none
  Given<Seconds> meet;      ///< time that devices wait for each other at each collective
};

/// The file of all effects: numbers by family, or by how software fuses.
struct ServingCalibration : MeasuredFamilies {
  static constexpr std::size_t ways = std::size(fusion_names);
  ServingCalibration() = default;
  /// All neutral.
  explicit ServingCalibration(Families all);

  // Fitted: visit_serving has what each means.
  std::vector<Given<double>> product, decode;
  std::vector<Given<Seconds>> meet, item, vector_item;
  Given<double> copies = 0, vector = 0;
  Given<Seconds> quantise, first, token;
  std::array<Given<Seconds>, ways> start{Seconds(0), Seconds(0), Seconds(0), {Seconds(0), "0: one program per step"}};
  std::array<Given<Seconds>, 2> launch{};  ///< by compiled and interpreted hosts
  /// By scheduler.
  using BySchedulers = std::array<Given<Seconds>, std::size(scheduler_names)>;
  BySchedulers step{{{Seconds(0), "0: no scheduler"}, {}, {}, {}, {}}}, sequence = step, beside{};
  // Counted or measured: catalogue/steps/kinds.toml and serving_memory.toml. Traffic of eager software is fitted.
  std::array<Given<double>, ways> kernels{1, 1, 1, 1}, pointwise{1, 1, 1, 1};
  std::array<RuntimeMemory, ways> memory{};
  StepEffects code;  ///< of eager software, as in training
  std::shared_ptr<const ExpertKernels> experts;

  std::vector<IntervalClass> prefill_intervals, decode_intervals;
  /// For chips without rows, and for stages: of prefill, of decode steps.
  std::array<UnseenIntervals, 2> unseen_prefill, unseen_decode;

  ServingEffects effects(const hardware::Chip& chip, const ServingSoftware& software) const;
};

/// Every number of steps/serving.toml: its table and key, its value, and what it means.
template <class C, class V>
void visit_serving(C& c, V& v) {
  static constexpr std::string_view launching[] = {"fused", "compiled", "eager", ""}, eager[] = {"", "", "eager", ""},
                                    hosts[] = {"native", "python"},
                                    schedulers[] = {"", "native", "python", "ahead", "ahead-native"},
                                    overlapping[] = {"", "", "", "ahead", "ahead-native"};
  v.table("products", [&](auto& t) {
    t.by_family("slowdown", c.product, "matmuls in a step over matmuls by themselves");
    t.number("quantise", c.quantise, "scaling and casting activations for a matmul in 8 bits or fewer");
  });
  v.table("attention", [&](auto& t) {
    t.by_family("decode", c.decode, "attention over caches in a step over attention by itself");
    t.by_family("item", c.item, "core time of a query head over a cache, where no kernel was measured");
    t.by_family("vector_item", c.vector_item, "core time of a query head over a cache, in kernels on vector units");
    t.number("vector", c.vector, "share of the vector units' rate that bounds attention of old kernels");
    t.number("token", c.token, "core time of each token of an unsplit cache");
    t.number("copies", c.copies, "passes over copies of keys and values");
  });
  v.table("pointwise", [&](auto& t) {
    t.by_name("traffic", eager, c.pointwise, "bytes of element-wise steps over those that are counted");
  });
  v.table("collectives",
          [&](auto& t) { t.by_family("meet", c.meet, "time that devices wait for each other at a collective"); });
  v.table("step", [&](auto& t) {
    t.by_name("start", launching, c.start, "start of a kernel, beyond the launch of kernels by themselves");
    t.by_name("launch", hosts, c.launch, "host time of a kernel");
    t.by_name("host", schedulers, c.step, "host time between two steps");
    t.by_name("sequence", schedulers, c.sequence, "host time of each sequence of a step");
    t.by_name("beside", overlapping, c.beside, "host time of each sequence while the step before runs");
    t.number("first", c.first, "host time before the first token of a prompt");
  });
}

/// Error classes of a step, narrowest first: family and kind of model, kind of model, all. None where no prefill or
/// decode steps were measured on the family. `family` is that of the chip, nullptr if it has none.
std::vector<std::string> serving_classes(const Family* family, const model::Transformer& model);
/// Coordinates of a step of `batch` sequences with `context` tokens each, to tell whether it extrapolates.
std::vector<Coordinate> serving_coordinates(double chips, const model::Transformer& model, double batch,
                                            double context);

/// Read files like catalogue/steps/serving.toml and serving_memory.toml; report every fault at once.
Result<ServingCalibration> read_serving_steps(std::string_view document, std::string_view file, Families families);
Result<void> read_serving_memory(std::string_view document, std::string_view file, ServingCalibration& steps);
/// The effects of the catalogue; neutral if it has none. `experts`: also kernels of layers with experts.
Result<ServingCalibration> serving_steps_of(const hardware::Catalogue& catalogue, bool experts = true);
/// The tables of a file that reads back as these; `source` is the key of their source.
std::string serving_steps_text(const ServingCalibration& steps, std::string_view source);

}  // namespace assay::numbers
