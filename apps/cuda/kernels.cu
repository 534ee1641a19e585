#include <math_constants.h>

#include "cuda/kernels.h"
#include "cuda/pack.cuh"

namespace assay::cuda {
namespace {

__global__ void start_kernel(float* master, bf16* weight, Count n, Uniform drawn) {
  for (Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<Count>(gridDim.x) * blockDim.x) {
    // splitmix64 (Steele, Lea, Flood 2014), as on virtual devices.
    Count whole = drawn.first, rest = i;
    for (int d = 4; d >= 0; --d) {
      whole += rest % drawn.sizes[d] * drawn.strides[d];
      rest /= drawn.sizes[d];
    }
    unsigned long long z =
        drawn.seed * 0xd1342543de82ef95ULL + (static_cast<unsigned long long>(whole) + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    const double uniform = static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
    const auto value = static_cast<float>(drawn.shift + drawn.factor * uniform);
    if (master) master[i] = value;
    if (weight) weight[i] = half_of(value);
  }
}

__global__ void cast_kernel(const float* from, bf16* to, Count n) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (i < n) to[i] = half_of(from[i]);
}

__global__ void embed_kernel(const int* tokens, const bf16* table, bf16* rows, TableShape s) {
  const Count row = blockIdx.x, from = tokens[row] - s.first;
  const bool is_there = from >= 0 && from < s.rows;
  for (Count i = threadIdx.x * lanes; i < s.width; i += blockDim.x * lanes)
    store(rows + row * s.width + i, is_there ? load(table + from * s.width + i) : Pack{});
}

__global__ void embed_grad_kernel(const bf16* d_rows, const int* tokens, float* d_table, TableShape s) {
  const Count row = blockIdx.x, to = tokens[row] - s.first;
  if (to < 0 || to >= s.rows) return;
  for (Count i = threadIdx.x; i < s.width; i += blockDim.x)
    atomicAdd(d_table + to * s.width + i, number(d_rows[row * s.width + i]));
}

/// A block has one row at a time; each thread keeps `packs` packs of it.
template <int packs>
__global__ void norm_kernel(const bf16* x, const bf16* scale, bf16* y, NormShape shape) {
  const bf16* row = x + blockIdx.x * shape.width;
  Pack mine[packs];
  float2 sum{0.0F, 0.0F};
  for (int p = 0; p < packs; ++p) {
    const Count i = (p * threads + static_cast<Count>(threadIdx.x)) * lanes;
    if (i >= shape.width) break;
    mine[p] = load(row + i);
    for (const bf16 value : mine[p].values) sum.x += number(value) * number(value);
  }
  const float inverse = rsqrtf(block_sum(sum).x / static_cast<float>(shape.width) + shape.epsilon);
  for (int p = 0; p < packs; ++p) {
    const Count i = (p * threads + static_cast<Count>(threadIdx.x)) * lanes;
    if (i >= shape.width) break;
    const Pack by = load(scale + i);
    for (int j = 0; j < lanes; ++j)
      mine[p].values[j] = half_of(number(mine[p].values[j]) * inverse * number(by.values[j]));
    store(y + blockIdx.x * shape.width + i, mine[p]);
  }
}

template <int packs>
__global__ void norm_grad_kernel(const bf16* dy, const bf16* x, const bf16* scale, bf16* dx, float* partial,
                                 NormShape shape) {
  float d_scale[packs][lanes] = {};
  const auto n = static_cast<float>(shape.width);
  for (Count row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    Pack of_x[packs], of_y[packs];
    float2 sum{0.0F, 0.0F};
    for (int p = 0; p < packs; ++p) {
      const Count i = (p * threads + static_cast<Count>(threadIdx.x)) * lanes;
      if (i >= shape.width) break;
      of_x[p] = load(x + row * shape.width + i);
      of_y[p] = load(dy + row * shape.width + i);
      const Pack by = load(scale + i);
      for (int j = 0; j < lanes; ++j) {
        const float value = number(of_x[p].values[j]);
        sum.x += value * value;
        sum.y += number(of_y[p].values[j]) * number(by.values[j]) * value;
      }
    }
    sum = block_sum(sum);
    const float inverse = rsqrtf(sum.x / n + shape.epsilon), along = sum.y * inverse / n;
    for (int p = 0; p < packs; ++p) {
      const Count i = (p * threads + static_cast<Count>(threadIdx.x)) * lanes;
      if (i >= shape.width) break;
      const Pack by = load(scale + i);
      Pack out;
      for (int j = 0; j < lanes; ++j) {
        const float unit = number(of_x[p].values[j]) * inverse, gradient = number(of_y[p].values[j]);
        out.values[j] = half_of(inverse * (gradient * number(by.values[j]) - unit * along));
        d_scale[p][j] += gradient * unit;
      }
      store(dx + row * shape.width + i, out);
    }
  }
  for (int p = 0; p < packs; ++p) {
    const Count i = (p * threads + static_cast<Count>(threadIdx.x)) * lanes;
    if (i >= shape.width) break;
    for (int j = 0; j < lanes; ++j) partial[blockIdx.x * shape.width + i + j] = d_scale[p][j];
  }
}

__global__ void bias_grad_kernel(const bf16* dy, float* partial, Count rows, Count width) {
  for (Count i = threadIdx.x * lanes; i < width; i += blockDim.x * lanes) {
    float sums[lanes] = {};
    for (Count row = blockIdx.x; row < rows; row += gridDim.x) {
      const Pack pack = load(dy + row * width + i);
      for (int j = 0; j < lanes; ++j) sums[j] += number(pack.values[j]);
    }
    for (int j = 0; j < lanes; ++j) partial[blockIdx.x * width + i + j] = sums[j];
  }
}

__global__ void sum_rows_kernel(const float* partial, float* sums, Count rows, Count width, bool adds) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (i >= width) return;
  float sum = adds ? sums[i] : 0.0F;
  for (Count row = 0; row < rows; ++row) sum += partial[row * width + i];
  sums[i] = sum;
}

__global__ void rotation_table_kernel(float2* table, Count tokens, Count rotated, double base) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x, pairs = rotated / 2;
  if (i >= tokens * pairs) return;
  const double angle =
      static_cast<double>(i / pairs) * pow(base, -2.0 * static_cast<double>(i % pairs) / static_cast<double>(rotated));
  table[i] = {static_cast<float>(cos(angle)), static_cast<float>(sin(angle))};
}

__global__ void rotate_kernel(const bf16* x, const float2* table, bf16* y, Rotation s) {
  const Count plain = (s.width - s.rotated) / lanes, pairs = s.rotated / 2, per_row = plain + pairs / lanes;
  const Count work = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (work >= s.rows * per_row) return;
  const Count row = work / per_row, part = work % per_row, first = row * s.width;
  if (part < plain) return store(y + first + part * lanes, load(x + first + part * lanes));
  const Count pair = (part - plain) * lanes, position = s.first + row / s.heads % s.tokens;
  const Count a = first + s.width - s.rotated + pair, b = a + pairs;
  Pack left = load(x + a), right = load(x + b);
  for (int j = 0; j < lanes; ++j) {
    const float2 turn = table[position * pairs + pair + j];
    const float sine = s.backwards ? -turn.y : turn.y;
    const float u = number(left.values[j]), v = number(right.values[j]);
    left.values[j] = half_of(u * turn.x - v * sine);
    right.values[j] = half_of(u * sine + v * turn.x);
  }
  store(y + a, left);
  store(y + b, right);
}

__device__ float gelu(float x) { return 0.5F * x * (1.0F + erff(x * 0.70710678F)); }
__device__ float gelu_slope(float x) {
  return 0.5F * (1.0F + erff(x * 0.70710678F)) + x * __expf(-0.5F * x * x) * 0.39894228F;
}

__global__ void activate_kernel(const bf16* up, const bf16* gate, bf16* y, Count packs) {
  const Count i = (blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x) * lanes;
  if (i >= packs * lanes) return;
  Pack out = load(up + i);
  if (gate) {
    const Pack by = load(gate + i);
    for (int j = 0; j < lanes; ++j) {
      const float g = number(by.values[j]);
      out.values[j] = half_of(number(out.values[j]) * g * sigmoid(g));
    }
  } else {
    for (bf16& value : out.values) value = half_of(gelu(number(value)));
  }
  store(y + i, out);
}

__global__ void activate_grad_kernel(const bf16* dy, const bf16* up, const bf16* gate, ActivationGradients out,
                                     Count packs) {
  const Count i = (blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x) * lanes;
  if (i >= packs * lanes) return;
  Pack d_up = load(dy + i);
  const Pack value = load(up + i);
  if (gate) {
    const Pack by = load(gate + i);
    Pack d_gate;
    for (int j = 0; j < lanes; ++j) {
      const float g = number(by.values[j]), s = sigmoid(g), d = number(d_up.values[j]);
      d_gate.values[j] = half_of(d * number(value.values[j]) * s * (1.0F + g * (1.0F - s)));
      d_up.values[j] = half_of(d * g * s);
    }
    store(out.d_gate + i, d_gate);
  } else {
    for (int j = 0; j < lanes; ++j)
      d_up.values[j] = half_of(number(d_up.values[j]) * gelu_slope(number(value.values[j])));
  }
  store(out.d_up + i, d_up);
}

__global__ void add_kernel(const bf16* a, const bf16* b, bf16* sum, Count packs) {
  const Count i = (blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x) * lanes;
  if (i >= packs * lanes) return;
  Pack left = load(a + i);
  const Pack right = load(b + i);
  for (int j = 0; j < lanes; ++j) left.values[j] = half_of(number(left.values[j]) + number(right.values[j]));
  store(sum + i, left);
}

__global__ void add_kernel(const float* a, const float* b, float* sum, Count n) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

/// The largest value so far, and the sum of exponentials relative to it.
__device__ float2 joined(float2 a, float2 b) {
  const float largest = fmaxf(a.x, b.x);
  if (largest == -CUDART_INF_F) return a;
  return {largest, a.y * __expf(a.x - largest) + b.y * __expf(b.x - largest)};
}

__global__ void loss_sums_kernel(const bf16* logits, const int* targets, float* sums, LossShape s) {
  const bf16* row = logits + blockIdx.x * s.vocabulary;
  float2 mine{-CUDART_INF_F, 0.0F};
  for (Count i = threadIdx.x * lanes; i < s.vocabulary; i += blockDim.x * lanes) {
    const Pack pack = load(row + i);
    float largest = mine.x;
    for (const bf16 value : pack.values) largest = fmaxf(largest, number(value));
    mine.y *= __expf(mine.x - largest);
    mine.x = largest;
    for (const bf16 value : pack.values) mine.y += __expf(number(value) - largest);
  }
  mine = block_joined(mine, [](float2 a, float2 b) { return joined(a, b); });
  if (threadIdx.x > 0) return;
  const Count target = targets[blockIdx.x] - s.first;
  sums[2 * blockIdx.x] = s.partial ? mine.y * expf(mine.x) : mine.x + logf(mine.y);
  sums[2 * blockIdx.x + 1] = target >= 0 && target < s.vocabulary ? number(row[target]) : 0.0F;
}

/// The logarithm of the sum of exponentials.
__device__ float log_sum(float sum, bool partial) { return partial ? logf(sum) : sum; }

__global__ void loss_kernel(const float* sums, float* losses, double* total, LossShape s) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  float2 sum{0.0F, 0.0F};
  if (i < s.rows) sum.x = losses[i] = log_sum(sums[2 * i], s.partial) - sums[2 * i + 1];
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(total, static_cast<double>(sum.x));
}

__global__ void loss_grad_kernel(const bf16* logits, const int* targets, const float* sums, bf16* d_logits,
                                 LossShape shape) {
  const Count i = (blockIdx.y * static_cast<Count>(blockDim.x) + threadIdx.x) * lanes, row = blockIdx.x;
  if (i >= shape.vocabulary) return;
  const float whole = log_sum(sums[2 * row], shape.partial), share = 1.0F / shape.tokens;
  const Count target = targets[row] - shape.first - i;
  Pack pack = load(logits + row * shape.vocabulary + i);
  for (int j = 0; j < lanes; ++j)
    pack.values[j] = half_of(share * (__expf(number(pack.values[j]) - whole) - (j == target ? 1.0F : 0.0F)));
  store(d_logits + row * shape.vocabulary + i, pack);
}

__device__ void adam_step(float gradient, float& master, float& first, float& second, const Adam& adam) {
  first += (1.0F - adam.first_decay) * (gradient - first);
  second += (1.0F - adam.second_decay) * (gradient * gradient - second);
  master =
      adam.kept * master - adam.rate * (first / adam.first_whole) / (sqrtf(second / adam.second_whole) + adam.epsilon);
}

__global__ void update_kernel(const float* gradient, bf16* weight, OptimizerState state, Count n, Adam adam) {
  float2 sum{0.0F, 0.0F};
  const Count stride = static_cast<Count>(gridDim.x) * blockDim.x;
  for (Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x; i < n / 4; i += stride) {
    const float4 g = reinterpret_cast<const float4*>(gradient)[i];
    float4 w = reinterpret_cast<float4*>(state.master)[i], m = reinterpret_cast<float4*>(state.first)[i];
    float4 v = reinterpret_cast<float4*>(state.second)[i];
    adam_step(g.x, w.x, m.x, v.x, adam);
    adam_step(g.y, w.y, m.y, v.y, adam);
    adam_step(g.z, w.z, m.z, v.z, adam);
    adam_step(g.w, w.w, m.w, v.w, adam);
    sum.x += g.x * g.x + g.y * g.y + g.z * g.z + g.w * g.w;
    reinterpret_cast<float4*>(state.master)[i] = w;
    reinterpret_cast<float4*>(state.first)[i] = m;
    reinterpret_cast<float4*>(state.second)[i] = v;
    if (weight) {
      const __nv_bfloat162 low{half_of(w.x), half_of(w.y)}, high{half_of(w.z), half_of(w.w)};
      reinterpret_cast<__nv_bfloat162*>(weight)[2 * i] = low;
      reinterpret_cast<__nv_bfloat162*>(weight)[2 * i + 1] = high;
    }
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0 && state.squares) atomicAdd(state.squares, static_cast<double>(sum.x));
}

__global__ void sum_heads_kernel(const bf16* from, bf16* to, Groups s) {
  const Count work = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x, per_row = s.width / lanes;
  if (work >= s.tokens * s.kv_heads * per_row) return;
  const Count row = work / per_row, group = s.heads / s.kv_heads;
  const Count first = row / s.kv_heads * s.heads + row % s.kv_heads * group;
  float sums[lanes] = {};
  for (Count head = 0; head < group; ++head) {
    const Pack pack = load(from + ((first + head) * per_row + work % per_row) * lanes);
    for (int j = 0; j < lanes; ++j) sums[j] += number(pack.values[j]);
  }
  Pack out;
  for (int j = 0; j < lanes; ++j) out.values[j] = half_of(sums[j]);
  store(to + work * lanes, out);
}

constexpr Count row_blocks = 2 * processors;

/// Adds up the partial sums of all blocks.
void sum_rows(const float* partial, float* sums, Count blocks, Count width, bool adds, cudaStream_t stream) {
  constexpr int narrow = 64;  // few columns: more blocks
  sum_rows_kernel<<<static_cast<unsigned>((width + narrow - 1) / narrow), narrow, 0, stream>>>(partial, sums, blocks,
                                                                                               width, adds);
}

}  // namespace

Count row_scratch(Count width) { return row_blocks * width; }

void start(float* master, bf16* weight, Count n, Uniform drawn, cudaStream_t stream) {
  start_kernel<<<16 * processors, threads, 0, stream>>>(master, weight, n, drawn);
}

void cast(const float* from, bf16* to, Count n, cudaStream_t stream) {
  cast_kernel<<<blocks_for(n), threads, 0, stream>>>(from, to, n);
}

void embed(const int* tokens, const bf16* table, bf16* rows, TableShape shape, cudaStream_t stream) {
  embed_kernel<<<static_cast<unsigned>(shape.count), threads, 0, stream>>>(tokens, table, rows, shape);
}

void embed_grad(const bf16* d_rows, const int* tokens, float* d_table, TableShape shape, cudaStream_t stream) {
  embed_grad_kernel<<<static_cast<unsigned>(shape.count), threads, 0, stream>>>(d_rows, tokens, d_table, shape);
}

void norm(const bf16* x, const bf16* scale, bf16* y, NormShape shape, cudaStream_t stream) {
  const auto rows = static_cast<unsigned>(shape.rows);
  const Count packs = (shape.width + threads * lanes - 1) / (threads * lanes);
  if (packs <= 1)
    norm_kernel<1><<<rows, threads, 0, stream>>>(x, scale, y, shape);
  else if (packs <= 2)
    norm_kernel<2><<<rows, threads, 0, stream>>>(x, scale, y, shape);
  else if (packs <= 4)
    norm_kernel<4><<<rows, threads, 0, stream>>>(x, scale, y, shape);
  else
    norm_kernel<8><<<rows, threads, 0, stream>>>(x, scale, y, shape);
}

void norm_grad(const bf16* dy, const bf16* x, const bf16* scale, NormGradients out, NormShape shape,
               cudaStream_t stream) {
  const Count blocks = shape.rows < row_blocks ? shape.rows : row_blocks;
  const auto grid = static_cast<unsigned>(blocks);
  const Count packs = (shape.width + threads * lanes - 1) / (threads * lanes);
  if (packs <= 1)
    norm_grad_kernel<1><<<grid, threads, 0, stream>>>(dy, x, scale, out.dx, out.scratch, shape);
  else if (packs <= 2)
    norm_grad_kernel<2><<<grid, threads, 0, stream>>>(dy, x, scale, out.dx, out.scratch, shape);
  else if (packs <= 4)
    norm_grad_kernel<4><<<grid, threads, 0, stream>>>(dy, x, scale, out.dx, out.scratch, shape);
  else
    norm_grad_kernel<8><<<grid, threads, 0, stream>>>(dy, x, scale, out.dx, out.scratch, shape);
  sum_rows(out.scratch, out.d_scale, blocks, shape.width, out.adds, stream);
}

void bias_grad(const bf16* dy, BiasGradient out, Count rows, Count width, cudaStream_t stream) {
  const Count blocks = rows < row_blocks ? rows : row_blocks;
  bias_grad_kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(dy, out.scratch, rows, width);
  sum_rows(out.scratch, out.d_bias, blocks, width, out.adds, stream);
}

void rotation_table(float2* table, Count tokens, Count rotated, double base, cudaStream_t stream) {
  rotation_table_kernel<<<blocks_for(tokens * rotated / 2), threads, 0, stream>>>(table, tokens, rotated, base);
}

void rotate(const bf16* x, const float2* table, bf16* y, Rotation shape, cudaStream_t stream) {
  const Count work = shape.rows * ((shape.width - shape.rotated) / lanes + shape.rotated / 2 / lanes);
  rotate_kernel<<<blocks_for(work), threads, 0, stream>>>(x, table, y, shape);
}

void activate(const bf16* up, const bf16* gate, bf16* y, Count n, cudaStream_t stream) {
  activate_kernel<<<blocks_for(n / lanes), threads, 0, stream>>>(up, gate, y, n / lanes);
}

void activate_grad(const bf16* dy, const bf16* up, const bf16* gate, ActivationGradients out, Count n,
                   cudaStream_t stream) {
  activate_grad_kernel<<<blocks_for(n / lanes), threads, 0, stream>>>(dy, up, gate, out, n / lanes);
}

void add(const bf16* a, const bf16* b, bf16* sum, Count n, cudaStream_t stream) {
  add_kernel<<<blocks_for(n / lanes), threads, 0, stream>>>(a, b, sum, n / lanes);
}

void add(const float* a, const float* b, float* sum, Count n, cudaStream_t stream) {
  add_kernel<<<blocks_for(n), threads, 0, stream>>>(a, b, sum, n);
}

void loss_sums(const bf16* logits, const int* targets, float* sums, LossShape shape, cudaStream_t stream) {
  constexpr int wide = 512;
  loss_sums_kernel<<<static_cast<unsigned>(shape.rows), wide, 0, stream>>>(logits, targets, sums, shape);
}

void loss(const float* sums, float* losses, double* total, LossShape shape, cudaStream_t stream) {
  loss_kernel<<<blocks_for(shape.rows), threads, 0, stream>>>(sums, losses, total, shape);
}

void loss_grad(const bf16* logits, const int* targets, const float* sums, bf16* d_logits, LossShape shape,
               cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(shape.rows), blocks_for(shape.vocabulary / lanes));
  loss_grad_kernel<<<grid, threads, 0, stream>>>(logits, targets, sums, d_logits, shape);
}

void update(const float* gradient, bf16* weight, OptimizerState state, Count n, Adam adam, cudaStream_t stream) {
  const unsigned wanted = blocks_for(n / 4), most = 16 * processors, blocks = wanted < most ? wanted : most;
  update_kernel<<<blocks, threads, 0, stream>>>(gradient, weight, state, n, adam);
}

void sum_heads(const bf16* from, bf16* to, Groups shape, cudaStream_t stream) {
  const Count work = shape.tokens * shape.kv_heads * shape.width / lanes;
  sum_heads_kernel<<<blocks_for(work), threads, 0, stream>>>(from, to, shape);
}

}  // namespace assay::cuda
