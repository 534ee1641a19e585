#include "cuda/network.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace assay::cuda {
namespace {

// The part of NCCL's interface that we use, which has not changed since version 2.18 (ncclCommSplit).
struct NcclId {
  char bytes[ASSAY_CUDA_ID_BYTES];
};
constexpr int nccl_int32 = 2, nccl_float32 = 7, nccl_bfloat16 = 9, nccl_sum = 0;

int nccl_type(int type) {
  return type == assay_cuda_bf16 ? nccl_bfloat16 : type == assay_cuda_fp32 ? nccl_float32 : nccl_int32;
}
std::size_t width_of(int type) { return type == assay_cuda_bf16 ? 2 : 4; }

}  // namespace

struct Network::Library {
  Library() : handle(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (!handle) throw Failure("NCCL connects GPUs, and cannot be loaded: " + std::string(dlerror()));
    find("ncclGetVersion", version);
    find("ncclGetErrorString", error_text);
    find("ncclGetUniqueId", unique_id);
    find("ncclCommInitRank", init);
    find("ncclCommSplit", split);
    find("ncclCommDestroy", destroy);
    find("ncclAllGather", all_gather);
    find("ncclReduceScatter", reduce_scatter);
    find("ncclAllReduce", all_reduce);
    find("ncclSend", send);
    find("ncclRecv", receive);
    find("ncclGroupStart", group_start);
    find("ncclGroupEnd", group_end);
  }
  template <class F>
  void find(const char* symbol, F& function) {
    function = reinterpret_cast<F>(dlsym(handle, symbol));
    if (!function) throw Failure(std::string("this NCCL is too old: it has no ") + symbol);
  }
  void check(int status, const char* call) const {
    if (status != 0) throw Failure(std::string(call) + ": " + error_text(status));
  }

  void* handle;  // stays loaded: its threads outlive a communicator
  int (*version)(int*);
  const char* (*error_text)(int);
  int (*unique_id)(NcclId*);
  int (*init)(void**, int, NcclId, int);
  int (*split)(void*, int, int, void**, void*);
  int (*destroy)(void*);
  int (*all_gather)(const void*, void*, std::size_t, int, void*, cudaStream_t);
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, void*, cudaStream_t);
  int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, cudaStream_t);
  int (*send)(const void*, std::size_t, int, int, void*, cudaStream_t);
  int (*receive)(void*, std::size_t, int, int, void*, cudaStream_t);
  int (*group_start)();
  int (*group_end)();
};

void make_unique_id(char* bytes) {
  std::memset(bytes, 0, ASSAY_CUDA_ID_BYTES);
  try {
    const Network::Library library;
    NcclId id{};
    library.check(library.unique_id(&id), "ncclGetUniqueId");
    std::memcpy(bytes, id.bytes, sizeof id.bytes);
  } catch (const Failure&) {  // ranks that share a GPU do without it, and the others say that they miss it
  }
}

int Network::device_of(const AssayCudaRanks* ranks, int devices) { return ranks ? ranks->local_rank % devices : 0; }

Network::Network(const AssayCudaJob& job) {
  if (!job.ranks || job.group_count + job.channel_count == 0) return;  // nothing is sent
  ranks_ = *job.ranks;
  for (int i = 0; i < job.group_count; ++i) {
    const AssayCudaGroup& group = job.groups[i];
    members_.emplace_back(group.ranks, group.ranks + group.count);
    groups_.push_back({nullptr, group.count, group.mine});
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].ranks = members_[i].data();
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (ranks_.local_count > devices) {  // NCCL refuses two ranks of one GPU
    name = "host memory";
    open_channels(job, nullptr);
    return;
  }
  library_ = std::make_unique<Library>();
  int version = 0;
  library_->check(library_->version(&version), "ncclGetVersion");
  name = "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
  NcclId id{};
  std::memcpy(id.bytes, ranks_.id, sizeof id.bytes);
  void* all = nullptr;
  library_->check(library_->init(&all, ranks_.count, id, ranks_.rank), "ncclCommInitRank");
  communicators_.push_back(all);
  for (const AssayCudaGroup& group : groups_) {
    void* made = nullptr;
    const int colour = *std::min_element(group.ranks, group.ranks + group.count);
    library_->check(library_->split(all, colour, group.mine, &made, nullptr), "ncclCommSplit");
    communicators_.push_back(made);
  }
  open_channels(job, all);
}

/// One way between two ranks, with a communicator of its own: nothing that is sent waits for anything else.
struct Network::Channel {
  int ranks[2] = {0, 0};
  bool sends = false, receives = false;
  void* communicator = nullptr;
  cudaStream_t stream = nullptr;  ///< stream of the sends
  cudaEvent_t event = nullptr;

  ~Channel() {
    if (event) cudaEventDestroy(event);
    if (stream) cudaStreamDestroy(stream);
  }
};

void Network::open_channels(const AssayCudaJob& job, void* all) {
  for (int i = 0; i < job.channel_count; ++i) {
    Channel& made = *channels_.emplace_back(std::make_unique<Channel>());
    made.ranks[0] = job.channels[i].from;
    made.ranks[1] = job.channels[i].to;
    made.sends = made.ranks[0] == ranks_.rank;
    made.receives = made.ranks[1] == ranks_.rank;
    if (!library_) continue;
    const bool is_mine = made.sends || made.receives;
    constexpr int no_colour = -1;
    library_->check(
        library_->split(all, is_mine ? made.ranks[0] : no_colour, made.receives ? 1 : 0, &made.communicator, nullptr),
        "ncclCommSplit");
    if (!is_mine) continue;
    check(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&made.event, cudaEventDisableTiming), "cudaEventCreate");
    // The first message also connects both ends, which wait for each other: here all ranks come in the same order.
    void* word = scratch(0, sizeof(float));
    library_->check(made.sends ? library_->send(word, 1, nccl_float32, 1, made.communicator, made.stream)
                               : library_->receive(word, 1, nccl_float32, 0, made.communicator, made.stream),
                    "ncclSend");
    check(cudaStreamSynchronize(made.stream), "cudaStreamSynchronize");
  }
}

const char* Network::send_on_host(int kind, const Channel& channel, void* values, const Sent& what) const {
  const AssayCudaExchange sent{kind, channel.ranks, 2, channel.sends ? 0 : 1, values, values, what.elements, what.type};
  return ranks_.exchange(ranks_.context, &sent);
}

void Network::send(std::size_t number, const Sent& what, cudaStream_t stream) {
  const Channel& channel = *channels_.at(number);
  if (!library_) {
    std::vector<char> values(static_cast<std::size_t>(what.elements) * width_of(what.type));
    check(cudaMemcpyAsync(values.data(), what.data, values.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (const char* why = send_on_host(assay_cuda_send, channel, values.data(), what)) throw Failure(why);
    return;
  }
  check(cudaEventRecord(channel.event, stream), "cudaEventRecord");
  check(cudaStreamWaitEvent(channel.stream, channel.event, 0), "cudaStreamWaitEvent");
  library_->check(library_->send(what.data, static_cast<std::size_t>(what.elements), nccl_type(what.type), 1,
                                 channel.communicator, channel.stream),
                  "ncclSend");
}

void Network::receive(std::size_t number, const Sent& what, cudaStream_t stream) {
  const Channel& channel = *channels_.at(number);
  if (library_)
    return library_->check(library_->receive(what.data, static_cast<std::size_t>(what.elements), nccl_type(what.type),
                                             0, channel.communicator, stream),
                           "ncclRecv");
  std::vector<char> values(static_cast<std::size_t>(what.elements) * width_of(what.type));
  if (const char* why = send_on_host(assay_cuda_receive, channel, values.data(), what)) throw Failure(why);
  check(cudaMemcpyAsync(what.data, values.data(), values.size(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");  // before the memory of the host goes
}

void Network::wait_for_sent(cudaStream_t stream) {
  for (const std::unique_ptr<Channel>& channel : channels_) {
    if (!library_ || !channel->sends) continue;
    check(cudaEventRecord(channel->event, channel->stream), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream, channel->event, 0), "cudaStreamWaitEvent");
  }
}

Network::~Network() {
  for (const std::unique_ptr<Channel>& channel : channels_)
    if (channel->communicator) library_->destroy(channel->communicator);
  while (!communicators_.empty()) {
    library_->destroy(communicators_.back());
    communicators_.pop_back();
  }
}

char* Network::scratch(int which, std::size_t bytes) {
  std::unique_ptr<Buffer>& buffer = scratch_[which];
  if (!buffer || buffer->bytes() < bytes) buffer = std::make_unique<Buffer>(bytes);
  return buffer->at();
}

void Network::run(int kernel, const Operands& on, const long long* sizes, cudaStream_t stream) {
  const auto group = static_cast<std::size_t>(sizes[2]);
  const long long outer = sizes[0], inner = sizes[1], part = outer * inner;
  if (group >= groups_.size()) throw Failure("a collective without its devices");
  const long long count = groups_[group].count;
  const std::size_t width = width_of(on.type), bytes = static_cast<std::size_t>(part * count) * width;
  if (kernel == assay_cuda_all_reduce || kernel == assay_cuda_shift)
    return exchange({kernel, on.in, on.out, part, on.type, group}, stream);
  // Parts of a dimension that is not the first are not contiguous: they are gathered before, or spread after.
  const void* in = on.in;
  if (kernel != assay_cuda_all_gather && outer > 1) {
    in = scratch(0, bytes);
    part_rows(on.in, scratch(0, bytes), {outer, count, inner, width, false}, stream);
  }
  const bool spreads = kernel == assay_cuda_all_gather ? outer > 1 : kernel == assay_cuda_all_to_all && sizes[3] > 1;
  void* out = spreads ? scratch(1, bytes) : on.out;
  exchange({kernel, in, out, part, on.type, group}, stream);
  if (!spreads) return;
  const bool gathers = kernel == assay_cuda_all_gather;
  part_rows(out, on.out, {gathers ? outer : sizes[3], count, gathers ? inner : sizes[4], width, true}, stream);
}

void Network::exchange(const Exchange& what, cudaStream_t stream) {
  if (!library_) return exchange_on_host(what, stream);
  const auto& [kernel, in, out, elements, type, group] = what;
  void* among = communicators_[group + 1];
  const auto n = static_cast<std::size_t>(elements);
  const int as = nccl_type(type), count = groups_[group].count;
  if (kernel == assay_cuda_all_gather)
    return library_->check(library_->all_gather(in, out, n, as, among, stream), "ncclAllGather");
  if (kernel == assay_cuda_reduce_scatter)
    return library_->check(library_->reduce_scatter(in, out, n, as, nccl_sum, among, stream), "ncclReduceScatter");
  if (kernel == assay_cuda_all_reduce)
    return library_->check(library_->all_reduce(in, out, n, as, nccl_sum, among, stream), "ncclAllReduce");
  const std::size_t bytes = n * width_of(type);
  library_->check(library_->group_start(), "ncclGroupStart");
  if (kernel == assay_cuda_shift) {
    const int mine = groups_[group].mine;
    library_->check(library_->send(in, n, as, (mine + 1) % count, among, stream), "ncclSend");
    library_->check(library_->receive(out, n, as, (mine + count - 1) % count, among, stream), "ncclRecv");
    return library_->check(library_->group_end(), "ncclGroupEnd");
  }
  for (int m = 0; m < count; ++m) {
    const std::size_t at = static_cast<std::size_t>(m) * bytes;
    library_->check(library_->send(static_cast<const char*>(in) + at, n, as, m, among, stream), "ncclSend");
    library_->check(library_->receive(static_cast<char*>(out) + at, n, as, m, among, stream), "ncclRecv");
  }
  library_->check(library_->group_end(), "ncclGroupEnd");
}

void Network::exchange_on_host(const Exchange& what, cudaStream_t stream) {
  const auto& [kernel, in, out, elements, type, group] = what;
  const AssayCudaGroup& among = groups_[group];
  const std::size_t part = static_cast<std::size_t>(elements) * width_of(type);
  const std::size_t all = part * static_cast<std::size_t>(among.count);
  const bool parts_in = kernel == assay_cuda_reduce_scatter || kernel == assay_cuda_all_to_all;
  const bool parts_out = kernel == assay_cuda_all_gather || kernel == assay_cuda_all_to_all;
  std::vector<char> from(parts_in ? all : part), to(parts_out ? all : part);
  check(cudaMemcpyAsync(from.data(), in, from.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const AssayCudaExchange sent{kernel, among.ranks, among.count, among.mine, from.data(), to.data(), elements, type};
  if (const char* why = ranks_.exchange(ranks_.context, &sent)) throw Failure(why);
  check(cudaMemcpyAsync(out, to.data(), to.size(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");  // before the memory of the host goes
}

}  // namespace assay::cuda
