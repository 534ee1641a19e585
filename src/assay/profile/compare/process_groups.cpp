#include "assay/profile/compare/process_groups.h"

#include <algorithm>
#include <map>

#include "assay/base/text.h"

namespace assay::compare {
namespace {

using program::Role;
using trace::ProcessGroup;

/// How far apart the ranks of a group lie; 0 where they lie irregularly or the file leaves some out.
std::int64_t stride_of(const ProcessGroup& group) {
  if (group.ranks.size() < 2 || static_cast<std::int64_t>(group.ranks.size()) != group.size) return 0;
  const std::int64_t stride = group.ranks[1] - group.ranks[0];
  for (std::size_t i = 1; i < group.ranks.size(); ++i)
    if (group.ranks[i] - group.ranks[i - 1] != stride) return 0;
  return std::max<std::int64_t>(stride, 0);
}

std::optional<Role> described_role(const ProcessGroup& group, const trace::Vocabulary& vocabulary) {
  const std::string description = lower_case(group.description);
  for (const trace::GroupNames& known : vocabulary.groups)
    if (std::find(known.names.begin(), known.names.end(), description) != known.names.end()) return known.role;
  return std::nullopt;
}

bool in_backward(const trace::Trace& trace, const trace::Vocabulary& vocabulary, std::uint32_t event) {
  for (std::uint32_t at = trace.events[event].parent; at != trace::none; at = trace.events[at].parent)
    if (vocabulary.role(trace.name(trace.events[at])) == trace::MarkRole::backward) return true;
  return false;
}

/// By what goes through groups of all ranks.
std::optional<Role> role_by_traffic(const trace::Trace& trace, const trace::Vocabulary& vocabulary,
                                    const trace::RankSummary& rank, std::int64_t ranks) {
  std::map<std::string, Bytes> moved;
  Bytes all, backward;
  for (const trace::CollectiveSequence& sequence : rank.collectives) {
    if (sequence.devices != ranks) continue;
    moved[sequence.kind] += sequence.bytes;
    all += sequence.bytes;
    const auto inside = std::count_if(sequence.calls.begin(), sequence.calls.end(),
                                      [&](const auto& call) { return in_backward(trace, vocabulary, call.event); });
    backward += static_cast<double>(inside) / static_cast<double>(sequence.calls.size()) * sequence.bytes;
  }
  constexpr double most = 0.9, some = 0.1;
  if (!(all > Bytes(0))) return std::nullopt;
  if (moved["all-gather"] > some * all && moved["reduce-scatter"] > some * all) return Role::fsdp;
  if (moved["all-reduce"] > most * all && backward > most * all) return Role::data;
  return std::nullopt;
}

}  // namespace

bool RunMesh::splits_data_alone() const {
  return complete && std::all_of(axes.begin(), axes.end(), [](const program::MeshAxis& axis) {
           return axis.role == Role::data || axis.role == Role::fsdp;
         });
}

RunMesh run_mesh(const trace::Trace& trace, const trace::Vocabulary& vocabulary, const trace::RankSummary& rank) {
  RunMesh out;
  const std::int64_t ranks = rank.world_size.value_or(0);
  if (ranks < 2) return out;
  std::map<std::pair<std::int64_t, std::int64_t>, program::MeshAxis> named;  // by stride and size
  bool whole = false;
  for (const ProcessGroup& group : trace.groups) {
    const std::int64_t stride = stride_of(group);
    whole |= group.size == ranks;
    if (stride == 0) continue;
    if (const auto role = described_role(group, vocabulary)) {
      const bool overlaid = role == Role::expert;  // on ranks that split data or sequences in layers without experts
      if (!overlaid)
        named.insert_or_assign({stride, group.size}, program::MeshAxis{group.description, group.size, role});
    }
  }
  std::int64_t devices = 1, inner = 1;
  bool nested = true;
  for (const auto& [place, axis] : named) {
    nested = nested && place.first == inner;
    inner = place.first * axis.size;
    devices *= axis.size;
    out.axes.insert(out.axes.begin(), axis);
  }
  out.complete = devices == ranks && nested;
  if (out.complete || !named.empty()) return out;
  if (!whole) return out;
  const auto role = role_by_traffic(trace, vocabulary, rank, ranks);
  out.axes = {{"all ranks", ranks, role}};
  out.complete = role.has_value();
  return out;
}

}  // namespace assay::compare
