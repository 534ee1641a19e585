// What one layer costs: the program's steps, priced and summed by resource, with the data-parallel sizes left open.
// A profile depends on how tokens and weights are sharded inside a stage, not on the number of stages or replicas;
// that lets a search price millions of strategies from a few hundred programs.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/predict/collective/collectives.h"
#include "assay/predict/training/pass_kernels.h"
#include "assay/program/lower/lowering.h"

namespace assay::training {

using program::Role;
inline constexpr std::size_t roles = 5;  ///< of the axes of a stage
/// Some of them, one bit each.
using RoleSet = std::uint8_t;
constexpr RoleSet role_bit(Role role) { return static_cast<RoleSet>(1u << static_cast<unsigned>(role)); }
inline constexpr RoleSet every_role = (1u << roles) - 1;
/// Several sets of roles: one bit per set, counted from set 1.
using RoleSets = std::uint32_t;
inline constexpr RoleSets every_role_set = ~RoleSets{1};

/// The roles of some axes of a stage's mesh.
RoleSet roles_of(const program::Mesh& mesh, program::AxisSet axes);
/// "dp+fsdp"
std::string roles_text(RoleSet set);

/// The roles of the axes that a collective runs over; includes the expert role where tokens travel to experts on
/// tensor- or context-parallel devices.
RoleSet collective_roles(const program::Program& program, const program::Step& step);

/// Collectives of one kind over the same axes and of the same urgency. Those that a pass waits for are equal; weights
/// and gradients of a layer are sent together, as one.
struct Traffic {
  program::Collective kind = program::Collective::all_gather;
  RoleSet over = 0;     ///< includes the expert role for exchanges between experts, whatever axes split them
  RoleSet divided = 0;  ///< data axes that also shard the array: their sizes divide the bytes
  program::Urgency urgency = program::Urgency::critical;
  bool once = false;
  bool overlaps_weight_gradients = false;  ///< in the backward pass: may run concurrently with weight-gradient products
  Bytes bytes;                             ///< of the whole arrays of one group
  double count = 0;                        ///< collectives that each pay latency
  /// FLOP of the products that read what is gathered or make what is reduced, 0 where there are none. Gradients of
  /// input and weight take as many, so that it holds for the product of the same weight that may run concurrently.
  Flops beside;

  /// Whether both can be merged into one entry.
  bool goes_with(const Traffic& other) const {
    return kind == other.kind && over == other.over && divided == other.divided && urgency == other.urgency &&
           once == other.once && overlaps_weight_gradients == other.overlaps_weight_gradients &&
           beside * other.count == other.beside * count &&
           (urgency != program::Urgency::critical || bytes * other.count == other.bytes * count);
  }
};

inline constexpr std::size_t max_traffic = 32;  ///< of one pass

/// A list that stores few entries in place, since a search keeps very many of them.
class TrafficList {
 public:
  std::size_t size() const { return count_; }
  const Traffic* begin() const { return more_.empty() ? few_.data() : more_.data(); }
  const Traffic* end() const { return begin() + count_; }
  Traffic* begin() { return more_.empty() ? few_.data() : more_.data(); }
  Traffic* end() { return begin() + count_; }
  void push_back(const Traffic& traffic) {
    if (count_ == few_.size()) more_.assign(few_.begin(), few_.end());
    if (count_ < few_.size())
      few_[count_] = traffic;
    else
      more_.push_back(traffic);
    ++count_;
  }

 private:
  std::array<Traffic, 5> few_;
  std::vector<Traffic> more_;  ///< all of them, once there are more
  std::size_t count_ = 0;
};

/// One pass of one microbatch through one layer, the embedding or the head.
struct PassProfile : KernelSums<Plain> {
  Flops flops, recomputed_flops;
  TrafficList traffic;  ///< at most max_traffic

  /// Adds a collective; returns its entry of the traffic.
  std::size_t add_traffic(const Traffic& more);
};

struct LayerProfile {
  PassProfile forward, backward;
  Bytes kept;                 ///< from forward to backward, for one microbatch
  Bytes encoded;              ///< kept once for all layers: the encoder's output, or the embedding
  Bytes gathered;             ///< gathered weights that are kept: the head's, since its backward pass follows at once
  Bytes recomputed;           ///< recomputed forward results that the backward pass holds
  Bytes widest;               ///< the most that one step reads and writes, without weights
  double dense_elements = 0;  ///< of weights on one device before sharding over data axes
  double expert_elements = 0;
  double trained_dense = 0, trained_experts = 0;  ///< elements with gradients and optimizer states
};

struct TrainingProfile {
  std::vector<LayerProfile> kinds;  ///< layers of the decoder, then of the encoder
  /// By kind: weights that its layers share, which a stage holds, reduces and updates once; empty if none do.
  std::vector<LayerProfile> shared;
  LayerProfile embedding, head;
  Bytes boundary;            ///< activations between stages, of one microbatch
  double tied_elements = 0;  ///< of the embedding, if a head on another stage holds a copy
};

/// The sets of roles over which its collectives run.
RoleSets role_sets(const TrainingProfile& profile);

/// What the sums of a profile consist of, pass by pass.
struct LayerRecord {
  PassRecord forward, backward;
};
struct ProfileRecord {
  std::vector<LayerRecord> kinds, shared;  ///< as in TrainingProfile
  LayerRecord embedding, head;
};

/// What a profile depends on, other than model and chip.
struct ProfileKey {
  std::int64_t tensor = 1, context = 1, expert = 1, micro_batch = 1, sequence = 1;
  lower::ExpertAxes expert_over;
  bool fsdp = false, replicas = false;
  int zero = 0;
  lower::ResidualScheme residual = lower::ResidualScheme::replicated;
  lower::ContextScheme context_scheme = lower::ContextScheme::gather;
  lower::Recompute recompute;
  friend bool operator==(const ProfileKey&, const ProfileKey&) = default;
};

/// How tokens reach experts on another node.
enum class Dispatch : std::uint8_t {
  per_node,   ///< one copy, forwarded inside the node
  per_expert  ///< one copy per expert
};

/// What holds for all strategies of one question.
struct TrainingSetup {
  const model::Transformer* model = nullptr;
  kernel::KernelRates rates;
  lower::Formats formats;
  lower::Optimizer optimizer;
  bool flash = true;
  bool dropout = false;  ///< masks are stored after blocks and, without flash attention, inside attention
  double expert_load = 1.0;
  Dispatch dispatch = Dispatch::per_node;
  std::int64_t source = 0;       ///< tokens of an encoder sequence; 0: as the decoder's
  numbers::StepEffects effects;  ///< of the estimate only

  /// Encoder tokens for a decoder sequence of `sequence` tokens; 0 without an encoder.
  std::int64_t source_of(std::int64_t sequence) const { return !model->encoder ? 0 : source > 0 ? source : sequence; }
};

/// At which the optimizer moves its bytes at the end of a step.
template <class N>
NumberOf<N, BytesPerSecond> update_rate(const N& num, const TrainingSetup& setup) {
  if (setup.effects.unfused_update > 0.0)
    return kernel::stream_rate(num, setup.rates) /
           num.given("bytes of the update over the fewest", setup.effects.unfused_update);
  return kernel::optimizer_rate(num, setup.rates) / num.given("update among other kernels", setup.effects.update);
}

/// Everything, or one of two independent halves: the work of a microbatch depends on tokens and recomputation, the
/// traffic of weights and gradients on how they are sharded.
enum class ProfilePart : std::uint8_t { all, work, weights_traffic };

/// What prices the kernels of a setup; refers to it.
kernel::TrainingKernels training_kernels(const TrainingSetup& setup);
/// What dropout writes in addition to a layer's results: a byte for each element that goes onto the residual stream,
/// and inside of plain attention a byte and a second copy for each probability. Flash attention regenerates its mask.
template <class N>
struct DropoutBytesOf {
  NumberOf<N, Bytes> residual{}, attention{};
};
using DropoutBytes = DropoutBytesOf<Plain>;
template <class N>
DropoutBytesOf<N> dropout_bytes(const N& num, const program::Program& program, const program::Block& forward);
/// The products that read what a critical tensor-parallel collective gathers, or that make what it reduces, in the
/// same block. Of what is gathered for gradients of both input and weight, those of the input.
std::vector<std::int32_t> neighbour_products(const program::Program& program, const program::Block& block,
                                             std::int32_t collective);
/// The products that hide a collective of a block, the ones that it waits for last: where it overlaps gradients of
/// weights, first those that read the same gradient.
std::vector<std::int32_t> hiding_products(const program::Program& program, const program::Block& block,
                                          std::int32_t collective, bool overlaps_weight_gradients);
/// Bytes that a step reads and writes, excluding weights.
template <class N>
NumberOf<N, Bytes> bytes_around(const N& num, const program::Program& program, const program::Step& step);
/// Of what a step makes, excluding weights.
template <class N>
NumberOf<N, Bytes> bytes_made(const N& num, const program::Program& program, const program::Step& step);
/// Weights that are gathered and kept for the backward pass.
template <class N>
NumberOf<N, Bytes> gathered_bytes(const N& num, const program::Program& program, const program::Block& forward);
/// Whether a tensor is the activations between layers, which a stage sends to the next.
inline bool is_boundary(const program::ProgramTensor& tensor) {
  return tensor.is_given && tensor.tensor_class == program::TensorClass::residual;
}
/// Whether profiles count a weight with those of experts: projections that all experts share are dense.
inline bool of_experts(const model::Weight& weight) {
  return weight.part == model::Part::experts && weight.dims[0].dim == model::LogicalDim::experts;
}
/// The bytes of a collective as profiles count them: data axes that also shard the array are left open.
template <class N>
NumberOf<N, Bytes> traffic_bytes(const N& num, const program::Program& program, const program::Step& step);

TrainingProfile make_profile(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part = ProfilePart::all);

/// A profile, what it consists of, and the program that it counts, in which data axes have a size that stands for any.
struct RecordedProfile {
  program::Program program;  ///< without recomputation
  TrainingProfile profile;
  ProfileRecord record;
};
RecordedProfile record_profile(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part);
/// Whether a collective belongs to the work of a microbatch, not to the traffic of weights and gradients.
inline bool is_work(const program::Step& step) { return step.urgency == program::Urgency::critical && !step.once; }

}  // namespace assay::training
