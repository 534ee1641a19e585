#include "assay/lab/measure/cuda/device.h"

#include <algorithm>

#include "assay/lab/measure/rows.h"

namespace assay::measure::cuda {
namespace {

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  Seconds since(const Event& start) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1_ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// A recorded graph of some work.
class Graph {
 public:
  Graph(cudaStream_t stream, const Work& work) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      work(stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(graph_); }
  void launch(cudaStream_t stream) { check(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

void wait(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

}  // namespace

Clock::Clock(std::size_t flushed) : flush_(flushed) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}
Clock::~Clock() { cudaStreamDestroy(stream_); }

Times Clock::repeat(const std::function<void()>& before, const std::function<void()>& timed) {
  const auto once = [&] {
    Event start, end;
    before();
    start.record(stream_);
    timed();
    end.record(stream_);
    wait(stream_);
    return end.since(start);
  };
  for (int i = 0; i < 3; ++i) once();  // warm-up: modules are loaded and clocks are up
  constexpr Seconds wanted = 40_ms, flush = 100_us;
  const int runs = std::clamp(static_cast<int>(wanted / (once() + flush)), 10, 100);
  // All runs are queued before waiting for the first, so that the host is never the bottleneck.
  std::vector<Event> starts(static_cast<std::size_t>(runs)), ends(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    before();
    starts[i].record(stream_), timed(), ends[i].record(stream_);
  }
  wait(stream_);
  std::vector<Seconds> times;
  for (std::size_t i = 0; i < starts.size(); ++i) times.push_back(ends[i].since(starts[i]));
  const Seconds median = median_of(times);
  return {median, times.front()};
}

Times Clock::bursts(const Work& work) {
  work(stream_);  // libraries initialise outside the graph
  wait(stream_);
  Graph graph(stream_, work);
  return repeat([&] { check(cudaMemsetAsync(flush_.at(), 0, flush_.bytes(), stream_), "cudaMemsetAsync"); },
                [&] { graph.launch(stream_); });
}

Times Clock::plain(const Work& work) {
  return repeat([] {}, [&] { work(stream_); });
}

Seconds Clock::train(const std::function<void(cudaStream_t, int)>& work, Seconds length) {
  constexpr int calls = 20;
  work(stream_, 0);
  wait(stream_);
  Graph graph(stream_, [&](cudaStream_t stream) {
    for (int i = 0; i < calls; ++i) work(stream, i);
  });
  const auto run = [&](int launches) {
    Event start, end;
    start.record(stream_);
    for (int i = 0; i < launches; ++i) graph.launch(stream_);
    end.record(stream_);
    wait(stream_);
    return end.since(start);
  };
  run(1);
  const int launches = std::max(1, static_cast<int>(length / run(1)));
  run(launches);  // power and clock settle
  return run(launches) / static_cast<double>(launches * calls);
}

}  // namespace assay::measure::cuda
