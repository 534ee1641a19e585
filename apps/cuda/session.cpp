#include "cuda/session.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cuda/cache_kernels.h"

namespace assay::cuda {
namespace {

constexpr long long lanes = 8;

std::string gibibytes(std::size_t bytes) {
  constexpr double unit = 1024.0 * 1024.0 * 1024.0;
  const auto tenths = static_cast<long long>(std::ceil(10.0 * static_cast<double>(bytes) / unit));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

/// The GPU of this process, chosen before anything is allocated on it.
std::string chosen_device(const AssayCudaRanks* ranks) {
  // Sends that wait must not block kernels of other streams in one of the GPU's queues.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) throw Failure("there is no GPU here");
  const int device = Network::device_of(ranks, count);
  check(cudaSetDevice(device), "cudaSetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace

Session::Session(const AssayCudaJob& job)
    : device(chosen_device(job.ranks)),
      arrays_(job.arrays, job.arrays + job.array_count),
      tasks_(job.tasks, job.tasks + job.task_count),
      adam_(job.adam),
      tokens_(job.tokens),
      targets_(job.targets),
      network_(job) {
  check_sizes(tasks_);
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  if (static_cast<std::size_t>(job.bytes) > free)
    throw Failure("the run needs " + gibibytes(static_cast<std::size_t>(job.bytes)) + ", and the GPU has " +
                  gibibytes(free) + " free");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  memory_ = std::make_unique<Buffer>(static_cast<std::size_t>(job.bytes));
  check(cudaMemsetAsync(memory_->at(), 0, memory_->bytes(), stream_), "cudaMemsetAsync");  // moments start at 0
  for (int i = 0; i < job.start_count; ++i) {
    const AssayCudaStart& s = job.starts[i];
    Uniform drawn{s.seed, s.shift, s.factor, s.first, {}, {}};
    std::copy(std::begin(s.sizes), std::end(s.sizes), drawn.sizes);
    std::copy(std::begin(s.strides), std::end(s.strides), drawn.strides);
    const bool has_weight = s.weight >= 0 && s.weight != s.master;
    start(s.master < 0 ? nullptr : floats(s.master), has_weight ? halves(s.weight) : nullptr,
          array(s.master < 0 ? s.weight : s.master).elements, drawn, stream_);
  }
  Count widest = 1;
  for (const AssayCudaTask& task : tasks_)
    if (task.kernel == assay_cuda_norm_grad || task.kernel == assay_cuda_bias_grad)
      widest = std::max<Count>(widest, task.sizes[1]);
  scratch_ = std::make_unique<Buffer>(static_cast<std::size_t>(row_scratch(widest)) * sizeof(float));
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

Session::~Session() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  if (stream_) cudaStreamDestroy(stream_);
}

void* Session::at(int number) const { return memory_->at(static_cast<std::size_t>(array(number).offset)); }

bf16* Session::halves(int number) const {
  if (array(number).type != assay_cuda_bf16) throw Failure("an array is not in bf16");
  return static_cast<bf16*>(at(number));
}

float* Session::floats(int number) const {
  if (array(number).type != assay_cuda_fp32) throw Failure("an array is not in fp32");
  return static_cast<float*>(at(number));
}

void Session::check_sizes(const std::vector<AssayCudaTask>& tasks) const {
  const auto need = [](bool is_right, const char* what) {
    if (!is_right) throw Failure(what);
  };
  for (const AssayCudaTask& t : tasks) {
    const long long* s = t.sizes;
    if (t.kernel == assay_cuda_rotate)
      need(s[4] % (2 * lanes) == 0 && (s[3] - s[4]) % lanes == 0, "rotated heads must be multiples of 16 wide");
    else if (t.kernel == assay_cuda_attention)
      need(s[4] % lanes == 0, "heads must be multiples of 8 wide");
    else if (t.kernel == assay_cuda_update)
      need(s[0] % lanes == 0, "weights must have a multiple of 8 elements");
    else if (t.kernel == assay_cuda_norm || t.kernel == assay_cuda_norm_grad)
      need(s[1] % lanes == 0 && s[1] <= widest_row, "norms must be a multiple of 8 wide, at most 16384");
    else if (t.kernel == assay_cuda_loss_sums || t.kernel == assay_cuda_embed || t.kernel == assay_cuda_bias_grad)
      need(s[1] % lanes == 0, "rows must be multiples of 8 wide: a vocabulary, d_model or a bias");
    else if (t.kernel == assay_cuda_cache_attention)
      need(has_cache_attention(s[4]), "heads of a server must be 64, 128 or 256 wide");
    else if (t.kernel == assay_cuda_route)
      need(s[2] <= most_picks, "a token has at most 16 experts");
    else if (t.kernel == assay_cuda_dispatch || t.kernel == assay_cuda_sample)
      need(s[t.kernel == assay_cuda_sample ? 1 : 3] % lanes == 0, "rows must be multiples of 8 wide");
    else if (t.kernel == assay_cuda_activate || t.kernel == assay_cuda_add)
      need(s[0] % lanes == 0, "activations must have a multiple of 8 elements");
  }
}

void Session::copy_in(int number, const int* values) const {
  check(cudaMemcpyAsync(at(number), values, static_cast<std::size_t>(array(number).elements) * sizeof(int),
                        cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync");
}

void Session::run_all(const std::vector<AssayCudaTask>& tasks, bool has_clocks) {
  while (events_.size() < tasks.size() + 1) check(cudaEventCreate(&events_.emplace_back()), "cudaEventCreate");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (i == 0 || has_clocks) check(cudaEventRecord(events_[i], stream_), "cudaEventRecord");
    run(tasks[i]);
    check(cudaGetLastError(), "a kernel");
  }
  check(cudaEventRecord(events_[tasks.size()], stream_), "cudaEventRecord");
}

double Session::seconds_between(std::size_t first, std::size_t last) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, events_[first], events_[last]), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

AssayCudaStep Session::step(const int* tokens, const int* targets, double* clocks) {
  ++steps_;
  copy_in(tokens_, tokens);
  copy_in(targets_, targets);
  check(cudaMemsetAsync(totals_.at(), 0, totals_.bytes(), stream_), "cudaMemsetAsync");
  run_all(tasks_, true);
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (tasks_[i].step >= 0) clocks[tasks_[i].step] += seconds_between(i, i + 1);
  double totals[2] = {};
  check(cudaMemcpy(totals, totals_.at(), sizeof totals, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return {totals[0], totals[1], seconds_between(0, tasks_.size())};
}

double Session::serve(const AssayCudaServing& step, double* clocks) {
  arrays_.assign(step.arrays, step.arrays + step.array_count);
  tasks_.assign(step.tasks, step.tasks + step.task_count);
  check_sizes(tasks_);
  for (const AssayCudaArray& one : arrays_)
    if (static_cast<std::size_t>(one.offset + one.elements * (one.type == assay_cuda_bf16 ? 2 : 4)) > memory_->bytes())
      throw Failure("a step of the server needs more memory than was planned");
  copy_in(step.tokens, step.given_tokens);
  copy_in(step.places, step.given_places);
  run_all(tasks_, step.has_clocks != 0);
  std::vector<bf16> logits;
  if (step.logits >= 0) {
    logits.resize(static_cast<std::size_t>(array(step.logits).elements));
    check(cudaMemcpyAsync(logits.data(), halves(step.logits), logits.size() * sizeof(bf16), cudaMemcpyDeviceToHost,
                          stream_),
          "cudaMemcpyAsync");
  }
  if (step.chosen >= 0)
    check(cudaMemcpyAsync(step.chosen_values, at(step.chosen),
                          static_cast<std::size_t>(array(step.chosen).elements) * sizeof(int), cudaMemcpyDeviceToHost,
                          stream_),
          "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  for (std::size_t i = 0; i < logits.size(); ++i) step.logit_values[i] = __bfloat162float(logits[i]);
  for (std::size_t i = 0; step.has_clocks != 0 && i < tasks_.size(); ++i)
    clocks[tasks_[i].step] += seconds_between(i, i + 1);
  return seconds_between(0, tasks_.size());
}

void Session::read(int number, float* values) const {
  check(cudaMemcpy(values, floats(number), static_cast<std::size_t>(array(number).elements) * sizeof(float),
                   cudaMemcpyDeviceToHost),
        "cudaMemcpy");
}

void Session::write(int master, int weight, const float* values) const {
  const int given = master < 0 ? weight : master;
  const auto bytes = static_cast<std::size_t>(array(given).elements) * sizeof(float);
  std::unique_ptr<Buffer> wide = master < 0 ? std::make_unique<Buffer>(bytes) : nullptr;
  float* to = wide ? reinterpret_cast<float*>(wide->at()) : floats(master);
  check(cudaMemcpyAsync(to, values, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  if (weight >= 0 && weight != master) cast(to, halves(weight), array(given).elements, stream_);
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void Session::run(const AssayCudaTask& t) {
  const int *in = t.in, *out = t.out;
  const long long* s = t.sizes;
  const bool partial = (t.flags & assay_cuda_partial) != 0;
  switch (t.kernel) {
    case assay_cuda_product:
      return run_product(t);
    case assay_cuda_embed:
      return embed(numbers(in[0]), halves(in[1]), halves(out[0]), {s[0], s[1], s[2], s[3]}, stream_);
    case assay_cuda_embed_grad:
      if (!(t.flags & assay_cuda_accumulates))
        check(cudaMemsetAsync(floats(out[0]), 0, static_cast<std::size_t>(array(out[0]).elements) * sizeof(float),
                              stream_),
              "cudaMemsetAsync");
      return embed_grad(halves(in[0]), numbers(in[1]), floats(out[0]), {s[0], s[1], s[2], s[3]}, stream_);
    case assay_cuda_bias_grad:
      return bias_grad(
          halves(in[0]),
          {floats(out[0]), reinterpret_cast<float*>(scratch_->at()), (t.flags & assay_cuda_accumulates) != 0}, s[0],
          s[1], stream_);
    case assay_cuda_norm:
      return norm(halves(in[0]), halves(in[1]), halves(out[0]), {s[0], s[1], static_cast<float>(t.number)}, stream_);
    case assay_cuda_norm_grad:
      return run_norm_grad(t);
    case assay_cuda_rotate:
      return run_rotate(t);
    case assay_cuda_attention:
    case assay_cuda_attention_grad:
      return run_attention(t);
    case assay_cuda_join:
      return run_join(t);
    case assay_cuda_clear:
      return check(
          cudaMemsetAsync(at(out[0]), 0, static_cast<std::size_t>(array(out[0]).elements) * width_of(out[0]), stream_),
          "cudaMemsetAsync");
    case assay_cuda_activate:
      return activate(halves(in[0]), in[1] < 0 ? nullptr : halves(in[1]), halves(out[0]), s[0], stream_);
    case assay_cuda_activate_grad:
      return activate_grad(halves(in[0]), halves(in[1]), in[2] < 0 ? nullptr : halves(in[2]),
                           {halves(out[0]), out[1] < 0 ? nullptr : halves(out[1])}, s[0], stream_);
    case assay_cuda_add:
      return run_add(t);
    case assay_cuda_loss_sums:
      return loss_sums(halves(in[0]), numbers(in[1]), floats(out[0]), {s[0], s[1], s[2], partial, 1.0F}, stream_);
    case assay_cuda_loss:
      return loss(floats(in[0]), floats(out[0]), reinterpret_cast<double*>(totals_.at()), {s[0], 0, 0, partial, 1.0F},
                  stream_);
    case assay_cuda_loss_grad:
      return loss_grad(halves(in[0]), numbers(in[1]), floats(in[2]), halves(out[0]),
                       {s[0], s[1], s[2], partial, static_cast<float>(t.number)}, stream_);
    case assay_cuda_update:
      return run_update(t);
    case assay_cuda_cache_write:
    case assay_cuda_cache_attention:
    case assay_cuda_last_tokens:
    case assay_cuda_sample:
    case assay_cuda_best_part:
      return run_cache(t);
    case assay_cuda_slice:
      return one_part(at(in[0]), at(out[0]), {s[0], s[2], s[1], width_of(in[0]), false}, s[3], stream_);
    case assay_cuda_send:
      return network_.send(static_cast<std::size_t>(s[1]), {at(in[0]), s[0], array(in[0]).type}, stream_);
    case assay_cuda_receive:
      return network_.receive(static_cast<std::size_t>(s[1]), {at(out[0]), s[0], array(out[0]).type}, stream_);
    case assay_cuda_arrived:
      return network_.wait_for_sent(stream_);
    case assay_cuda_all_gather:
    case assay_cuda_reduce_scatter:
    case assay_cuda_all_reduce:
    case assay_cuda_all_to_all:
    case assay_cuda_shift:
      return network_.run(t.kernel, {at(in[0]), at(out[0]), array(in[0]).type}, s, stream_);
    default:
      return run_experts(t);
  }
}

void Session::run_experts(const AssayCudaTask& t) {
  const int *in = t.in, *out = t.out;
  const long long* s = t.sizes;
  const Experts shape{s[0], s[1], s[2], s[3], s[4], s[5]};
  const Routing routing{s[0], static_cast<int>(s[1]), static_cast<int>(s[2])};
  switch (t.kernel) {
    case assay_cuda_route:
      return route(halves(in[0]), halves(out[0]), routing, stream_);
    case assay_cuda_route_grad:
      return route_grad(halves(in[0]), halves(in[1]), halves(out[0]), routing, stream_);
    case assay_cuda_slots:
      return expert_slots(halves(in[0]), numbers(out[0]), shape, stream_);
    case assay_cuda_dispatch:
      return dispatch(halves(in[0]), numbers(in[1]), halves(out[0]), shape, stream_);
    case assay_cuda_dispatch_grad:
      return dispatch_grad(halves(in[0]), numbers(in[1]), halves(out[0]), shape, stream_);
    case assay_cuda_combine:
      return combine(halves(in[0]), halves(in[1]), numbers(in[2]), halves(out[0]), shape, stream_);
    case assay_cuda_combine_grad:
      return combine_grad({halves(in[0]), halves(in[1]), halves(in[2]), numbers(in[3])},
                          {halves(out[0]), halves(out[1])}, shape, stream_);
    default:
      throw Failure("an unknown kernel");
  }
}

void Session::run_cache(const AssayCudaTask& t) {
  const int *in = t.in, *out = t.out;
  const long long* s = t.sizes;
  if (t.kernel == assay_cuda_cache_write)
    return cache_write(halves(in[0]), numbers(in[1]), halves(out[0]), {s[0], s[1], s[2], s[3], s[4]}, stream_);
  if (t.kernel == assay_cuda_last_tokens)
    return last_tokens(halves(in[0]), halves(out[0]), {s[0], s[1], s[2], s[3]}, stream_);
  if (t.kernel == assay_cuda_sample) {
    if (t.flags & assay_cuda_partial)
      return best_of_part(halves(in[0]), reinterpret_cast<float2*>(floats(out[0])), {s[0], s[1], s[2]}, stream_);
    return sample(halves(in[0]), numbers(out[0]), {s[0], s[1], s[2]}, stream_);
  }
  if (t.kernel == assay_cuda_best_part)
    return best_part(reinterpret_cast<const float2*>(floats(in[0])), numbers(out[0]), s[0], s[1], stream_);
  const CacheAttention shape{s[0], s[1], s[2], s[3], s[4], s[5], s[6], static_cast<float>(t.number)};
  const auto bytes = static_cast<std::size_t>(cache_scratch(shape)) * sizeof(float);
  if (!parts_ || parts_->bytes() < bytes) parts_ = std::make_unique<Buffer>(bytes);
  cache_attention({halves(in[0]), halves(in[1]), halves(in[2]), numbers(in[3]), halves(out[0])},
                  reinterpret_cast<float*>(parts_->at()), shape, stream_);
}

void Session::run_product(const AssayCudaTask& t) {
  const bool is_wide = array(t.out[0]).type == assay_cuda_fp32;
  if (t.in[2] >= 0 && (array(t.in[2]).type == assay_cuda_fp32) != is_wide)
    throw Failure("a product is added to another format");
  products_.run({t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3], (t.flags & assay_cuda_transposed_a) != 0,
                 (t.flags & assay_cuda_transposed_b) != 0, is_wide, t.in[3] >= 0},
                {halves(t.in[0]), halves(t.in[1]), t.in[2] < 0 ? nullptr : at(t.in[2]),
                 t.in[3] < 0 ? nullptr : halves(t.in[3]), at(t.out[0])},
                stream_);
}

void Session::run_norm_grad(const AssayCudaTask& t) {
  norm_grad(halves(t.in[0]), halves(t.in[1]), halves(t.in[2]),
            {halves(t.out[0]), floats(t.out[1]), reinterpret_cast<float*>(scratch_->at()),
             (t.flags & assay_cuda_accumulates) != 0},
            {t.sizes[0], t.sizes[1], static_cast<float>(t.number)}, stream_);
}

void Session::run_rotate(const AssayCudaTask& t) {
  const Rotation shape{
      t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3], t.sizes[4], t.sizes[5], (t.flags & assay_cuda_backwards) != 0};
  const long long last = shape.first + shape.tokens;
  auto table = std::find_if(rotations_.begin(), rotations_.end(), [&](const RotationTable& known) {
    return known.tokens >= last && known.rotated == shape.rotated;
  });
  if (table == rotations_.end()) {
    long long tokens = 1024;
    while (tokens < last) tokens *= 2;
    const auto bytes = static_cast<std::size_t>(tokens * shape.rotated / 2) * sizeof(float2);
    rotations_.push_back({tokens, shape.rotated, std::make_unique<Buffer>(bytes)});
    table = rotations_.end() - 1;
    rotation_table(reinterpret_cast<float2*>(table->values->at()), tokens, shape.rotated, t.number, stream_);
  }
  rotate(halves(t.in[0]), reinterpret_cast<const float2*>(table->values->at()), halves(t.out[0]), shape, stream_);
}

void Session::run_attention(const AssayCudaTask& t) {
  const AttentionShape shape{t.sizes[0],
                             t.sizes[1],
                             t.sizes[2],
                             t.sizes[3],
                             t.sizes[4],
                             (t.flags & assay_cuda_unmasked) == 0,
                             static_cast<float>(t.number)};
  if (t.kernel == assay_cuda_attention)
    attention_.forward(shape, {halves(t.in[0]), halves(t.in[1]), halves(t.in[2]), halves(t.out[0]), floats(t.out[1])},
                       stream_);
  else
    attention_.backward(
        shape, {halves(t.in[0]), halves(t.in[1]), halves(t.in[2]), halves(t.in[3]), halves(t.in[4]), floats(t.in[5])},
        {halves(t.out[0]), halves(t.out[1]), halves(t.out[2])}, stream_);
}

void Session::run_join(const AssayCudaTask& t) {
  const auto part = [&](int o, int statistics) {
    return JoinedPart{at(o), floats(statistics), array(o).type == assay_cuda_fp32};
  };
  join(part(t.in[0], t.in[1]), part(t.in[2], t.in[3]), part(t.out[0], t.out[1]),
       {t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3]}, stream_);
}

void Session::run_add(const AssayCudaTask& t) {
  int sum = t.in[0];
  for (int i = 1; i < ASSAY_CUDA_INPUTS && t.in[i] >= 0; ++i) {
    if (array(t.out[0]).type == assay_cuda_fp32)
      add(floats(sum), floats(t.in[i]), floats(t.out[0]), t.sizes[0], stream_);
    else
      add(halves(sum), halves(t.in[i]), halves(t.out[0]), t.sizes[0], stream_);
    sum = t.out[0];
  }
}

void Session::run_update(const AssayCudaTask& t) {
  const auto number = static_cast<double>(steps_);
  const Adam adam{static_cast<float>(adam_.rate),
                  static_cast<float>(adam_.first_decay),
                  static_cast<float>(adam_.second_decay),
                  static_cast<float>(adam_.epsilon),
                  static_cast<float>(t.flags & assay_cuda_decays ? 1.0 - adam_.rate * adam_.weight_decay : 1.0),
                  static_cast<float>(1.0 - std::pow(adam_.first_decay, number)),
                  static_cast<float>(1.0 - std::pow(adam_.second_decay, number))};
  update(floats(t.in[0]), t.in[1] == t.in[2] ? nullptr : halves(t.in[1]),
         {floats(t.in[2]), floats(t.in[3]), floats(t.in[4]),
          t.number > 0 ? reinterpret_cast<double*>(totals_.at()) + 1 : nullptr},
         t.sizes[0], adam, stream_);
}

}  // namespace assay::cuda
