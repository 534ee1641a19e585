#include "assay/ask/verbs/shard/overlap.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/verbs/train/timeline_members.h"
#include "assay/base/text.h"
#include "assay/program/plan/chunk_schedule.h"

namespace assay::verbs::shard {
namespace {

/// The collective of a plan that can be cut into chunks of its product, and what else is moved.
struct Overlapping {
  const program::Step* step = nullptr;
  plan::ChunkOrder order = plan::ChunkOrder::gather_first;
  Seconds chunked;  ///< of the collective
  Seconds before;   ///< what other collectives take before the product and its chunks
  Seconds after;    ///< and after them: also the second half of an all-reduce
};

Overlapping overlapping(const plan::Plan& plan, double efficiency) {
  Overlapping out;
  const auto product = std::find_if(plan.steps.begin(), plan.steps.end(),
                                    [](const program::Step& step) { return step.op == program::Op::product; });
  Seconds most;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const program::Step& step = plan.steps[i];
    const bool is_after = i > static_cast<std::size_t>(product - plan.steps.begin());
    const bool can = is_after ? step.is(program::Collective::reduce_scatter) || step.is(program::Collective::all_reduce)
                              : step.is(program::Collective::all_gather);
    if (!can || Seconds(plan.costs[i]) <= most) continue;
    most = Seconds(plan.costs[i]);
    out.step = &step;
    out.order = is_after ? plan::ChunkOrder::reduce_after : plan::ChunkOrder::gather_first;
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const program::Step& step = plan.steps[i];
    if (!program::is_collective(step.op)) continue;
    const Seconds time = Seconds(plan.costs[i]) / efficiency;
    const bool halves = &step == out.step && step.is(program::Collective::all_reduce);  // a reduce-scatter and a gather
    if (&step == out.step) out.chunked = halves ? time / 2.0 : time;
    if (halves || (&step != out.step && i > static_cast<std::size_t>(product - plan.steps.begin())))
      out.after += halves ? time / 2.0 : time;
    else if (&step != out.step)
      out.before += time;
  }
  return out;
}

enum Lane { blocking_network, blocking_compute, chunk_network, chunk_compute };

draw::Timeline timeline_of(const Overlapping& moved, const std::string& collective, Seconds product,
                           const plan::ChunkSchedule& chunks) {
  draw::Timeline out;
  out.title = "A product after its collective, and in chunks beside it";
  out.lanes = {{"blocking: network"}, {"blocking: arithmetic"}, {"chunks: network"}, {"chunks: arithmetic"}};
  out.classes = {{"network", draw::network_colour}, {"arithmetic", draw::arithmetic_colour}};
  const auto bar = [&](Lane lane, Seconds start, Seconds length, std::string label) {
    const bool is_network = lane == blocking_network || lane == chunk_network;
    if (length > Seconds())
      out.bars.push_back({static_cast<std::size_t>(lane), start, start + length, std::move(label), is_network ? 0 : 1});
    return start + length;
  };
  Seconds at = bar(blocking_network, Seconds(), moved.before, "other collectives");
  if (moved.order == plan::ChunkOrder::gather_first) {
    at = bar(blocking_network, at, moved.chunked, collective);
    at = bar(blocking_compute, at, product, "product");
  } else {
    at = bar(blocking_compute, at, product, "product");
    at = bar(blocking_network, at, moved.chunked, collective);
  }
  bar(blocking_network, at, moved.after, "what follows");
  at = bar(chunk_network, Seconds(), moved.before, "other collectives");
  for (std::size_t i = 0; i < chunks.hops.size(); ++i)
    bar(chunk_network, at + chunks.hops[i].start, chunks.hops[i].end - chunks.hops[i].start,
        fmt::format("hop {}", i + 1));
  for (std::size_t i = 0; i < chunks.products.size(); ++i)
    bar(chunk_compute, at + chunks.products[i].start, chunks.products[i].end - chunks.products[i].start,
        fmt::format("chunk {}", i + 1));
  bar(chunk_network, at + chunks.end, moved.after, "what follows");
  return out;
}

}  // namespace

Result<void> add_overlap(const Request& request, const Query& query, const program::Mesh& mesh, const plan::Plan& plan,
                         report::Response& response) {
  if (!query.cluster)
    return fail("--overlap", "it compares times, and --on names no cluster", "add --on tpu-v5e:2x4",
                Error::Kind::usage);
  if (!query.expression.right)
    return fail("--overlap", "a resharding has no product to overlap with", "give a product", Error::Kind::usage);
  const hardware::Chip& chip = query.cluster->chip;
  const Overlapping moved = overlapping(plan, hardware::network_efficiency(chip));
  if (!moved.step)
    return fail("--overlap", "the plan has no collective that could be cut into chunks of the product",
                "one that gathers an operand or reduces the result, e.g. \"A[I, J_X] * B[J, K_X] -> C[I, K_X]\"");
  const Seconds product = plan.flops / *query.peak / chip.efficiency.matrix.value;
  const auto devices = static_cast<std::int64_t>(program::shard_count(mesh, moved.step->axes));
  const plan::ChunkSchedule chunks = plan::chunk_schedule(moved.order, devices, product, moved.chunked);
  const Seconds others = moved.before + moved.after, blocking = others + moved.chunked + product,
                overlapped = others + chunks.end;
  const std::string collective =
      fmt::format("{}_{}", program::name(*moved.step), program::axes_text(mesh, moved.step->axes));
  draw::Timeline timeline = timeline_of(moved, collective, product, chunks);
  timeline.subtitle = fmt::format("{} one after the other, {} in {} chunks, {} of arithmetic alone", human(blocking),
                                  human(overlapped), devices, human(product));
  response.results.emplace_back("overlap", report::Members{{"collective", collective},
                                                           {"chunks", devices},
                                                           {"product", product},
                                                           {"blocking", blocking},
                                                           {"overlapped", overlapped},
                                                           {"speedup", blocking / overlapped},
                                                           {"timeline", train::timeline_members(timeline)}});
  response.headline += fmt::format("; {}", timeline.subtitle);
  if (request.picture()) response.picture = draw::draw_timeline(timeline);
  return {};
}

}  // namespace assay::verbs::shard
