// What whole training steps cost beyond their kernels and collectives one by one: numbers of the chip's family and of
// the way the software works. catalogue/steps/training.toml holds them; docs/validation.md says how well they do.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/estimate/families.h"
#include "assay/estimate/interval.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/chip.h"
#include "assay/hardware/cluster.h"
#include "assay/lower/recompute.h"
#include "assay/model/transformer.h"

namespace assay::estimate {

/// How the software starts kernels and fuses what is element-wise.
enum class Fusion : std::uint8_t {
  fused,     ///< hand-written fused kernels (Megatron, Transformer Engine)
  compiled,  ///< a compiler fuses what it finds (torch.compile)
  eager,     ///< every operation is a kernel of its own
  xla        ///< compiled as a whole (JAX); always on TPUs
};
inline constexpr std::string_view fusion_names[] = {"fused", "compiled", "eager", "xla"};

/// Which tensor-parallel collectives run beside products.
enum class TensorOverlap : std::uint8_t {
  none,      ///< each waits for what is before it
  backward,  ///< those of gradients beside products that make gradients of weights
  all        ///< the others, too: in pieces beside the products that need them
};

/// What the user says of the software.
struct StepSoftware {
  Fusion fusion = Fusion::fused;
  /// The same of logits and loss, which may be fused where layers are not and the other way round; as `fusion` if
  /// absent.
  std::optional<Fusion> loss = std::nullopt;
  bool captured = false;        ///< kernels are replayed from a graph: the host does not start them one by one
  bool fixed_capacity = false;  ///< experts get equally many slots, the rest is dropped: routing can be captured, too
  bool first_flash = false;     ///< attention as the first FlashAttention or its Triton version does it
  /// All experts of a device in one product, whose kernel gates and quantises as well; nothing of it asks the host.
  bool fused_experts = false;
  TensorOverlap tensor_overlap = TensorOverlap::all;
  bool expert_overlap = true;  ///< where the schedule allows it, tokens travel to experts while others compute
};

/// All neutral: without a calibration nothing is added.
struct StepEffects {
  double product = 1;                         ///< time of products among other kernels over that of products alone
  double attention = 1, plain_attention = 1;  ///< the same of attention, with flash kernels and without
  double unaligned = 1;                       ///< of plain attention whose heads fit no tensor core: no multiple of 8
  double pointwise = 1;                       ///< bytes that element-wise steps move over the fewest
  double composed = 1;                        ///< the same of steps that frameworks have no kernel for, over the others
  double cast = 1;                            ///< the same of what is quantised for products
  double loss = 1;                            ///< the same of logits and loss
  double scan = 1;              ///< of state spaces: their kernels over the arithmetic of the recurrence at the peak
  double expert_product = 1;    ///< products of experts over those of dense layers: ragged, uneven
  double expert_traffic = 1;    ///< bytes to sort tokens by expert and back over the fewest
  double expert_pointwise = 1;  ///< gates and casts between an expert's products over other element-wise steps
  double tensor_waited = 1, context_waited = 1;  ///< shares of collectives that nothing hides
  double beside_waited = 1;     ///< of tensor-parallel collectives beside gradients of weights, before `tensor_waited`
  double expert_waited = 1;     ///< the same of experts, under schedules that have another microbatch at work meanwhile
  double contention = 0;        ///< share of weights' collectives that costs time although others compute meanwhile
  double gradients_waited = 0;  ///< share of the reduction of gradients that nothing hides at least
  double straggler = 0;         ///< of the step, per doubling of the chips beyond eight
  Seconds fixed;                ///< per step: data, logging, clipping
  Seconds launch;               ///< that the host takes for each step of the program
  Seconds routed_launch;        ///< the same in layers whose shapes depend on where tokens are routed
  double activations = 1;       ///< bytes kept for the backward pass over the fewest
  double logits = 1;            ///< bytes of logits and their gradients over the fewest
  double reserved = 1;          ///< bytes that the allocator takes over those in use at the peak
  Bytes context;                ///< of the driver and the communication library, outside of the allocator
  bool joins_products = false;  ///< those that read the same activation are one
  bool reruns_layers = false;   ///< full recomputation makes again what no gradient reads, too
  bool frees_gradients = false;  ///< gradients come to be in the backward pass and are freed after the update

  /// What software makes again under a policy.
  lower::Recompute executed(lower::Recompute policy) const {
    return reruns_layers && policy == lower::Recompute::full() ? lower::Recompute::whole() : policy;
  }
};

/// Which families a steps file has numbers of. All numbers by family are in this order.
struct MeasuredFamilies {
  Families families;
  std::vector<char> measured;  ///< by family: 1 where its steps were measured; else its numbers are neutral

  MeasuredFamilies() = default;
  explicit MeasuredFamilies(Families all) : families(std::move(all)), measured(families.size(), 0) {}
  /// Nullptr where the chip has no family.
  const Family* family(const hardware::Chip& chip) const { return family_of(families, chip); }
  bool has_steps(const hardware::Chip& chip) const;
  /// Whether a step is one program of a compiler on this chip.
  bool compiled_whole(const hardware::Chip& chip) const;
};

/// The file of all effects: numbers by family, or by how software fuses.
struct StepCalibration : MeasuredFamilies {
  static constexpr std::size_t ways = std::size(fusion_names);
  StepCalibration() = default;
  /// All neutral.
  explicit StepCalibration(Families all);

  std::vector<double> product, attention;
  std::vector<double> stream;             ///< time of element-wise kernels over that of those measured by themselves
  std::vector<double> tensor_overlapped;  ///< share of collectives that is exposed where software overlaps all
  std::array<double, ways> pointwise{1, 1, 1, 1}, cast{1, 1, 1, 1}, loss{1, 1, 1, 1};
  std::array<double, ways> activations{1, 1, 1, 1}, logits{1, 1, 1, 1}, reserved{1, 1, 1, 1};  ///< of memory
  std::array<Bytes, ways> context{};
  std::array<Seconds, ways> launch{};
  double plain_attention = 1, first_flash = 1, unaligned = 1;
  double beside_waited = 1;
  std::array<double, ways> expert_product{1, 1, 1, 1}, expert_traffic{1, 1, 1, 1};
  double fused_expert_product = 1;  ///< the same as expert_product of a kernel that gates and quantises, too
  double composed = 1, scan = 1, expert_waited = 1, context_waited = 1;
  double contention = 0, gradients_waited = 0, straggler = 0;
  double omni_path = 1;  ///< of its bandwidth that collectives see, over that of other networks
  Seconds fixed;
  std::vector<IntervalClass> time_intervals, memory_intervals;

  StepEffects effects(const hardware::Chip& chip, const StepSoftware& software) const;
};

/// Classes of steps by what their errors have in common, the narrowest first; and of their peaks of memory.
/// `family` is that of the cluster's chips, nullptr where they have none.
std::vector<std::string> step_classes(const Family* family, const hardware::Cluster& cluster,
                                      const model::Transformer& model);
std::vector<std::string> memory_classes(const Family* family, const hardware::Cluster& cluster);
/// Adds which kinds of models were measured: the shares of layers with state spaces and of those of an encoder.
void add_kinds(const model::Transformer& model, std::vector<Coordinate>& at);
/// Where a step lies among those that were measured.
std::vector<Coordinate> step_coordinates(const hardware::Cluster& cluster, const model::Transformer& model,
                                         std::int64_t sequence);
bool has_experts(const model::Transformer& model);
bool has_gated_experts(const model::Transformer& model);
bool has_state_spaces(const model::Transformer& model);

/// The numbers of catalogue/steps/training.toml; the first fault with its place.
Result<StepCalibration> read_steps(std::string_view document, std::string_view file, Families families);
/// Those of the catalogue; neutral ones where it has none.
Result<StepCalibration> steps_of(const hardware::Catalogue& catalogue);
/// How the clock follows a limit of power: catalogue/steps/power.toml.
struct PowerClock {
  double exponent = 0;     ///< of the limit over what the chip may draw; the clock over its own
  double least_share = 1;  ///< of that power down to which this holds
};
Result<PowerClock> power_clock_of(const hardware::Catalogue& catalogue);

/// The tables that read back as these; `source` is the key of their source.
std::string steps_text(const StepCalibration& steps, std::string_view source);

}  // namespace assay::estimate
