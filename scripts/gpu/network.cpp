// Collectives of the CUDA engine by NCCL, between a rank and itself: what can be checked of them on one GPU.
// nvcc -std=c++20 -Isrc -Iapps scripts/gpu/network.cpp apps/cuda/network.cpp apps/cuda/part_kernels.cu -ldl -o network
#include <cstdio>
#include <vector>

#include "cuda/network.h"

int main() {
  using assay::cuda::Network;
  std::vector<char> id(ASSAY_CUDA_ID_BYTES);
  assay::cuda::make_unique_id(id.data());
  const int self = 0;
  const AssayCudaGroup group{&self, 1, 0};
  const AssayCudaRanks ranks{0, 1, 0, 1, id.data(), nullptr, nullptr};
  AssayCudaJob job{};
  job.groups = &group;
  job.group_count = 1;
  job.ranks = &ranks;
  Network network(job);
  constexpr int count = 4096;
  std::vector<float> values(count), back(count);
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
  assay::cuda::Buffer in(count * sizeof(float)), out(count * sizeof(float));
  int faults = 0;
  for (const int kernel :
       {assay_cuda_all_gather, assay_cuda_reduce_scatter, assay_cuda_all_reduce, assay_cuda_all_to_all}) {
    cudaMemcpy(in.at(), values.data(), in.bytes(), cudaMemcpyHostToDevice);
    cudaMemset(out.at(), 0, out.bytes());
    const long long sizes[7] = {
        kernel == assay_cuda_all_reduce ? 1 : 64, kernel == assay_cuda_all_reduce ? count : 64, 0, 64, 64, 0, 0};
    network.run(kernel, {in.at(), out.at(), assay_cuda_fp32}, sizes, nullptr);
    cudaMemcpy(back.data(), out.at(), out.bytes(), cudaMemcpyDeviceToHost);
    faults += back == values ? 0 : 1;
  }
  std::printf("%s: %d of 4 collectives differ\n", network.name.c_str(), faults);
  return faults;
}
