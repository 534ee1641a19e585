#include "cuda/session.h"

#include <algorithm>
#include <cmath>

namespace assay::cuda {
namespace {

constexpr long long lanes = 8;

std::string gibibytes(std::size_t bytes) {
  constexpr double unit = 1024.0 * 1024.0 * 1024.0;
  const auto tenths = static_cast<long long>(std::ceil(10.0 * static_cast<double>(bytes) / unit));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

/// The first GPU, chosen before anything is allocated on it.
std::string chosen_device() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) throw Failure("there is no GPU here");
  check(cudaSetDevice(0), "cudaSetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace

Session::Session(const AssayCudaJob& job)
    : device(chosen_device()),
      arrays_(job.arrays, job.arrays + job.array_count),
      tasks_(job.tasks, job.tasks + job.task_count),
      adam_(job.adam),
      tokens_(job.tokens),
      targets_(job.targets) {
  check_sizes();
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
    start(floats(s.master), s.weight == s.master ? nullptr : halves(s.weight), array(s.master).elements,
          {s.seed, s.shift, s.factor}, stream_);
  }
  Count widest = 1;
  for (const AssayCudaTask& task : tasks_)
    if (task.kernel == assay_cuda_norm_grad || task.kernel == assay_cuda_bias_grad)
      widest = std::max<Count>(widest, task.sizes[1]);
  scratch_ = std::make_unique<Buffer>(static_cast<std::size_t>(row_scratch(widest)) * sizeof(float));
  events_.resize(tasks_.size() + 1);
  for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "cudaEventCreate");
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

void Session::check_sizes() const {
  const auto need = [](bool is_right, const char* what) {
    if (!is_right) throw Failure(what);
  };
  for (const AssayCudaTask& t : tasks_) {
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
    else if (t.kernel == assay_cuda_activate || t.kernel == assay_cuda_add)
      need(s[0] % lanes == 0, "activations must have a multiple of 8 elements");
  }
}

AssayCudaStep Session::step(const int* tokens, const int* targets, double* clocks) {
  ++steps_;
  for (const auto& [to, from] : {std::pair(tokens_, tokens), std::pair(targets_, targets)})
    check(cudaMemcpyAsync(at(to), from, static_cast<std::size_t>(array(to).elements) * sizeof(int),
                          cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
  check(cudaMemsetAsync(totals_.at(), 0, totals_.bytes(), stream_), "cudaMemsetAsync");
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    check(cudaEventRecord(events_[i], stream_), "cudaEventRecord");
    run(tasks_[i]);
    check(cudaGetLastError(), "a kernel");
  }
  check(cudaEventRecord(events_.back(), stream_), "cudaEventRecord");
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  const auto between = [&](std::size_t first, std::size_t last) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events_[first], events_[last]), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  };
  for (std::size_t i = 0; i < tasks_.size(); ++i) clocks[tasks_[i].step] += between(i, i + 1);
  double totals[2] = {};
  check(cudaMemcpy(totals, totals_.at(), sizeof totals, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return {totals[0], totals[1], between(0, tasks_.size())};
}

void Session::read(int number, float* values) const {
  check(cudaMemcpy(values, floats(number), static_cast<std::size_t>(array(number).elements) * sizeof(float),
                   cudaMemcpyDeviceToHost),
        "cudaMemcpy");
}

void Session::write(int master, int weight, const float* values) const {
  const Count n = array(master).elements;
  check(cudaMemcpy(floats(master), values, static_cast<std::size_t>(n) * sizeof(float), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  if (weight != master) cast(floats(master), halves(weight), n, stream_);
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void Session::run(const AssayCudaTask& t) {
  const int *in = t.in, *out = t.out;
  const long long* s = t.sizes;
  switch (t.kernel) {
    case assay_cuda_product:
      return run_product(t);
    case assay_cuda_embed:
      return embed(numbers(in[0]), halves(in[1]), halves(out[0]), s[0], s[1], stream_);
    case assay_cuda_embed_grad:
      if (!(t.flags & assay_cuda_accumulates))
        check(cudaMemsetAsync(floats(out[0]), 0, static_cast<std::size_t>(array(out[0]).elements) * sizeof(float),
                              stream_),
              "cudaMemsetAsync");
      return embed_grad(halves(in[0]), numbers(in[1]), floats(out[0]), s[0], s[1], stream_);
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
    case assay_cuda_activate:
      return activate(halves(in[0]), in[1] < 0 ? nullptr : halves(in[1]), halves(out[0]), s[0], stream_);
    case assay_cuda_activate_grad:
      return activate_grad(halves(in[0]), halves(in[1]), in[2] < 0 ? nullptr : halves(in[2]),
                           {halves(out[0]), out[1] < 0 ? nullptr : halves(out[1])}, s[0], stream_);
    case assay_cuda_add:
      return run_add(t);
    case assay_cuda_loss_sums:
      return loss_sums(halves(in[0]), numbers(in[1]), floats(out[0]), s[0], s[1], stream_);
    case assay_cuda_loss:
      return loss(floats(in[0]), floats(out[0]), reinterpret_cast<double*>(totals_.at()), s[0], stream_);
    case assay_cuda_loss_grad:
      return loss_grad(halves(in[0]), numbers(in[1]), floats(in[2]), halves(out[0]),
                       {s[0], s[1], static_cast<float>(t.number)}, stream_);
    case assay_cuda_update:
      return run_update(t);
    default:
      throw Failure("an unknown kernel");
  }
}

void Session::run_product(const AssayCudaTask& t) {
  const bool is_wide = array(t.out[0]).type == assay_cuda_fp32;
  if (t.in[2] >= 0 && (array(t.in[2]).type == assay_cuda_fp32) != is_wide)
    throw Failure("a product is added to another format");
  products_.run({t.sizes[0], t.sizes[1], t.sizes[2], (t.flags & assay_cuda_transposed_a) != 0,
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
  const Rotation shape{t.sizes[0], t.sizes[1], t.sizes[2],
                       t.sizes[3], t.sizes[4], (t.flags & assay_cuda_backwards) != 0};
  auto table = std::find_if(rotations_.begin(), rotations_.end(), [&](const RotationTable& known) {
    return known.tokens == shape.tokens && known.rotated == shape.rotated;
  });
  if (table == rotations_.end()) {
    const auto bytes = static_cast<std::size_t>(shape.tokens * shape.rotated / 2) * sizeof(float2);
    rotations_.push_back({shape.tokens, shape.rotated, std::make_unique<Buffer>(bytes)});
    table = rotations_.end() - 1;
    rotation_table(reinterpret_cast<float2*>(table->values->at()), shape.tokens, shape.rotated, t.number, stream_);
  }
  rotate(halves(t.in[0]), reinterpret_cast<const float2*>(table->values->at()), halves(t.out[0]), shape, stream_);
}

void Session::run_attention(const AssayCudaTask& t) {
  const AttentionShape shape{t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3], t.sizes[4], static_cast<float>(t.number)};
  if (t.kernel == assay_cuda_attention)
    attention_.forward(shape, {halves(t.in[0]), halves(t.in[1]), halves(t.in[2]), halves(t.out[0]), floats(t.out[1])},
                       stream_);
  else
    attention_.backward(
        shape, {halves(t.in[0]), halves(t.in[1]), halves(t.in[2]), halves(t.in[3]), halves(t.in[4]), floats(t.in[5])},
        {halves(t.out[0]), halves(t.out[1]), halves(t.out[2])}, stream_);
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
         {floats(t.in[2]), floats(t.in[3]), floats(t.in[4]), reinterpret_cast<double*>(totals_.at()) + 1}, t.sizes[0],
         adam, stream_);
}

}  // namespace assay::cuda
