#include "assay/predict/clock/chunked_product.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::clock {
namespace {

/// The collective of a plan that is cut, and what else is moved.
struct CutCollective {
  const program::Step* step = nullptr;
  bool gathers = true;  ///< before the product
  Seconds time;         ///< of what is cut
  Seconds before;       ///< other collectives, before the product and its chunks
  Seconds after;        ///< after them: also the second half of an all-reduce
};

CutCollective cut_collective(const plan::Plan& plan, double efficiency) {
  CutCollective out;
  const auto product = std::find_if(plan.steps.begin(), plan.steps.end(),
                                    [](const program::Step& step) { return step.op == program::Op::product; });
  const auto is_after = [&](std::size_t i) { return i > static_cast<std::size_t>(product - plan.steps.begin()); };
  Seconds most;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const program::Step& step = plan.steps[i];
    const bool can = is_after(i)
                         ? step.is(program::Collective::reduce_scatter) || step.is(program::Collective::all_reduce)
                         : step.is(program::Collective::all_gather);
    if (!can || Seconds(plan.costs[i]) <= most) continue;
    most = Seconds(plan.costs[i]);
    out.step = &step;
    out.gathers = !is_after(i);
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const program::Step& step = plan.steps[i];
    if (!program::is_collective(step.op)) continue;
    const Seconds time = Seconds(plan.costs[i]) / efficiency;
    const bool halves = &step == out.step && step.is(program::Collective::all_reduce);  // a reduce-scatter and a gather
    if (&step == out.step) out.time = halves ? time / 2.0 : time;
    if (halves || (&step != out.step && is_after(i)))
      out.after += halves ? time / 2.0 : time;
    else if (&step != out.step)
      out.before += time;
  }
  return out;
}

}  // namespace

std::int32_t NamedItems::add(Item item, std::string name) {
  items.push_back(std::move(item));
  names.push_back(std::move(name));
  return static_cast<std::int32_t>(items.size()) - 1;
}

void add_chunks(bool gathers, std::int64_t chunks, Seconds product, Seconds collective, std::int32_t before,
                NamedItems& out) {
  const Seconds each = product / static_cast<double>(chunks);
  const Seconds hop = chunks > 1 ? collective / static_cast<double>(chunks - 1) : Seconds();
  std::int32_t arrived = before;
  for (std::int64_t i = 0; i < chunks; ++i) {
    if (gathers && i > 0)
      arrived = out.add({Item::Kind::collective, network_lane, hop, {before}}, fmt::format("hop {}", i));
    const std::int32_t made = out.add({Item::Kind::kernel, chip_lane, each, {arrived}}, fmt::format("chunk {}", i + 1));
    if (!gathers && i + 1 < chunks)
      out.add({Item::Kind::collective, network_lane, hop, {made}}, fmt::format("hop {}", i + 1));
  }
}

std::optional<ChunkedProduct> chunked_product(const program::Mesh& mesh, const plan::Plan& plan, Seconds product,
                                              double efficiency) {
  const CutCollective cut = cut_collective(plan, efficiency);
  if (!cut.step) return std::nullopt;
  ChunkedProduct out;
  out.collective = fmt::format("{}_{}", program::name(*cut.step), program::axes_text(mesh, cut.step->axes));
  out.chunks = static_cast<std::int64_t>(program::shard_count(mesh, cut.step->axes));
  const auto moved = [](Seconds time, std::vector<std::int32_t> after) {
    return Item{Item::Kind::collective, network_lane, time, std::move(after)};
  };
  for (NamedItems* list : {&out.blocking, &out.chunked}) {
    const std::int32_t before = list->add(moved(cut.before, {}), "other collectives");
    std::int32_t last = before;
    if (list == &out.chunked) {
      add_chunks(cut.gathers, out.chunks, product, cut.time, before, *list);
      last = static_cast<std::int32_t>(list->items.size()) - 1;
    } else {
      if (cut.gathers) last = list->add(moved(cut.time, {before}), out.collective);
      last = list->add({Item::Kind::kernel, chip_lane, product, {last}}, "product");
      if (!cut.gathers) last = list->add(moved(cut.time, {last}), out.collective);
    }
    list->add(moved(cut.after, {last}), "what follows");
  }
  return out;
}

}  // namespace assay::clock
