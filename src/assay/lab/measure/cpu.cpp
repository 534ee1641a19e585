#include "assay/lab/measure/cpu.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "assay/engine/kernels/blas.h"
#include "assay/lab/measure/team.h"

namespace assay::measure {
namespace {

using Clock = std::chrono::steady_clock;
Seconds since(Clock::time_point start) { return Seconds(std::chrono::duration<double>(Clock::now() - start).count()); }

/// Memory pool: each call gets the next part, which was last used a whole pool ago.
class Pool {
 public:
  explicit Pool(std::size_t bytes)
      : bytes_(bytes / page * page), memory_(static_cast<std::byte*>(std::aligned_alloc(page, bytes_)), &std::free) {
    if (!memory_) throw std::bad_alloc();
  }
  std::size_t bytes() const { return bytes_; }
  std::byte* data() { return memory_.get(); }
  /// The next `wanted` bytes, at most the size of the pool.
  std::byte* next(std::size_t wanted) {
    wanted = (wanted + line - 1) / line * line;
    if (at_ + wanted > bytes_) at_ = 0;
    std::byte* part = memory_.get() + at_;
    at_ += wanted;
    return part;
  }

 private:
  static constexpr std::size_t page = 4096, line = 64;
  std::size_t bytes_, at_ = 0;
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
};

/// Each word is an ordinary 64-bit number, and so are both halves as 32-bit numbers.
void fill(Pool& pool, Team& team) {
  team.run([&](int member) {
    std::mt19937_64 random(static_cast<std::uint64_t>(member));
    auto* words = reinterpret_cast<std::uint64_t*>(pool.data());
    const std::size_t all = pool.bytes() / sizeof *words, each = all / static_cast<std::size_t>(team.size()) + 1;
    const std::size_t first = each * static_cast<std::size_t>(member);
    for (std::size_t i = first; i < std::min(all, first + each); ++i)
      words[i] = (random() & 0x003fffff003fffff) | 0x3f0000003f000000;
  });
}

/// Reads all bytes, wide enough for every vector unit, and returns a value that depends on them.
std::uint64_t read_all(const std::byte* from, std::size_t bytes) {
  using Block [[gnu::vector_size(32)]] = std::uint64_t;
  Block sums[4] = {};
  for (std::size_t at = 0; at + sizeof sums <= bytes; at += sizeof sums) {
    const auto* blocks = reinterpret_cast<const Block*>(from + at);
    sums[0] ^= blocks[0], sums[1] ^= blocks[1], sums[2] ^= blocks[2], sums[3] ^= blocks[3];
  }
  const Block all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  std::uint64_t one = 0;
  for (std::size_t i = 0; i < 4; ++i) one ^= all[i];
  return one;
}

class Run {
 public:
  Run(Measurement& out, Extent extent, int threads, const Machine& machine)
      : out_(out), extent_(extent), team_(threads), operands_(pool_bytes(machine)), results_(pool_bytes(machine) / 2) {
    fill(operands_, team_);
    team_.run([&](int) {});
    std::memset(results_.data(), 0, results_.bytes());
    engine::use_blas_threads(threads);
  }

  /// Runs everything several times and keeps each row's fastest median, so that temporary disturbances drop out.
  void all() {
    constexpr int rounds = 3;
    std::vector<MeasuredRow> best;
    for (int round = 0; round < rounds; ++round) {
      out_.rows.clear();
      out_.notes.clear();
      once();
      if (best.empty()) best = out_.rows;
      for (std::size_t i = 0; i < best.size(); ++i)
        if (out_.rows[i].median < best[i].median) best[i] = out_.rows[i];
    }
    out_.rows = std::move(best);
  }

 private:
  void once() {
    if (extent_ != Extent::check) {
      reads();
      copies();
    }
    products<float>("fp32");
    products<double>("fp64");
  }

  static std::size_t pool_bytes(const Machine& machine) {
    double last = 0;
    for (const Cache& cache : machine.caches)
      last = std::max(last, cache.size.value() * std::max(1, machine.cores / cache.cores));
    const double wanted = std::max(4.0 * last, (512_MiB).value());
    return static_cast<std::size_t>(machine.memory > Bytes(0) ? std::min(wanted, machine.memory.value() / 4) : wanted);
  }

  /// The median over as many calls as the time for one row allows.
  template <class Call>
  MeasuredRow timed(MeasuredRow row, Call call) {
    const Seconds budget = extent_ == Extent::quick ? 10_ms : 30_ms;
    constexpr std::size_t least_calls = 2, most_calls = 101;
    call();
    std::vector<Seconds> times;
    const auto start = Clock::now();
    while (times.size() < most_calls && (times.size() < least_calls || since(start) < budget)) {
      const auto one = Clock::now();
      call();
      times.push_back(since(one));
    }
    row.median = median_of(times);
    row.least = times.front();
    return row;
  }

  template <class T>
  void products(const char* dtype) {
    for (const ProductShape& shape : cpu_products(extent_)) {
      const auto a = static_cast<std::size_t>(shape.m * shape.k) * sizeof(T);
      const auto b = static_cast<std::size_t>(shape.n * shape.k) * sizeof(T);
      const auto c = static_cast<std::size_t>(shape.m * shape.n) * sizeof(T);
      if (a + b > operands_.bytes() || c > results_.bytes()) {
        out_.notes.push_back(std::string(dtype) + " product too large for this machine's memory");
        continue;
      }
      out_.rows.push_back(timed({"gemm", dtype, shape.m, shape.n, shape.k}, [&] {
        const auto* left = reinterpret_cast<const T*>(operands_.next(a));
        const auto* right = reinterpret_cast<const T*>(operands_.next(b));
        engine::multiply_matrices(shape.m, shape.n, shape.k, engine::Matrix<T>{left}, engine::Matrix<T>{right},
                                  reinterpret_cast<T*>(results_.next(c)));
      }));
    }
  }

  void copies() {
    const auto most = static_cast<std::int64_t>(std::min(results_.bytes(), std::size_t{256} << 20));
    for (const std::int64_t bytes : sizes(std::int64_t{64} << 10, most, extent_ == Extent::quick ? 8 : 2)) {
      const MeasuredRow row{"copy", "int8", bytes};
      const auto whole = static_cast<std::size_t>(bytes), part = whole / static_cast<std::size_t>(team_.size());
      const auto copy = [&](bool together) {
        std::byte *to = results_.next(whole), *from = operands_.next(whole);
        if (!together) return void(std::memcpy(to, from, whole));
        team_.run([&](int member) {
          const std::size_t at = part * static_cast<std::size_t>(member);
          std::memcpy(to + at, from + at, member + 1 == team_.size() ? whole - at : part);
        });
      };
      MeasuredRow one = timed(row, [&] { copy(false); }), all = timed(row, [&] { copy(true); });
      out_.rows.push_back(one.median < all.median ? one : all);  // software that knows both would choose the faster
    }
  }

  void reads() {
    const auto threads = static_cast<std::size_t>(team_.size());
    std::vector<std::uint64_t> seen(threads);
    const auto most = static_cast<std::int64_t>(operands_.bytes() / threads);
    for (const std::int64_t each : sizes(std::int64_t{8} << 10, most, extent_ == Extent::quick ? 4 : 2)) {
      const auto part = static_cast<std::size_t>(each);
      const std::size_t passes = std::max<std::size_t>(1, (std::size_t{16} << 20) / part);
      MeasuredRow row = timed({"read", "int8", each * team_.size()}, [&] {
        team_.run([&](int member) {
          const auto i = static_cast<std::size_t>(member);
          for (std::size_t pass = 0; pass < passes; ++pass) seen[i] += read_all(operands_.data() + i * part, part);
        });
      });
      row.median *= 1.0 / static_cast<double>(passes);
      row.least *= 1.0 / static_cast<double>(passes);
      out_.rows.push_back(std::move(row));
    }
    std::uint64_t all = 0;
    for (const std::uint64_t one : seen) all ^= one;
    volatile std::uint64_t kept = all;  // otherwise the compiler could drop the reads
    (void)kept;
  }

  Measurement& out_;
  Extent extent_;
  Team team_;
  Pool operands_, results_;
};

}  // namespace

Hertz measured_clock() {
  constexpr int tries = 20, rounds = 50'000, chain = 64;
  Hertz best(0);
  for (int i = 0; i < tries; ++i) {
    std::uint64_t x = static_cast<std::uint64_t>(i) + 1, step = 3;
    asm volatile("" : "+r"(step));  // some processors add constants without taking a cycle
    const auto start = Clock::now();
    for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 64
      for (int link = 0; link < chain; ++link) {
        x += step;
        asm volatile("" : "+r"(x));  // keeps the additions, one after the other
      }
    }
    best = std::max(best, static_cast<double>(rounds) * chain / since(start));
  }
  return best;
}

Measurement measure_cpu(const CpuRequest& request, const Machine& machine) {
  Measurement out;
  const int threads = request.threads > 0 ? request.threads : machine.cores;
  Machine used = machine;
  used.cores = std::min(threads, machine.cores);
  out.facts = facts_of(used);
  const auto clock = static_cast<std::int64_t>(measured_clock().value());
  out.facts.emplace_back("clock Hz", std::to_string(clock));
  out.facts.emplace_back("BLAS", engine::blas_configuration());
  try {
    Run(out, request.extent, threads, machine).all();
  } catch (const std::bad_alloc&) {
    out.notes.emplace_back("not enough memory to measure");
  }
  return out;
}

}  // namespace assay::measure
