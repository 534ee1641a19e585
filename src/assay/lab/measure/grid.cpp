#include "assay/lab/measure/grid.h"

#include <algorithm>

namespace assay::measure {
namespace {

using Side = std::pair<std::int64_t, std::int64_t>;  // n, k

void cross(std::vector<ProductShape>& out, const std::vector<std::int64_t>& rows, const std::vector<Side>& weights) {
  for (const auto& [n, k] : weights)
    for (const std::int64_t m : rows) out.push_back({m, n, k});
}

}  // namespace

std::vector<ProductShape> cpu_products(Extent extent) {
  std::vector<ProductShape> out;
  if (extent == Extent::check) {
    cross(out, {5, 48, 700}, {{640, 640}, {1536, 384}, {384, 1536}, {1100, 900}});
    return out;
  }
  const bool quick = extent == Extent::quick;
  for (const std::int64_t n :
       quick ? std::vector<std::int64_t>{48, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1000}
             : std::vector<std::int64_t>{32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1000, 1024, 1536, 2048})
    out.push_back({n, n, n});
  if (quick) {
    cross(out, {1, 16, 128},
          {{1024, 1024}, {768, 768}, {2048, 512}, {512, 2048}, {999, 99}, {1024, 64}, {64, 1024}, {333, 1111}});
    return out;
  }
  cross(out, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, {{768, 768}, {1024, 1024}, {2048, 512}, {512, 2048}});
  cross(out, {1, 8, 64, 256}, {{4096, 1024}, {1024, 4096}, {3072, 768}, {768, 3072}, {2048, 2048}, {4096, 4096}});
  cross(out, {64, 512, 2048}, {{64, 64}, {1024, 16}, {1024, 64}, {512, 32}, {2048, 128}, {64, 1024}, {16, 2048}});
  cross(out, {7, 33, 129, 1001}, {{513, 257}, {333, 1111}, {999, 99}});  // ragged
  std::vector<ProductShape> different;
  for (const ProductShape& shape : out)
    if (std::find(different.begin(), different.end(), shape) == different.end()) different.push_back(shape);
  return different;
}

std::vector<ProductShape> gpu_products(Extent extent, std::int64_t aligned) {
  std::vector<ProductShape> out;
  const bool quick = extent == Extent::quick;
  // The weights of common models, and sides that are not powers of two.
  const std::vector<Side> weights =
      quick ? std::vector<Side>{{4096, 4096}, {28672, 4096}, {8192, 8192}, {2048, 2048}}
            : std::vector<Side>{{4096, 4096},  {6144, 4096},  {28672, 4096}, {4096, 14336}, {8192, 8192}, {10240, 8192},
                                {57344, 8192}, {8192, 28672}, {1024, 1024},  {2048, 2048},  {5120, 5120}, {13824, 5120},
                                {5120, 13824}, {3072, 768},   {2304, 6912},  {7168, 2048}};
  cross(out,
        quick ? std::vector<std::int64_t>{1, 16, 128, 1024, 8192}
              : std::vector<std::int64_t>{1, 16, 64, 128, 512, 2048, 8192},
        weights);
  if (!quick) {
    cross(out, {3, 48, 77, 200, 333, 1000, 1536, 3001, 6000},
          {{4096, 4096}, {5120, 5120}, {12288, 3072}, {16384, 2048}});
    cross(out, {256, 4096, 16384}, {{4096, 64}, {4096, 128}, {8192, 256}, {16384, 512}, {3072, 192}});  // small k
    cross(out, {4096, 16384, 65536}, {{64, 4096}, {128, 8192}, {256, 2048}, {32, 1024}});               // narrow
    for (const std::int64_t n : {256, 512, 768, 1536, 3072, 6144, 12288, 16384}) out.push_back({n, n, n});
    for (const auto& [m, n, k, batch] :
         {ProductShape{32, 2048, 1408, 64}, ProductShape{256, 1408, 2048, 64}, ProductShape{128, 768, 2048, 128},
          ProductShape{512, 512, 512, 64}, ProductShape{1024, 1024, 128, 128}, ProductShape{1024, 128, 1024, 128},
          ProductShape{16, 14336, 4096, 8}, ProductShape{2048, 5120, 1536, 16}, ProductShape{4, 2048, 768, 128},
          ProductShape{96, 4096, 1536, 32}})
      out.push_back({m, n, k, batch});
  }
  std::erase_if(out, [&](const ProductShape& s) { return s.n % aligned != 0 || s.k % aligned != 0; });
  return out;
}

std::vector<std::int64_t> sizes(std::int64_t least, std::int64_t most, std::int64_t factor) {
  std::vector<std::int64_t> out;
  for (std::int64_t size = least; size <= most; size *= factor) out.push_back(size);
  return out;
}

}  // namespace assay::measure
