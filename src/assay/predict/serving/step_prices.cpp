#include "assay/predict/serving/step_prices.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "assay/predict/serving/step_totals.h"

namespace assay::serving {

StepPrices::StepPrices(const ServingSetup& setup, std::shared_ptr<const Blocks> blocks)
    : setup_(setup), from_(std::move(blocks)) {
  for (const ServingProfile::Block& block : *from_) {
    blocks_.emplace_back().of = &block;
    for (const ServedKernel& kernel : block.kernels) {
      const double count = block.layers * kernel.count, started = count * kernel.started(setup.effects);
      launches_ += started;
      if (kernel.attends) attention_launches_ += started;
      if (streams(kernel, block.last_tokens, count)) continue;
      add_ideal_lines(kernel, count, blocks_.back());
      if (!is_tiled(kernel, count))
        others_.push_back(
            {&kernel, blocks_.size() - 1, count, law_of(setup.rates, kernel.kernel), served_work(kernel, {})});
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
void StepPrices::add_ideal_lines(const ServedKernel& kernel, double count, Block& block) {
  constexpr double some = 64;  // sequences: neither the fixed part nor the other one hides the other
  const auto at = [&](double sequences, double touched, double n, Work& sum) {
    ServingTime time;
    add_ideal(setup_, kernel, load_of(kernel, sequences, touched), count, time);
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
  set_load(*priced.kernel, load, priced.work);
  return kernel::price(Plain{}, priced.law, priced.work.kernel, priced.work.details, {setup_.rates, setup_.effects},
                       priced.kernel->tiles.get());
}

/// Reads the line and the root off the price of a kernel: without bytes, with some, and with four times as many.
bool StepPrices::streams(const ServedKernel& kernel, bool heads, double count) {
  const bool alike = is_stream(kernel.kernel.kind) && !setup_.effects.code && kernel.narrowed == Bytes() &&
                     kernel.narrowed_experts == Bytes();
  if (!alike || kernel.bytes.fixed < Bytes() || kernel.bytes.moving < Bytes()) return false;
  Priced priced{&kernel, 0, count, law_of(setup_.rates, kernel.kernel), served_work(kernel, {})};
  const auto with = [&](Bytes bytes) { return price(priced, {1.0, 1.0, {}, bytes}); };
  Streams one{heads, 0.0, {}, {}, {}};
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
  const auto same = std::find_if(streams_.begin(), streams_.end(),
                                 [&](const Streams& s) { return s.heads == heads && s.lead == one.lead; });
  Streams& sum = same == streams_.end() ? streams_.emplace_back(Streams{heads, one.lead, {}, {}, {}}) : *same;
  sum.fixed += count * one.fixed;
  sum.line += count * one.line;
  sum.root += count * one.root;
  return true;
}

/// Takes a product that is cut into tiles.
bool StepPrices::is_tiled(const ServedKernel& kernel, double count) {
  const kernel::KernelRates& rates = setup_.rates;
  const kernel::MatmulShape& shape = kernel.kernel.product;
  if (law_of(rates, kernel.kernel) != kernel::Law::product || kernel.attends) return false;
  if (!(kernel.blocks == numbers::ExpertBlockChoice{}) || kernel.narrowed > Bytes()) return false;
  if (!kernel.tiles && !runs_grouped(*rates.matmul, shape)) return false;
  Product one{{{rates, setup_.effects}, kernel.kernel, kernel.tiles.get()}, &kernel, blocks_.size() - 1, count};
  one.has_experts = kernel.expert_bytes > Bytes();
  one.batch = kernel.batch;
  one.m = kernel.m;
  const Flops row(2.0 * shape.n * shape.k);
  one.work = {kernel.flops.fixed / row, kernel.flops.moving / row};
  one.compute = {kernel.flops.fixed * kernel.time_per_flop, kernel.flops.moving * kernel.time_per_flop};
  one.moved = {kernel.bytes.fixed / rates.hbm, kernel.bytes.moving / rates.hbm};
  one.experts = kernel.expert_bytes / rates.hbm;
  return products_.push_back(std::move(one)), true;
}

std::uint32_t& StepPrices::place_of(const StepSizes& sizes) {
  const auto hashed = [](double size, int by) { return std::rotl(std::bit_cast<std::uint64_t>(size), by); };
  std::size_t at =
      ((hashed(sizes.tokens, 0) ^ hashed(sizes.attention, 21) ^ hashed(sizes.heads, 42)) * 0x9e3779b97f4a7c15u) >>
      32;  // Fibonacci hashing
  while (true) {
    std::uint32_t& place = places_[at++ & (places_.size() - 1)];  // a power of two
    if (place == 0 || known_[place - 1].sizes == sizes) return place;
  }
}

const ServingTime& StepPrices::kernels(const StepSizes& sizes) {
  if (2 * known_.size() >= places_.size()) {
    places_.assign(std::max<std::size_t>(16, 2 * places_.size()), 0);
    for (std::uint32_t i = 0; i < known_.size(); ++i) place_of(known_[i].sizes) = i + 1;
  }
  std::uint32_t& place = place_of(sizes);
  if (place == 0) {
    known_.push_back({sizes, {}});
    add_up(sizes, known_.back().time);
    place = static_cast<std::uint32_t>(known_.size());
  }
  return known_[place - 1].time;
}

void StepPrices::add_up(const StepSizes& sizes, ServingTime& time) {
  const auto add = [&](const Ideal& line, double sequences) {
    if (!(sequences > 0.0)) return;
    line.fixed.add_to(time, 1.0);
    line.each.add_to(time, sequences);
  };
  add(tokens_, sizes.tokens);
  add(attention_, sizes.attention);
  add(heads_, sizes.heads);
  for (const Streams& s : streams_) {
    const double sequences = s.heads ? sizes.heads : sizes.tokens, x = s.lead + sequences;
    if (sequences > 0.0) time.estimate += s.fixed + s.line * x + s.root * std::sqrt(x);
  }
  for (Block& block : blocks_) {
    block.sequences = block.of->last_tokens ? sizes.heads : sizes.tokens;
    block.touched = block.of->touched(block.sequences);
    block.fullest = block.of->fullest_of(block.touched);
    if (block.of->experts > 0.0 && block.sequences > 0.0) block.experts.add_to(time, block.touched);
  }
  add_products(time);
  add_others(sizes, time);
}

void StepPrices::add_products(ServingTime& time) const {
  Seconds estimate, rooflines;
  for (const Product& one : products_) {
    const Block& block = blocks_[one.block];
    const double n = block.sequences, used = one.has_experts ? block.fullest : 1.0;
    if (!(n > 0.0)) continue;
    // Experts without tokens are no part of the product; the others have more tokens each.
    const double batch = used * one.batch(n), rows = std::max(1.0, one.m(n) / used);
    const double load = std::max(1.0, one.work(n) / (batch * rows));
    const Seconds compute = one.compute(n), others = one.moved(n), moved = others + used * one.experts;
    const Seconds least = std::max(compute, moved);
    estimate += one.count * std::max(one.price(batch, rows, load, moved), least);
    if (!one.has_experts) {
      rooflines += one.count * least;
      continue;
    }
    rooflines += one.count * std::max(compute, others + block.touched * one.experts);
    time.padding += one.count * one.kernel->padding(n, block.touched, setup_.effects.tile_rows);
  }
  time.rooflines += rooflines;
  time.estimate += estimate;
}

void StepPrices::add_others(const StepSizes& sizes, ServingTime& time) {
  for (Priced& priced : others_) {
    const ServedKernel& kernel = *priced.kernel;
    const Block& block = blocks_[priced.block];
    const double n = kernel.attends ? sizes.attention : block.sequences;
    if (!(n > 0.0)) continue;
    const Flops flops = kernel.flops(n);
    KernelLoad load = load_of(kernel, n, block.touched);
    Seconds least = roofline_of(Plain{}, setup_.rates, kernel, load, flops);
    time.rooflines += priced.count * least;
    if (kernel.expert_bytes > Bytes() || kernel.narrowed_experts > Bytes()) {
      time.padding += priced.count * kernel.padding(n, block.touched, setup_.effects.tile_rows);
      load = load_of(kernel, n, block.fullest);
      least = roofline_of(Plain{}, setup_.rates, kernel, load, flops);
    }
    time.estimate += priced.count * std::max(price(priced, load), least);
  }
}

void remember_prices(const ServingSetup& setup, kernel::TileTables& tables, ServingProfile& profile) {
  find_tiles(setup, tables, profile);
  profile.prices = std::make_shared<StepPrices>(setup, profile.blocks);
}

}  // namespace assay::serving
