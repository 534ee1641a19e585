// What the stages of a pipeline send each other, and when it is received and has arrived: messages of one stage to
// another are received in the order in which they are sent, as GPUs need it.
#pragma once
#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "assay/engine/program/stage_parts.h"

namespace assay::engine {

struct StageMessage {
  enum class Kind { activations, activation_gradients, tied_gradients };
  Kind kind = Kind::activations;
  std::int64_t part = 0;  ///< of the model that it is for; of tied gradients, which of them
  std::int64_t microbatch = 0;
  friend auto operator<=>(const StageMessage&, const StageMessage&) = default;
};

/// A message with the operations of both stages, by their place in the order of each. Operations as many as a stage has
/// mean its end.
struct SentMessage {
  StageMessage what;
  std::int64_t from = 0, to = 0;  ///< stages
  std::int64_t sent_after = 0;
  std::int64_t received_before = 0;  ///< with a message that was sent later, or where it is needed
  /// The sender then has something that the receiver sent after it had received this.
  std::int64_t arrived_before = 0;
};

/// Of all stages, by sender and then in the order of sending. `tied` tensors of each microbatch go from the head to the
/// embedding.
std::vector<SentMessage> stage_messages(const StageParts& parts, std::int64_t tied);

/// Pairs of stages of which the first sends to the second, in a step or after it.
std::vector<std::pair<std::int64_t, std::int64_t>> stage_channels(const StageParts& parts, std::int64_t tied);

}  // namespace assay::engine
