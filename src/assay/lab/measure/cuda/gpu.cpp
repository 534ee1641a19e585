#include "assay/lab/measure/gpu.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "assay/lab/measure/cuda/attention.h"
#include "assay/lab/measure/cuda/collectives.h"
#include "assay/lab/measure/cuda/operands.h"

namespace assay::measure {
namespace {

using namespace cuda;

std::string two_part(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

std::string number(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

/// One run on a GPU; a failed row does not affect the others.
class Run {
 public:
  Run(Measurement& out, const GpuRequest& request, const cudaDeviceProp& device, std::size_t free)
      : out_(out),
        request_(request),
        l2_(static_cast<std::size_t>(device.l2CacheSize)),
        clock_(std::max(4 * l2_, std::size_t{256} << 20)),
        a_(operand_bytes(free)),
        b_(operand_bytes(free)),
        c_(operand_bytes(free)) {}

  void all() {
    copies();
    for (const Format format : {Format::bf16, Format::fp8}) {
      block_ = random_elements(format, std::size_t{1} << 24);
      fill(a_, block_);
      fill(b_, block_);
      if (attempt(name(format) + " products", [&] { verify(format); })) products(format);
    }
    if (request_.extent != Extent::check) measure_attention(out_, request_.extent, clock_);
    host_copies();
  }

 private:
  static std::size_t operand_bytes(std::size_t free) { return std::min(std::size_t{4} << 30, free / 5); }
  static std::string name(Format format) { return format == Format::fp8 ? "fp8" : "bf16"; }

  template <class Try>
  bool attempt(const std::string& what, Try measure) {
    try {
      measure();
      return true;
    } catch (const Failure& failure) {
      out_.notes.push_back(what + " not measured: " + failure.what());
      return false;
    }
  }

  void add(MeasuredRow row, Times times) {
    row.median = times.median;
    row.least = times.least;
    out_.rows.push_back(std::move(row));
  }

  void verify(Format format) {
    const double error = product_error(library_, {80, 96, 1024}, format, {a_, b_, c_, block_}, clock_.stream());
    if (!(error < 0.01)) throw Failure("a product is wrong: relative error " + number("%g", error));
    out_.facts.emplace_back("relative error of a product in " + name(format), number("%.1e", error));
  }

  void products(Format format) {
    const bool fp8 = format == Format::fp8;
    for (const ProductShape& shape : gpu_products(request_.extent, fp8 ? 16 : 1)) product(format, shape);
    if (request_.extent == Extent::check) return;
    const std::vector<ProductShape> trains = {{1, 4096, 4096},    {16, 28672, 4096},   {64, 6144, 4096},
                                              {128, 8192, 8192},  {512, 57344, 8192},  {1024, 4096, 4096},
                                              {2048, 2048, 2048}, {4096, 4096, 4096},  {4096, 28672, 4096},
                                              {8192, 8192, 8192}, {8192, 10240, 8192}, {16384, 8192, 28672}};
    const std::size_t wanted = request_.extent == Extent::quick ? 4 : trains.size();
    for (std::size_t i = 0; i < wanted; ++i) train(format, trains[i]);
  }

  static std::string text(const ProductShape& s) {
    return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
           (s.batch > 1 ? " times " + std::to_string(s.batch) : "");
  }

  /// Bytes of A, B and C.
  struct Parts {
    std::size_t a, b, c;
    std::size_t largest() const { return std::max({a, b, c}); }
  };
  static Parts parts(const ProductShape& s, Format format) {
    const auto elements = [&](std::int64_t x, std::int64_t y) { return static_cast<std::size_t>(s.batch * x * y); };
    return {elements(s.m, s.k) * element_bytes(format), elements(s.n, s.k) * element_bytes(format),
            2 * elements(s.m, s.n)};
  }

  static MeasuredRow row(const ProductShape& s, Format format) {
    MeasuredRow row{s.batch > 1 ? "bmm" : "gemm", name(format), s.m, s.n, s.k};
    if (s.batch > 1) row.d = s.batch;
    return row;
  }

  void product(Format format, const ProductShape& shape) {
    attempt(name(format) + " " + text(shape), [&] {
      if (parts(shape, format).largest() > a_.bytes()) throw Failure("too large for this GPU's memory");
      const Product product(library_, shape, format);
      add(row(shape, format),
          clock_.bursts([&](cudaStream_t stream) { product.run(a_.at(), b_.at(), c_.at(), stream); }));
    });
  }

  void train(Format format, const ProductShape& shape) {
    attempt("sustained " + name(format) + " " + text(shape), [&] {
      const Parts bytes = parts(shape, format);
      if (bytes.largest() > a_.bytes()) throw Failure("too large for this GPU's memory");
      // Operands alternate, so that none is still in the cache when it is needed again.
      const std::size_t step = (bytes.largest() + 255) / 256 * 256;
      const std::size_t sets =
          std::clamp(4 * l2_ / (bytes.a + bytes.b + bytes.c) + 1, std::size_t{1}, a_.bytes() / step);
      const Product product(library_, shape, format);
      MeasuredRow one = row(shape, format);
      one.note = "sustained";
      const Seconds mean = clock_.train(
          [&](cudaStream_t stream, int call) {
            const std::size_t at = static_cast<std::size_t>(call) % sets * step;
            product.run(a_.at(at), b_.at(at), c_.at(at), stream);
          },
          request_.extent == Extent::quick ? 100_ms : 400_ms);
      add(one, {mean, mean});
    });
  }

  void copies() {
    attempt("an empty launch", [&] {
      const Times times =
          clock_.bursts([&](cudaStream_t stream) { check(cudaMemsetAsync(c_.at(), 0, 4, stream), "cudaMemsetAsync"); });
      out_.facts.emplace_back("graph of one 4-byte memset", number("%.2f us", times.median.in(1_us)));
    });
    for (const std::int64_t bytes : sizes(4096, static_cast<std::int64_t>(a_.bytes()), 4))
      attempt("copy of " + std::to_string(bytes) + " bytes", [&] {
        add({"copy", "int8", bytes}, clock_.bursts([&](cudaStream_t stream) {
          check(cudaMemcpyAsync(c_.at(), a_.at(), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream),
                "cudaMemcpyAsync");
        }));
      });
  }

  void host_copies() {
    void* host = nullptr;
    const std::size_t most = std::size_t{256} << 20;
    if (!attempt("copies to the host", [&] { check(cudaMallocHost(&host, most), "cudaMallocHost"); })) return;
    for (const std::int64_t bytes : sizes(4096, static_cast<std::int64_t>(most), 16))
      for (const bool up : {true, false})
        attempt("copy to or from the host", [&] {
          add({up ? "upload" : "download", "int8", bytes}, clock_.plain([&](cudaStream_t stream) {
            check(cudaMemcpyAsync(up ? a_.at() : host, up ? host : a_.at(), static_cast<std::size_t>(bytes),
                                  up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
                  "cudaMemcpyAsync");
          }));
        });
    cudaFreeHost(host);
  }

  Measurement& out_;
  const GpuRequest& request_;
  std::size_t l2_;
  Clock clock_;
  Buffer a_, b_, c_;
  Library library_;
  std::vector<unsigned char> block_;
};

void describe(Measurement& out, const cudaDeviceProp& device, int index) {
  const auto attribute = [&](cudaDeviceAttr wanted) {
    int value = 0;
    cudaDeviceGetAttribute(&value, wanted, index);
    return value;
  };
  out.facts.emplace_back("device", device.name);
  out.facts.emplace_back("compute capability", std::to_string(device.major) + "." + std::to_string(device.minor));
  out.facts.emplace_back("multiprocessors", std::to_string(device.multiProcessorCount));
  out.facts.emplace_back("memory bytes", std::to_string(device.totalGlobalMem));
  out.facts.emplace_back("l2 bytes", std::to_string(device.l2CacheSize));
  out.facts.emplace_back("clock kHz", std::to_string(attribute(cudaDevAttrClockRate)));
  out.facts.emplace_back("memory clock kHz", std::to_string(attribute(cudaDevAttrMemoryClockRate)));
  out.facts.emplace_back("memory bus bits", std::to_string(attribute(cudaDevAttrGlobalMemoryBusWidth)));
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  out.facts.emplace_back("CUDA", "runtime " + two_part(runtime) + ", driver supports " + two_part(driver));
  out.facts.emplace_back("cuBLASLt", std::to_string(cublasLtGetVersion()));
  std::ifstream version("/proc/driver/nvidia/version");
  if (std::string line; std::getline(version, line)) out.facts.emplace_back("driver", line);
}

}  // namespace

Measurement measure_gpu(const GpuRequest& request) {
  Measurement out;
  try {
    cudaDeviceProp device{};
    check(cudaSetDevice(request.device), "cudaSetDevice");
    check(cudaGetDeviceProperties(&device, request.device), "cudaGetDeviceProperties");
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    describe(out, device, request.device);
    Run(out, request, device, free).all();
  } catch (const Failure& failure) {
    out.notes.push_back(std::string("the GPU is not measured: ") + failure.what());
  }
  if (!out.rows.empty()) measure_collectives(out, request.extent);
  return out;
}

}  // namespace assay::measure
