// The matrix unit: a weight-stationary systolic array, simulated cycle by cycle and in closed form.
//
// X[M,K] times W[K,N] runs on `rows` x `columns` processing elements (PEs); below R = rows and C = columns. W is cut
// into ceil(K/R) * ceil(N/C) tiles of R x C, padded with zeros at the edges and run one after another, K innermost. PE
// (r, c) holds W[r, c] of the tile in the array. In each cycle it multiplies the activation that arrives from the left
// with that weight, adds the partial sum that arrives from above, and passes both on at the clock edge: the activation
// to (r, c + 1), the sum to (r + 1, c). A tile that starts in cycle s feeds X[m, r] into array row r in cycle
// s + m + r, so PE (r, c) works on row m in cycle s + m + r + c. The sum of (m, c) leaves the bottom after cycle
// s + m + R - 1 + c, and sums of tiles over the same outputs are accumulated outside the array.
//
// Weights enter at the top, last row first, one array row per cycle; column c lags by c cycles like the activations, so
// a tile may start R cycles after its load began.
//  * Double buffered: a second weight register per PE is loaded behind the wavefront of the running tile, and a PE
//    switches over when the first activation of the new tile arrives. The load of a tile begins in the cycle in which
//    the tile before it starts, so tiles start max(M, R) cycles apart.
//  * Single buffered: a load overwrites the weights in use, so it waits until the array has drained. Tiles start
//    R + M + (R + C - 2) cycles apart, which is 2R + C + M - 2 per tile (Samajdar et al., SCALE-Sim, ISPASS 2020).
//
// Every cycle is counted in exactly one of five kinds:
//   load    nothing has entered yet: R
//   fill    an activation row enters, and the first one has not yet reached PE (R - 1, C - 1)
//   steady  an activation row enters, and the first one has: fill + steady = tiles * M
//   stall   nothing enters although tiles remain: (tiles - 1) * (tile_interval - M)
//   drain   everything has entered: R + C - 2
//
// Invariants
//  * total = load + fill + steady + stall + drain
//  * useful_macs = M * K * N and useful_macs + padded_macs = tiles * M * R * C
//  * 0 < utilisation <= utilisation_limit <= 1, and a larger M never lowers utilisation
//  * as M grows, utilisation -> utilisation_limit, which is 1 when R divides K and C divides N
//  * simulate_systolic(...).cycles == systolic_cycles(...)
//
// Not modelled: the memory that feeds the array, and the width of the accumulators (MAC counts do not depend on them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::roofline {

// The shape of a matrix unit: `rows` along the contracted dimension, `columns` along the outputs, both at least 1.
struct SystolicArray {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool double_buffered = true;
};

// Where the cycles and the multiply-accumulates (MACs) of one matrix product go; all int64 fields are counts.
struct SystolicCycles {
  std::int64_t tiles = 0;
  std::int64_t total = 0;
  std::int64_t load = 0;
  std::int64_t fill = 0;
  std::int64_t steady = 0;
  std::int64_t stall = 0;
  std::int64_t drain = 0;
  // Cycles per product when the weights stay in the array: M, so 8 for [8,128] x [128,128] on 128 x 128.
  std::int64_t steady_cycles_per_tile = 0;
  std::int64_t useful_macs = 0;
  std::int64_t padded_macs = 0;  // spent on the zeros that pad ragged tiles
  double utilisation = 0;        // useful_macs / (total * rows * columns)
  double padding_waste = 0;      // padded_macs / (total * rows * columns); the remainder to 1 is idle
  double utilisation_limit = 0;  // useful_macs / (useful_macs + padded_macs), reached as M grows

  bool operator==(const SystolicCycles&) const = default;
};

// How many PEs were busy over time: bucket i sums the MACs of cycles [i, i + 1) * cycles_per_bucket, the last may be
// partial. Sums over all buckets equal useful_macs and padded_macs.
struct SystolicActivity {
  static constexpr std::size_t max_buckets = 512;

  std::int64_t cycles_per_bucket = 1;  // the smallest power of two that needs no more than max_buckets
  std::vector<std::int64_t> useful;
  std::vector<std::int64_t> padded;
};

// A simulated product: its cost, how busy the array was, and the product itself, M x N, row by row.
struct SystolicRun {
  SystolicCycles cycles;
  SystolicActivity activity;
  std::vector<double> result;
};

// What every PE holds after one cycle, row by row.
struct SystolicFrame {
  std::size_t rows = 1, columns = 1;
  std::vector<double> weights, activations, sums;
  std::vector<bool> works;  // it multiplied in this cycle
};

// Cycles between the starts of two successive tiles whose weights differ.
std::int64_t tile_interval(const SystolicArray& array, std::int64_t m);

// The cost of X[m,k] times W[k,n] in closed form, in constant time; m, k, n >= 1 and useful_macs + padded_macs < 2^63.
SystolicCycles systolic_cycles(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n);

// The steps simulate_systolic takes, roughly one nanosecond each on a current core; it does not overflow where the
// other functions would, so call it first and use only the closed form if the answer is too large.
double estimated_work(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n);

// Moves x (m x k, row by row) and w (k x n, row by row) through the registers of the array and counts what happens.
// Operands are float and sums double: products are exact, so the result is the same on machines with and without fused
// multiply-add, and equals a plain product exactly as long as sums of integers stay below 2^53.
SystolicRun simulate_systolic(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n,
                              std::span<const float> x, std::span<const float> w);

// Simulates a small array and records what it held after every cycle: rows x columns numbers a cycle.
std::vector<SystolicFrame> systolic_frames(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n,
                                           std::span<const float> x, std::span<const float> w);

// The operands of a checked run: small whole numbers, whose sums are exact in every order.
std::vector<float> checked_operand(std::int64_t count, std::int64_t seed);
inline constexpr std::int64_t checked_x_seed = 3, checked_w_seed = 5;

// A simulated product of small whole numbers, whose sums are exact in every order, and how far its result is from a
// plain product: 0 unless the simulation is wrong.
struct CheckedSystolicRun {
  SystolicRun run;
  double max_error = 0;
};
CheckedSystolicRun simulate_and_check(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n);

}  // namespace assay::roofline
