// One step of a profile as calls of operations, with each moment of the device's time given to one of them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "assay/profile/trace/summary.h"

namespace assay::compare {

/// What is known of an operation from its name and inputs.
struct OperationFacts {
  enum class Kind : std::uint8_t { product, attention, attention_gradient, other };
  Kind kind = Kind::other;
  std::string shapes;                           ///< of the inputs
  std::vector<std::vector<std::int64_t>> dims;  ///< of the operands of products, of queries and keys of attention
  std::string attention;                        ///< which one it is, as --attention-kernel names it; may be empty
  std::optional<Dtype> format;                  ///< of products and attention
  bool masked = false;                          ///< of attention: with a mask of its own
  bool causal = false;                          ///< attention that skips what it masks
  bool to_all = false;                          ///< causal attention that no window limits
  Flops flops;                                  ///< of products and attention; 0: not known
  double elements = 0;                          ///< of its largest tensor; 0: not known
  double width = 0;                             ///< last dimension of that tensor; 0: not known
};

/// Kernels of one call of an operation or, where none is known, one kernel.
struct MeasuredCall : OperationFacts {
  trace::WorkClass work = trace::WorkClass::computation;
  std::size_t category = 0;  ///< of the kernel that takes longest, in Vocabulary::categories
  std::string label;         ///< the operation or, without one, the kernel
  std::string kernel;        ///< the one that takes longest
  std::string names;         ///< of the operation and of those around it, in lower case
  bool backward = false;     ///< inside of the backward pass
  bool known = false;        ///< an operation stands around its kernels
  bool fused = false;        ///< a compiler made its kernel of several operations
  bool handover = false;     ///< a send or a receive from one device to another
  std::int64_t kernels = 0;
  std::optional<trace::Ticks> launched;  ///< when the host started the first of its kernels
  std::uint32_t thread = 0;              ///< of the host, in Trace::lanes
  trace::Ticks started = 0, ended = 0;
  trace::Ticks duration = 0;  ///< sum over its kernels
  trace::Ticks alone = 0;     ///< the part of the step that is given to it
  trace::Ticks waited = 0;    ///< of `alone`: a collective waits for other ranks
  trace::Ticks late = 0;      ///< of host_gaps: idle before its kernels
};

struct MeasuredStep {
  std::string name;                 ///< as the profile marks it; empty: the whole profile
  std::int64_t steps = 1;           ///< that it holds
  trace::Ticks busy = 0;            ///< from the first event of the device in the profile to the end of the step
  trace::Ticks total = 0;           ///< alone of all calls + host_gaps + other_gaps
  trace::Ticks host_gaps = 0;       ///< idle, and the next kernel was launched after the device had run dry
  trace::Ticks other_gaps = 0;      ///< idle for another reason, or for one that the profile does not tell
  bool replayed = false;            ///< a graph starts kernels instead of the host
  double replayed_share = 0;        ///< of the events of the device
  std::vector<MeasuredCall> calls;  ///< in the order in which the device started them
};

/// How long collectives wait for other ranks, by their events.
using Waits = std::unordered_map<std::uint32_t, trace::Ticks>;

/// The step of median time or, without steps, the whole profile. While kernels run at once, the time belongs to
/// computation before communication before copies, and to what began first.
MeasuredStep measured_step(const trace::Trace& trace, const trace::Vocabulary& vocabulary, std::int64_t device,
                           const Waits& waits = {});

}  // namespace assay::compare
