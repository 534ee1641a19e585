#include "assay/engine/cuda/task_builder.h"

#include <algorithm>
#include <limits>

#include "assay/base/index.h"

namespace assay::engine {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Where a task has the gates of its tokens; below 0: nowhere.
int gates_operand(const AssayCudaTask& task) {
  if (task.kernel == assay_cuda_dispatch || task.kernel == assay_cuda_dispatch_grad ||
      task.kernel == assay_cuda_combine)
    return 1;
  return task.kernel == assay_cuda_combine_grad ? 2 : -1;
}

}  // namespace

AssayCudaTask empty_task(int kernel) {
  AssayCudaTask task{};
  task.kernel = kernel;
  std::fill(std::begin(task.in), std::end(task.in), -1);
  std::fill(std::begin(task.out), std::end(task.out), -1);
  return task;
}

AssayCudaTask task_of(int kernel, int step, std::initializer_list<int> in, std::initializer_list<int> out,
                      std::initializer_list<long long> sizes) {
  AssayCudaTask task = empty_task(kernel);
  task.step = step;
  std::copy(in.begin(), in.end(), task.in);
  std::copy(out.begin(), out.end(), task.out);
  std::copy(sizes.begin(), sizes.end(), task.sizes);
  return task;
}

std::int64_t bytes_of_type(int type) { return type == assay_cuda_bf16 ? 2 : 4; }

int TaskBuilder::added(int type, std::int64_t elements) {
  arrays_.push_back({0, elements, type});
  lifetimes_.push_back({elements * bytes_of_type(type), never, -1});
  parts_.push_back(-1);
  return static_cast<int>(arrays_.size()) - 1;
}

int TaskBuilder::kept(int type, std::int64_t elements) {
  const int number = added(type, elements);
  lifetimes_.back() = {lifetimes_.back().bytes, -1, never};
  return number;
}

int TaskBuilder::part_of(int whole, std::int64_t first, std::int64_t elements) {
  const int number = added(array(whole).type, elements);
  parts_.back() = whole;
  arrays_.back().offset = first * bytes_of_type(arrays_.back().type);
  lifetimes_.back().bytes = 0;
  return number;
}

int TaskBuilder::fixed(const AssayCudaArray& array) {
  const int number = added(array.type, array.elements);
  arrays_.back() = array;
  lifetimes_.back().bytes = 0;
  parts_.back() = number;
  return number;
}

int TaskBuilder::slots_of(int gates, const AssayCudaTask& task) {
  if (const auto known = slots_.find(gates); known != slots_.end()) return known->second;
  AssayCudaTask counted = empty_task(assay_cuda_slots);
  counted.step = task.step;
  counted.in[0] = gates;
  counted.out[0] = slots_[gates] = added(assay_cuda_int32, array(gates).elements);
  std::copy(std::begin(task.sizes), std::end(task.sizes), counted.sizes);
  add(counted);
  return counted.out[0];
}

void TaskBuilder::add(AssayCudaTask task) {
  if (const int i = gates_operand(task); i >= 0) {
    const int slots = slots_of(task.in[i], task);
    const bool weighs = task.kernel == assay_cuda_combine || task.kernel == assay_cuda_combine_grad;
    task.in[weighs ? i + 1 : i] = slots;
  }
  const auto now = std::ssize(tasks_);
  const auto use = [&](int number) {
    if (number < 0) return;
    const int whole = parts_[at(number)] < 0 ? number : parts_[at(number)];
    Lifetime& lifetime = lifetimes_[at(whole)];
    lifetime.first = std::min<std::int64_t>(lifetime.first, now);
    lifetime.last = std::max<std::int64_t>(lifetime.last, now);
  };
  for (const int number : task.in) use(number);
  for (const int number : task.out) use(number);
  tasks_.push_back(task);
}

void TaskBuilder::keep(int number) {
  Lifetime& lifetime = lifetimes_[at(parts_[at(number)] < 0 ? number : parts_[at(number)])];
  lifetime.last = std::max<std::int64_t>(lifetime.last, std::ssize(tasks_) - 1);
}

std::int64_t TaskBuilder::place(std::int64_t start) {
  const MemoryPlan plan = plan_memory(lifetimes_);
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const int whole = parts_[i];
    if (whole == static_cast<int>(i)) continue;  // fixed
    arrays_[i].offset += start + plan.offsets[whole < 0 ? i : at(whole)];
  }
  return start + plan.bytes;
}

}  // namespace assay::engine
