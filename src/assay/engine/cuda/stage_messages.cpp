#include "assay/engine/cuda/stage_messages.h"

#include <algorithm>
#include <map>
#include <set>

#include "assay/base/index.h"
#include "assay/base/result.h"

namespace assay::engine {
namespace {

using MessageKind = StageMessage::Kind;
using Work = clock::PipelineWork;

/// What an operation needs of other stages, and what it sends.
struct Exchanged {
  std::vector<std::pair<StageMessage, std::int64_t>> needed, sent;  ///< with the other stage
};

Exchanged exchanged_by(const StageParts& parts, std::int64_t stage, const clock::PipelineOperation& operation,
                       std::int64_t tied) {
  const std::int64_t m = operation.microbatch, direction = parts.direction(operation), last = parts.count() - 1;
  const std::int64_t here = parts.part_of(stage, operation.chunk);
  const auto stage_of = [&](std::int64_t part) { return parts.stage_of(part, direction); };
  Exchanged out;
  if (operation.work == Work::forward) {
    if (here > 0) out.needed.push_back({{MessageKind::activations, here, m}, stage_of(here - 1)});
    if (here < last) out.sent.push_back({{MessageKind::activations, here + 1, m}, stage_of(here + 1)});
  } else if (operation.work != Work::backward_weight) {
    if (here < last) out.needed.push_back({{MessageKind::activation_gradients, here, m}, stage_of(here + 1)});
    for (std::int64_t i = 0; i < tied; ++i) {
      if (here == last) out.sent.push_back({{MessageKind::tied_gradients, i, m}, stage_of(0)});
      if (here == 0) out.needed.push_back({{MessageKind::tied_gradients, i, m}, stage_of(last)});
    }
    if (here > 0) out.sent.push_back({{MessageKind::activation_gradients, here - 1, m}, stage_of(here - 1)});
  }
  const auto is_own = [&](const auto& message) { return message.second == stage; };
  std::erase_if(out.needed, is_own);
  std::erase_if(out.sent, is_own);
  return out;
}

}  // namespace

std::vector<SentMessage> stage_messages(const StageParts& parts, std::int64_t tied) {
  const std::int64_t stages = parts.shape().stages;
  std::vector<SentMessage> all;
  std::map<std::pair<std::int64_t, StageMessage>, std::int64_t> needed;  // by stage and message: before its operation
  std::vector<std::int64_t> ends;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const clock::StageOrder order = parts.order(stage);
    ends.push_back(std::ssize(order));
    for (std::int64_t i = 0; i < ends.back(); ++i) {
      const Exchanged some = exchanged_by(parts, stage, order[at(i)], tied);
      for (const auto& [what, from] : some.needed) needed[{stage, what}] = i;
      for (const auto& [what, to] : some.sent) all.push_back({what, stage, to, i, 0, 0});
    }
  }
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
      next;  // by channel: when the one sent later is received
  for (std::size_t i = all.size(); i-- > 0;) {
    const auto known = needed.find({all[i].to, all[i].what});
    if (known == needed.end()) throw InternalError("a stage sends what nobody needs");
    const auto [later, is_last] = next.try_emplace({all[i].from, all[i].to}, known->second);
    all[i].received_before = later->second = std::min(later->second, known->second);
  }
  for (SentMessage& one : all) {
    one.arrived_before = ends[at(one.from)];
    for (const SentMessage& back : all)
      if (back.from == one.to && back.to == one.from && back.sent_after >= one.received_before &&
          back.received_before > one.sent_after)
        one.arrived_before = std::min(one.arrived_before, back.received_before);
  }
  return all;
}

std::vector<std::pair<std::int64_t, std::int64_t>> stage_channels(const StageParts& parts, std::int64_t tied) {
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const SentMessage& message : stage_messages(parts, tied)) pairs.insert({message.from, message.to});
  const std::int64_t stages = parts.shape().stages;
  for (std::int64_t stage = 0; parts.is_dual() && stage < stages; ++stage)  // sums of both copies of the model
    pairs.insert({stage, stages - 1 - stage});
  const std::int64_t first = parts.stage_of(0, 0), last = parts.stage_of(parts.count() - 1, 0);
  if (tied > 0 && first != last) pairs.insert({first, last});  // the embedding's new weights
  return {pairs.begin(), pairs.end()};
}

}  // namespace assay::engine
