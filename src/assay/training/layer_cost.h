// What one layer costs: the program's steps, priced and summed by resource, with the data-parallel sizes left open.
// A profile depends on how tokens and weights are split inside of a stage, not on how many stages or replicas there
// are; that is what lets a search price millions of strategies from a few hundred programs.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/estimate/kernels.h"
#include "assay/estimate/training_effects.h"
#include "assay/lower/lowering.h"
#include "assay/network/collectives.h"

namespace assay::training {

/// The axes of a stage by role. Sets of roles are bit sets.
enum class Role : std::uint8_t { replica, fsdp, expert, context, tensor };
inline constexpr std::size_t roles = 5;
using RoleSet = std::uint8_t;
constexpr RoleSet role_bit(Role role) { return static_cast<RoleSet>(1u << static_cast<unsigned>(role)); }
inline constexpr RoleSet every_role = (1u << roles) - 1;
/// Several sets of roles: a bit each, from that of the set 1 on.
using RoleSets = std::uint32_t;
inline constexpr RoleSets every_role_set = ~RoleSets{1};

/// The roles of some axes of stage_mesh(), by their names.
RoleSet roles_of(const program::Mesh& mesh, program::AxisSet axes);

/// The roles of the axes that a collective runs over; that of experts, too, where tokens travel to experts which
/// tensor- or context-parallel devices split.
RoleSet collective_roles(const program::Program& program, const program::Step& step);

/// Collectives of one kind over the same axes and of the same urgency, summed.
struct Traffic {
  network::CollectiveKind kind = network::CollectiveKind::all_gather;
  RoleSet over = 0;     ///< of exchanges between experts with their role, even where other axes alone split experts
  RoleSet divided = 0;  ///< data axes that split the array besides: their sizes divide the bytes
  program::Urgency urgency = program::Urgency::critical;
  bool once = false;
  bool beside = false;  ///< in the backward pass: gradients of weights are made meanwhile, if software lets them
  double bytes = 0;     ///< of the arrays as one group sees them
  double count = 0;     ///< collectives that pay latency one after the other

  /// Whether both move alike, so that software may join them.
  bool goes_with(const Traffic& other) const {
    return kind == other.kind && over == other.over && divided == other.divided && urgency == other.urgency &&
           once == other.once && beside == other.beside;
  }
};

inline constexpr std::size_t max_traffic = 24;  ///< of one pass

/// Mostly a few, which lie in place: a search keeps very many.
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
struct PassProfile {
  Seconds compute, memory, estimate;  ///< sums of the steps; forward work done again is part of it
  Seconds repeated;                   ///< the part of `estimate` that is forward work done again
  Seconds weight_gradients;           ///< the part of it that makes gradients of weights, for which nobody waits
  Seconds busy;                       ///< the part of it in which matrix units draw their full power
  Seconds slowed;                     ///< what the clock of sustained power adds to it if they always do
  Seconds started;                    ///< what the host takes to start its kernels: it is never shorter
  Flops flops, recomputed_flops;
  TrafficList traffic;  ///< at most max_traffic

  /// Weights of a layer travel together, activations one after the other.
  void add(const Traffic& more);
};

struct LayerProfile {
  PassProfile forward, backward;
  Bytes kept;                 ///< from forward to backward, for one microbatch
  Bytes encoded;              ///< kept besides, once for all layers: what the encoder made, or the embedding
  Bytes gathered;             ///< weights that are kept whole besides: of the head, whose backward pass follows at once
  Bytes again;                ///< forward results that the backward pass makes again and holds
  Bytes widest;               ///< the most that one step reads and writes besides weights
  double dense_elements = 0;  ///< of weights on one device before they are shared out over data axes
  double expert_elements = 0;
  double trained_dense = 0, trained_experts = 0;  ///< of these, what has gradients and optimizer states
};

struct TrainingProfile {
  std::vector<LayerProfile> kinds;  ///< of the decoder (then of the encoder)
  /// By kind: weights that its layers share, which a stage holds, adds up and updates once; empty where none do.
  std::vector<LayerProfile> shared;
  LayerProfile embedding, head;
  Bytes boundary;            ///< what passes from stage to stage for one microbatch
  double tied_elements = 0;  ///< of the embedding, where a head on another stage holds a copy of it
};

/// The sets of roles over which its collectives run.
RoleSets role_sets(const TrainingProfile& profile);

/// What a profile depends on besides model and chip.
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
  per_node,   ///< one copy, which is passed on inside of the node
  per_expert  ///< a copy for each of them
};

/// What holds for all strategies of one question.
struct TrainingSetup {
  const model::Transformer* model = nullptr;
  estimate::KernelRates rates;
  lower::Formats formats;
  lower::Optimizer optimizer;
  bool flash = true;
  bool dropout = false;  ///< masks are drawn behind blocks and, without flash attention, inside of it, and kept
  double expert_load = 1.0;
  Dispatch dispatch = Dispatch::per_node;
  std::int64_t source = 0;        ///< tokens of an encoder's sequence; 0: as many as the decoder's
  estimate::StepEffects effects;  ///< of the estimate only

  /// Tokens that an encoder reads where the decoder has `sequence`; 0 without one.
  std::int64_t source_of(std::int64_t sequence) const { return !model->encoder ? 0 : source > 0 ? source : sequence; }
};

/// Everything, or one of two halves: what a microbatch computes depends on tokens and recomputation, how weights and
/// gradients travel on how they are shared out, and neither on the other.
enum class ProfilePart : std::uint8_t { all, work, weights_traffic };

/// A kernel of a training step in the midst of others, unless it is joined with some of them.
Seconds kernel_estimate(const TrainingSetup& setup, const program::Program& program, const program::Step& step);
/// A collective as profiles count it.
Traffic step_traffic(const program::Program& program, const program::Step& step, program::Phase phase);

TrainingProfile make_profile(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part = ProfilePart::all);

}  // namespace assay::training
