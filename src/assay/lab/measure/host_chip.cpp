#include "assay/lab/measure/host_chip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace assay::measure {
namespace {

/// The fastest read of data that fits in this cache level but not in the level below.
BytesPerSecond cache_rate(const Machine& machine, std::size_t level, const std::vector<MeasuredRow>& rows) {
  const auto per_core = [&](std::size_t i) { return machine.caches[i].size / machine.caches[i].cores; };
  const Bytes most = 0.8 * per_core(level), least = level > 0 ? per_core(level - 1) : Bytes(0);
  BytesPerSecond best(0);
  for (const MeasuredRow& row : rows) {
    if (row.op != "read" || !(row.median > Seconds(0))) continue;
    const Bytes all(static_cast<double>(row.a)), each = all / machine.cores;
    if (each <= most && each > least) best = std::max(best, all / row.median);
  }
  return best;
}

FlopsPerSecond best_product(const std::vector<MeasuredRow>& rows, std::string_view dtype) {
  FlopsPerSecond best(0);
  for (const MeasuredRow& row : rows)
    if (row.op == "gemm" && row.dtype == dtype && row.median > Seconds(0))
      best = std::max(
          best, Flops(2.0 * static_cast<double>(row.a) * static_cast<double>(row.b) * static_cast<double>(row.c)) /
                    row.median);
  return best;
}

std::string gigabytes(BytesPerSecond rate) { return fmt::format("\"{:.4g} GB/s\"", rate.in(1_GB_per_s)); }

std::string memory_level(std::string_view name, Bytes capacity, BytesPerSecond bandwidth, std::string_view per) {
  std::string text = fmt::format("\n[memory.{}]\nsource = \"system\"\n", name);
  if (!per.empty()) text += fmt::format("per = \"{}\"\n", per);
  if (capacity > Bytes(0))
    text += fmt::format("capacity = \"{:.0f} KiB\"\n", capacity.in(1_KiB));
  else
    text += "capacity = { value = \"1 GiB\", source = \"assumed\", note = \"not known\" }\n";
  if (bandwidth > BytesPerSecond(0))
    text += fmt::format("bandwidth = {{ value = {}, source = \"measured\" }}\n", gigabytes(bandwidth));
  return text;
}

std::string peaks(const HostRates& r) {
  std::string text = "\n[peak]\nsource = \"measured\"\n";
  const auto line = [&](std::string_view dtype, FlopsPerSecond peak, int bits) {
    if (!(peak > FlopsPerSecond(0))) return;
    const std::string how = r.clock > Hertz(0)
                                ? fmt::format("{} cores x {:.4g} GHz x {} units of {} lanes with multiply-add",
                                              r.machine.cores, r.clock.in(1_GHz), r.units, r.machine.vector_bits / bits)
                                : std::string("the fastest product measured");
    text += fmt::format("{} = {{ value = \"{:.5g} GFLOP/s\", source = \"measured\", note = \"{}\" }}\n", dtype,
                        1e3 * peak.in(1_TFLOP_per_s), how);
  };
  line("fp64", r.fp64, 64);
  line("fp32", r.fp32, 32);
  return text;
}

}  // namespace

std::optional<program::Collective> collective_of(std::string_view op) {
  std::string name(op);
  std::replace(name.begin(), name.end(), '_', '-');
  for (const program::CollectiveFacts& each : program::all_collectives)
    if (each.name == name && each.measured_as == each.kind) return each.kind;
  return std::nullopt;
}

std::string plain_text(std::string text) {
  for (char& c : text)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = ' ';
  return text;
}

std::optional<double> shared_cores(const Facts& facts) {
  const double cores = std::strtod(fact(facts, shared_cores_fact).c_str(), nullptr);
  return cores >= 1.0 ? std::optional(cores) : std::nullopt;
}

HostRates host_rates(const Facts& facts, const std::vector<MeasuredRow>& rows) {
  HostRates rates;
  rates.machine = machine_of(facts);
  rates.clock = Hertz(std::max(0.0, std::strtod(fact(facts, "clock Hz").c_str(), nullptr)));
  const FlopsPerSecond single = best_product(rows, "fp32"), twice = best_product(rows, "fp64");
  rates.fp32 = single;
  rates.fp64 = twice;
  if (rates.clock > Hertz(0)) {
    const auto peak = [&](int bits) {
      return Flops(2.0 * rates.machine.cores * rates.units * (rates.machine.vector_bits / bits)) * rates.clock;
    };
    while (rates.units < 64 && (peak(32) < single || peak(64) < twice)) rates.units *= 2;
    if (single > FlopsPerSecond(0)) rates.fp32 = peak(32);
    if (twice > FlopsPerSecond(0)) rates.fp64 = peak(64);
  }
  for (std::size_t i = 0; i < rates.machine.caches.size(); ++i)
    rates.caches.push_back(cache_rate(rates.machine, i, rows));
  Bytes last(0);
  for (const Cache& cache : rates.machine.caches)
    last = std::max(last, cache.size * std::max(1, rates.machine.cores / cache.cores));
  for (const MeasuredRow& row : rows) {
    if (!(row.median > Seconds(0))) continue;
    const Bytes bytes(static_cast<double>(row.a));
    if (row.op == "copy") rates.memory = std::max(rates.memory, 2.0 * bytes / row.median);
    if (row.op == "read" && bytes > 2.0 * last) rates.memory = std::max(rates.memory, bytes / row.median);
    const auto kind = collective_of(row.op);
    if (!kind || row.b < 2) continue;
    rates.ranks = std::max(rates.ranks, row.b);
    const auto count = static_cast<double>(row.b);
    // A limit: cores that idle in the last turn may as well have worked.
    const double turns = std::ceil(count / shared_cores(facts).value_or(count));
    rates.link = std::max(rates.link, turns * program::received_of_array(*kind, count) * bytes / row.median);
  }
  return rates;
}

std::string host_chip_text(const HostRates& rates, const MeasureOrigin& origin, double matrix_share,
                           double memory_share) {
  const Machine& m = rates.machine;
  const std::string processor = plain_text(m.processor), date = plain_text(origin.date);
  std::string text = fmt::format(
      "id = \"host\"\nname = \"this machine: {}\"\nvendor = \"this machine\"\nfamily = \"cpu\"\narchitecture = \"{}\"\n"
      "\n[source.measured]\ntitle = \"measured by assay measure\"\ncommand = \"{}\"\naccessed = {}\n"
      "\n[source.system]\ntitle = \"what the operating system tells\"\ncommand = \"{}\"\naccessed = {}\n",
      processor, processor, plain_text(origin.command), date, plain_text(origin.command), date);
  text += peaks(rates);
  text += fmt::format("\n[cores]\nsource = \"system\"\nkind = \"core\"\ncount = {}\n", m.cores);
  text += "\n[matrix_unit]\ncount = { value = 1, source = \"assumed\", note = \"products run on the vector units\" }\n";
  const double clock = rates.clock > Hertz(0) ? rates.clock.in(1_GHz) : 1.0;
  text += fmt::format(
      "\n[vector_unit]\nsource = \"measured\"\npartitions = {}\nlanes = {}\nalus = 1\nfma = true\n"
      "clock = {{ value = \"{:.4g} GHz\", source = \"{}\", note = \"{}\" }}\n",
      rates.units, std::max(1, m.vector_bits / 32), clock, rates.clock > Hertz(0) ? "measured" : "assumed",
      rates.clock > Hertz(0) ? "a chain of additions, one a cycle" : "not known");
  text += memory_level("hbm", m.memory, rates.memory, "");
  for (std::size_t i = 0; i < m.caches.size() && i < rates.caches.size(); ++i) {
    const Cache& cache = m.caches[i];
    if (cache.level > 3) continue;
    const bool own = cache.cores == 1 && m.cores > 1;
    const double units = own ? 1.0 : std::max(1, m.cores / cache.cores);
    text += memory_level(fmt::format("l{}", cache.level), units * cache.size, rates.caches[i] / (own ? m.cores : 1),
                         own ? "core" : "chip");
  }
  if (rates.link > BytesPerSecond(0))
    text += fmt::format(
        "\n[network.scale_up]\nsource = \"measured\"\nkind = \"switched\"\ntechnology = \"MPI between ranks of this "
        "machine\"\nlinks = 1\nlink_bandwidth = {{ value = {}, source = \"measured\", note = \"the most that a rank "
        "received on its core\" }}\ndomain = {}\n",
        gigabytes(rates.link), rates.ranks);
  text += fmt::format(
      "\n[host]\nchips = {{ value = {}, source = \"assumed\", note = \"ranks of one machine\" }}\n"
      "pcie = {{ value = {}, source = \"assumed\", note = \"the chip is its own host: its memory's bandwidth\" }}\n",
      std::max<std::int64_t>(1, rates.ranks), gigabytes(rates.memory));
  text += fmt::format("\n[efficiency]\nsource = \"measured\"\nmatrix = {:.4g}\nmemory = {:.4g}\n", matrix_share,
                      memory_share);
  return text;
}

}  // namespace assay::measure
