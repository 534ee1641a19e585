#include "assay/predict/serving/step_prices.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "assay/predict/serving/step_totals.h"

namespace assay::serving {

StepPrices::StepPrices(const ServingSetup& setup, std::shared_ptr<const Blocks> blocks)
    : setup_(setup), from_(std::move(blocks)) {
  for (const ServingProfile::Block& block : *from_) {
    Block& out = blocks_.emplace_back();
    out.of = &block;
    for (const ServedKernel& kernel : block.kernels) {
      const double started = block.layers * kernel.count * kernel.started(setup.effects);
      launches_ += started;
      if (kernel.attends) attention_launches_ += started;
      Priced priced{&kernel, law_of(setup.rates, kernel.kernel), served_work(kernel, {})};
      if (streams(priced, out.streams)) continue;
      if (priced.law == kernel::Law::product && kernel.tiles && kernel.blocks == numbers::ExpertBlockChoice{})
        priced.product.emplace(kernel::ServingKernels{setup.rates, setup.effects}, kernel.kernel, *kernel.tiles);
      out.kernels.push_back(std::move(priced));
      add_ideal_lines(kernel, out);
    }
    for (const ServedCollective& collective : block.collectives) {
      const double count = block.layers * collective.count;
      launches_ += count;
      auto known = std::find_if(collectives_.begin(), collectives_.end(), [&](const StepCollective& one) {
        return one.last_tokens == block.last_tokens && one.collective.same(collective);
      });
      if (known == collectives_.end()) {
        known = collectives_.insert(known, {collective, block.last_tokens});
        known->collective.count = 0.0;
      }
      known->collective.count += count;
    }
  }
}

/// All but rooflines is linear in the sequences and in the share of experts with tokens.
void StepPrices::add_ideal_lines(const ServedKernel& kernel, Block& block) {
  constexpr double some = 64;  // sequences: neither the fixed part nor the other one hides the other
  const auto at = [&](double sequences, double touched, double n, Work& sum) {
    ServingTime time;
    add_ideal(setup_, kernel, load_of(kernel, sequences, touched), block.of->layers * kernel.count, time);
    sum.compute += n * time.compute;
    sum.memory += n * time.memory;
    sum.flops += n * time.flops;
    sum.attention_flops += n * time.attention_flops;
    sum.attention_bytes += n * time.attention_bytes;
  };
  Ideal& line = kernel.attends ? attention_ : block.of->last_tokens ? heads_ : tokens_;
  at(some, 0.0, 2.0, line.fixed);
  at(2.0 * some, 0.0, -1.0, line.fixed);
  at(2.0 * some, 0.0, 1.0 / some, line.each);
  at(some, 0.0, -1.0 / some, line.each);
  at(some, 1.0, 1.0, block.experts);
  at(some, 0.0, -1.0, block.experts);
}

void StepPrices::Work::add_to(ServingTime& time, double times) const {
  time.compute += times * compute;
  time.memory += times * memory;
  time.flops += times * flops;
  time.attention_flops += times * attention_flops;
  time.attention_bytes += times * attention_bytes;
}

Seconds StepPrices::price(Priced& priced, const KernelLoad& load) const {
  auto& [kernel, law, work, product] = priced;
  set_load(*kernel, load, work);
  if (product) return (*product)(work.kernel);
  return kernel::price(Plain{}, law, work.kernel, work.details, {setup_.rates, setup_.effects}, kernel->tiles.get());
}

/// Reads the line and the root off the price of a kernel: without bytes, with some, and with four times as many.
bool StepPrices::streams(Priced priced, std::vector<Streams>& streams) const {
  const ServedKernel& kernel = *priced.kernel;
  const bool alike = is_stream(kernel.kernel.kind) && !setup_.effects.code && kernel.narrowed == Bytes() &&
                     kernel.narrowed_experts == Bytes();
  if (!alike || kernel.bytes.fixed < Bytes() || kernel.bytes.moving < Bytes()) return false;
  const auto with = [&](Bytes bytes) { return price(priced, {1.0, 1.0, {}, bytes}); };
  Streams one;
  if (kernel.bytes.moving > Bytes()) {
    constexpr Bytes some(1 << 20);  // as long as memory takes to answer: neither the line nor the root hides the other
    const double x = some / kernel.bytes.moving;
    const Seconds none = with(Bytes()), once = with(some) - none, fourfold = with(4.0 * some) - none;
    one.lead = kernel.bytes.fixed / kernel.bytes.moving;
    one.fixed = none;
    one.line = (fourfold - 2.0 * once) / (2.0 * x);
    one.root = (4.0 * once - fourfold) / (2.0 * std::sqrt(x));
  } else {
    one.fixed = with(kernel.bytes.fixed);
  }
  const auto same = std::find_if(streams.begin(), streams.end(), [&](const Streams& s) { return s.lead == one.lead; });
  Streams& sum = same == streams.end() ? streams.emplace_back(Streams{one.lead, {}, {}, {}}) : *same;
  sum.fixed += kernel.count * one.fixed;
  sum.line += kernel.count * one.line;
  sum.root += kernel.count * one.root;
  return true;
}

const ServingTime& StepPrices::kernels(const StepSizes& sizes) {
  if (2 * known_.size() >= places_.size()) {
    places_.assign(std::max<std::size_t>(16, 2 * places_.size()), 0);
    for (std::uint32_t i = 0; i < known_.size(); ++i) place_of(known_[i].first) = i + 1;
  }
  std::uint32_t& place = place_of(sizes);
  if (place == 0) {
    known_.emplace_back(sizes, added_up(sizes));
    place = static_cast<std::uint32_t>(known_.size());
  }
  return known_[place - 1].second;
}

std::uint32_t& StepPrices::place_of(const StepSizes& sizes) {
  const auto hashed = [](double size, int by) { return std::rotl(std::bit_cast<std::uint64_t>(size), by); };
  std::size_t at =
      ((hashed(sizes.tokens, 0) ^ hashed(sizes.attention, 21) ^ hashed(sizes.heads, 42)) * 0x9e3779b97f4a7c15u) >>
      32;  // Fibonacci hashing
  while (true) {
    std::uint32_t& place = places_[at++ & (places_.size() - 1)];  // a power of two
    if (place == 0 || known_[place - 1].first == sizes) return place;
  }
}

ServingTime StepPrices::added_up(const StepSizes& sizes) {
  ServingTime time;
  const auto add = [&](const Ideal& line, double sequences) {
    if (!(sequences > 0.0)) return;
    line.fixed.add_to(time, 1.0);
    line.each.add_to(time, sequences);
  };
  add(tokens_, sizes.tokens);
  add(attention_, sizes.attention);
  add(heads_, sizes.heads);
  for (Block& block : blocks_) add_block(block, sizes, time);
  return time;
}

void StepPrices::add_block(Block& block, const StepSizes& sizes, ServingTime& time) const {
  const double sequences = block.of->last_tokens ? sizes.heads : sizes.tokens;
  const double touched = block.of->touched(sequences), fullest = block.of->fullest_of(touched);
  const bool has_experts = block.of->experts > 0.0;
  Seconds layer, rooflines;
  if (sequences > 0.0) {
    if (has_experts) block.experts.add_to(time, touched);
    for (const Streams& s : block.streams) {
      const double x = s.lead + sequences;
      layer += s.fixed + s.line * x + s.root * std::sqrt(x);
    }
  }
  for (Priced& priced : block.kernels) {
    const ServedKernel& kernel = *priced.kernel;
    const double n = kernel.attends ? sizes.attention : sequences;
    if (!(n > 0.0)) continue;
    const Flops flops = kernel.flops(n);
    KernelLoad load = load_of(kernel, n, touched);
    Seconds least = roofline_of(Plain{}, setup_.rates, kernel, load, flops);
    rooflines += kernel.count * least;
    if (kernel.expert_bytes > Bytes() || kernel.narrowed_experts > Bytes()) {
      time.padding += block.of->layers * kernel.count * kernel.padding(n, touched, setup_.effects.tile_rows);
      load = load_of(kernel, n, fullest);
      least = roofline_of(Plain{}, setup_.rates, kernel, load, flops);
    }
    layer += kernel.count * std::max(price(priced, load), least);
  }
  time.rooflines += block.of->layers * rooflines;
  time.estimate += block.of->layers * layer;
}

void remember_prices(const ServingSetup& setup, kernel::TileTables& tables, ServingProfile& profile) {
  find_tiles(setup, tables, profile);
  profile.prices = std::make_shared<StepPrices>(setup, profile.blocks);
}

}  // namespace assay::serving
