#include "cuda/kernels.h"
#include "cuda/pack.cuh"

namespace assay::cuda {
namespace {

/// Reorders [outer, parts, inner] part by part, or back, in words of `Word`.
template <class Word>
__global__ void part_rows_kernel(const Word* from, Word* to, PartShape s) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (i >= s.outer * s.parts * s.inner) return;
  const Count element = i % s.inner, part = i / s.inner % s.parts, row = i / s.inner / s.parts;
  const Count apart = (part * s.outer + row) * s.inner + element;
  to[s.back ? i : apart] = from[s.back ? apart : i];
}

template <class Word>
__global__ void one_part_kernel(const Word* from, Word* to, PartShape s, Count which) {
  const Count i = blockIdx.x * static_cast<Count>(blockDim.x) + threadIdx.x;
  if (i >= s.outer * s.inner) return;
  to[i] = from[(i / s.inner * s.parts + which) * s.inner + i % s.inner];
}

/// The shape with `inner` counted in words of 16, 4 or 2 bytes, the largest that divide it.
PartShape in_words(PartShape s, std::size_t& word) {
  const std::size_t bytes = static_cast<std::size_t>(s.inner) * s.width;
  word = bytes % sizeof(uint4) == 0 ? sizeof(uint4) : bytes % sizeof(unsigned) == 0 ? sizeof(unsigned) : 2;
  s.inner = static_cast<Count>(bytes / word);
  return s;
}

template <class Word>
void run(const void* from, void* to, PartShape s, Count which, cudaStream_t stream) {
  const auto* source = static_cast<const Word*>(from);
  auto* target = static_cast<Word*>(to);
  if (which < 0)
    part_rows_kernel<<<blocks_for(s.outer * s.parts * s.inner), threads, 0, stream>>>(source, target, s);
  else
    one_part_kernel<<<blocks_for(s.outer * s.inner), threads, 0, stream>>>(source, target, s, which);
}

void run_in_words(const void* from, void* to, PartShape shape, Count which, cudaStream_t stream) {
  std::size_t word = 0;
  const PartShape s = in_words(shape, word);
  if (word == sizeof(uint4))
    run<uint4>(from, to, s, which, stream);
  else if (word == sizeof(unsigned))
    run<unsigned>(from, to, s, which, stream);
  else
    run<unsigned short>(from, to, s, which, stream);
}

}  // namespace

void part_rows(const void* from, void* to, PartShape shape, cudaStream_t stream) {
  run_in_words(from, to, shape, -1, stream);
}

void one_part(const void* from, void* to, PartShape shape, Count which, cudaStream_t stream) {
  run_in_words(from, to, shape, which, stream);
}

}  // namespace assay::cuda
