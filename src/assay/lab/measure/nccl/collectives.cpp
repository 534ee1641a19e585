#include "assay/lab/measure/cuda/collectives.h"

#include <nccl.h>

#include <bit>
#include <cstdint>
#include <memory>

#include "assay/base/result.h"
#include "assay/lab/measure/cuda/device.h"

namespace assay::measure::cuda {

static void check(ncclResult_t status, const char* call) {
  if (status != ncclSuccess) throw Failure(std::string(call) + ": " + ncclGetErrorString(status));
}

namespace {

constexpr std::uint16_t one_in_bf16 = 0x3f80;

/// The first `count` GPUs of this machine, driven by one thread.
class Group {
 public:
  Group(int count, std::size_t bytes) : comms_(static_cast<std::size_t>(count)), streams_(comms_.size()) {
    check(ncclCommInitAll(comms_.data(), count, nullptr), "ncclCommInitAll");
    for (std::size_t i = 0; i < comms_.size(); ++i) {
      use(i);
      check(cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking), "cudaStreamCreate");
      sent_.push_back(std::make_unique<Buffer>(bytes));
      received_.push_back(std::make_unique<Buffer>(bytes));
      const std::vector<std::uint16_t> ones(bytes / 2, one_in_bf16);
      check(cudaMemcpy(sent_[i]->at(), ones.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    for (std::size_t i = 0; i < comms_.size(); ++i) {
      ncclCommDestroy(comms_[i]);
      cudaStreamDestroy(streams_[i]);
    }
  }

  /// One collective on every GPU; `array` is the number of elements of the whole array.
  void start(const std::string& kind, std::size_t array) {
    const std::size_t n = comms_.size();
    check(ncclGroupStart(), "ncclGroupStart");
    for (std::size_t i = 0; i < n; ++i) {
      void *from = sent_[i]->at(), *to = received_[i]->at();
      if (kind == "all_gather") {
        check(ncclAllGather(from, to, array / n, ncclBfloat16, comms_[i], streams_[i]), "ncclAllGather");
      } else if (kind == "reduce_scatter") {
        check(ncclReduceScatter(from, to, array / n, ncclBfloat16, ncclSum, comms_[i], streams_[i]),
              "ncclReduceScatter");
      } else if (kind == "all_reduce") {
        check(ncclAllReduce(from, to, array, ncclBfloat16, ncclSum, comms_[i], streams_[i]), "ncclAllReduce");
      } else if (kind == "all_to_all") {
        const std::size_t part = array / n / n;
        for (std::size_t j = 0; j < n; ++j) {
          check(ncclSend(sent_[i]->at(2 * j * part), part, ncclBfloat16, static_cast<int>(j), comms_[i], streams_[i]),
                "ncclSend");
          check(
              ncclRecv(received_[i]->at(2 * j * part), part, ncclBfloat16, static_cast<int>(j), comms_[i], streams_[i]),
              "ncclRecv");
        }
      } else {
        throw InternalError("unknown collective " + kind);
      }
    }
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

  /// The first sum of an all-reduce of ones, in its memory format.
  std::uint16_t sum_of_ones() {
    start("all_reduce", 1024);
    wait();
    std::uint16_t sum = 0;
    use(0);
    check(cudaMemcpy(&sum, received_[0]->at(), sizeof sum, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return sum;
  }

  /// The time per call of `calls` back to back on the first GPU.
  Seconds timed(const std::string& kind, std::size_t array, int calls) {
    use(0);
    cudaEvent_t begin = nullptr, end = nullptr;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    check(cudaEventRecord(begin, streams_[0]), "cudaEventRecord");
    for (int call = 0; call < calls; ++call) start(kind, array);
    use(0);
    check(cudaEventRecord(end, streams_[0]), "cudaEventRecord");
    wait();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return static_cast<double>(milliseconds) / calls * 1_ms;
  }

 private:
  static void use(std::size_t device) { check(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice"); }
  void wait() {
    for (std::size_t i = 0; i < comms_.size(); ++i) {
      use(i);
      check(cudaStreamSynchronize(streams_[i]), "cudaStreamSynchronize");
    }
  }

  std::vector<ncclComm_t> comms_;
  std::vector<cudaStream_t> streams_;
  std::vector<std::unique_ptr<Buffer>> sent_, received_;
};

void measure_group(Measurement& out, int count, Extent extent) {
  const std::int64_t most = extent == Extent::full ? std::int64_t{512} << 20 : std::int64_t{16} << 20;
  Group group(count, static_cast<std::size_t>(most));
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"})
    for (const std::int64_t bytes : sizes(4096, most, 4)) {
      const auto array = static_cast<std::size_t>(bytes / 2);
      group.timed(kind, array, 5);
      std::vector<Seconds> times;
      for (int i = 0; i < 7; ++i) times.push_back(group.timed(kind, array, 10));
      MeasuredRow row{kind, "bf16", bytes, count};
      row.median = median_of(times);
      row.least = times.front();
      out.rows.push_back(std::move(row));
    }
}

}  // namespace

void measure_collectives(Measurement& out, Extent extent) {
  try {
    int devices = 0, version = 0;
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    check(ncclGetVersion(&version), "ncclGetVersion");
    const std::uint32_t sum = std::bit_cast<std::uint32_t>(static_cast<float>(devices)) >> 16;
    if (Group(devices, 4096).sum_of_ones() != sum) throw Failure("an all-reduce is wrong");
    out.facts.emplace_back("NCCL", std::to_string(version) + ", all-reduce checked over " + std::to_string(devices));
    if (devices == 1) out.notes.emplace_back("no collectives between GPUs: there is one");
    for (int count = 2; count <= devices; count *= 2) measure_group(out, count, extent);
  } catch (const Failure& failure) {
    out.notes.push_back(std::string("collectives between GPUs not measured: ") + failure.what());
  }
}

}  // namespace assay::measure::cuda
