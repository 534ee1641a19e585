#include "assay/ask/verbs/shard/shard.h"

#include <fmt/format.h>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/verbs/train/timeline_members.h"
#include "assay/predict/clock/chunked_product.h"

namespace assay::verbs::shard {
namespace {

enum Lane { blocking_network, blocking_compute, chunk_network, chunk_compute };

draw::Timeline timeline_of(const clock::ChunkedProduct& product) {
  draw::Timeline out;
  out.title = "A product after its collective, and in chunks beside it";
  out.lanes = {{"blocking: network"}, {"blocking: arithmetic"}, {"chunks: network"}, {"chunks: arithmetic"}};
  out.classes = {{"network", draw::network_colour}, {"arithmetic", draw::arithmetic_colour}};
  const auto add = [&](const clock::NamedItems& list, Lane network, Lane compute) {
    clock::run(list.items, [&](std::size_t item, std::int32_t lane, Seconds start, Seconds end) {
      const bool computes = lane == clock::chip_lane;
      if (end > start)
        out.bars.push_back(
            {static_cast<std::size_t>(computes ? compute : network), start, end, list.names[item], computes ? 1 : 0});
    });
  };
  add(product.blocking, blocking_network, blocking_compute);
  add(product.chunked, chunk_network, chunk_compute);
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
  const Seconds product = plan.flops / *query.peak / chip.efficiency.matrix.value;
  const auto cut = clock::chunked_product(mesh, plan, product, hardware::network_efficiency(chip));
  if (!cut)
    return fail("--overlap", "the plan has no collective that could be cut into chunks of the product",
                "one that gathers an operand or reduces the result, e.g. \"A[I, J_X] * B[J, K_X] -> C[I, K_X]\"");
  const Seconds blocking = clock::totals(cut->blocking.items).whole,
                overlapped = clock::totals(cut->chunked.items).whole;
  draw::Timeline timeline = timeline_of(*cut);
  timeline.subtitle = fmt::format("{} one after the other, {} in {} chunks, {} of arithmetic alone", human(blocking),
                                  human(overlapped), cut->chunks, human(product));
  response.results.emplace_back("overlap", report::Members{{"collective", cut->collective},
                                                           {"chunks", cut->chunks},
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
