#include "assay/engine/cuda/task_of_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "assay/base/index.h"
#include "assay/engine/cuda/task_builder.h"
#include "assay/engine/kernels/layer.h"

namespace assay::engine {
namespace {

using Dims = std::vector<model::LogicalDim>;

class StepTask {
 public:
  StepTask(const StepPlace& place, const program::Step& step)
      : place_(place), program_(place.program), step_(step), layer_(place.layer) {}

  Result<AssayCudaTask> run() {
    switch (step_.op) {
      case program::Op::product:
        return product();
      case program::Op::embed:
        return of(assay_cuda_embed,
                  {elements(step_.in[0]), width(step_.in[1]), first(step_.in[1]), size(step_.in[1], 0)});
      case program::Op::embed_grad:
        return of(assay_cuda_embed_grad,
                  {elements(step_.in[1]), width(step_.out[0]), first(step_.out[0]), size(step_.out[0], 0)});
      case program::Op::bias_grad:
        return bias_grad();
      case program::Op::norm:
        return norm(assay_cuda_norm, step_.in[0], step_.in[1], 2);
      case program::Op::norm_grad:
        return norm(assay_cuda_norm_grad, step_.in[1], step_.in[2], 3);
      case program::Op::rotate:
      case program::Op::rotate_grad:
        return rotate();
      case program::Op::attention:
        return attention(assay_cuda_attention, step_.in[0], step_.in[1], step_.in[2], 3);
      case program::Op::attention_grad:
        return attention(assay_cuda_attention_grad, step_.in[1], step_.in[2], step_.in[3], 6);
      case program::Op::activate:
        return of(assay_cuda_activate, {elements(step_.out[0])});
      case program::Op::activate_grad:
        return of(assay_cuda_activate_grad, {elements(step_.in[0])});
      case program::Op::add:
        return add();
      case program::Op::route:
        return of(assay_cuda_route, {rows(step_.in[0]), width(step_.in[0]), experts_per_token()});
      case program::Op::route_grad:
        return of(assay_cuda_route_grad, {rows(step_.in[0]), width(step_.in[0]), experts_per_token()});
      case program::Op::dispatch:
        return expert(assay_cuda_dispatch, step_.in[1], step_.out[0]);
      case program::Op::dispatch_grad:
        return expert(assay_cuda_dispatch_grad, step_.in[1], step_.in[0]);
      case program::Op::combine:
        return expert(assay_cuda_combine, step_.in[1], step_.in[0]);
      case program::Op::combine_grad:
        return expert(assay_cuda_combine_grad, step_.in[2], step_.in[1]);
      case program::Op::sample:
        return sample();
      case program::Op::loss_sums:
        return of_vocabulary(of(assay_cuda_loss_sums, {elements(step_.in[1]), width(step_.in[0])}));
      case program::Op::loss:
        return of_vocabulary(of(assay_cuda_loss, {elements(step_.out[0])}));
      case program::Op::loss_grad:
        return of_vocabulary(of(assay_cuda_loss_grad, {elements(step_.in[1]), width(step_.in[0])}, place_.tokens));
      case program::Op::update: {
        Result<AssayCudaTask> task = of(assay_cuda_update, {elements(step_.out[0])},
                                        place_.layout.is_first_holder(step_.in[0], place_.device) ? 1.0 : 0.0);
        if (program::is_matrix(program_.tensor(step_.in[1]))) task->flags |= assay_cuda_decays;
        return task;
      }
      default:
        return refused("");
    }
  }

 private:
  tl::unexpected<Error> refused(std::string_view why) const {
    return fail("--engine cuda",
                fmt::format("{}{} has no kernel on a GPU yet: {}", program::name(step_), why,
                            program::step_text(program_, step_)),
                cuda_remedy);
  }
  std::int64_t elements(int id) const { return elements_of(program_.tensor(id)); }
  std::int64_t width(int id) const {
    const program::ProgramTensor& tensor = program_.tensor(id);
    return local_size(program_, tensor, tensor.rank - 1u);
  }
  std::int64_t rows(int id) const { return elements(id) / width(id); }
  std::int64_t experts_per_token() const { return layer_->feed_forward->experts_per_token; }
  std::int64_t size(int id, std::size_t dim) const { return local_size(program_, program_.tensor(id), dim); }
  /// The first row of a tensor that this device has.
  std::int64_t first(int id) const { return place_.layout.extents(id, place_.device).front().start; }
  /// The best token of all; of a part of the vocabulary its score too, and then the best of the parts' best.
  Result<AssayCudaTask> sample() const {
    const program::ProgramTensor& scores = program_.tensor(step_.in[0]);
    if (scores.find(model::LogicalDim::vocabulary) < 0)
      return of(assay_cuda_best_part, {rows(step_.in[0]), width(step_.in[0]) / 2});
    const Extent& part = place_.layout.extents(step_.in[0], place_.device).back();
    ASSAY_TRY(task, of(assay_cuda_sample, {rows(step_.in[0]), part.size, part.start}));
    if (part.size < scores.dims[scores.rank - 1u].size) task.flags |= assay_cuda_partial;
    return task;
  }

  /// The part of the vocabulary that this device has; sums over a part are summed over devices before they are used.
  Result<AssayCudaTask> of_vocabulary(Result<AssayCudaTask> task) const {
    if (!task) return task;
    for (const program::Step& step : program_.steps) {
      if (step.op != program::Op::loss_sums) continue;
      const Extent& part = place_.layout.extents(step.in[0], place_.device).back();
      if (task->kernel != assay_cuda_loss) task->sizes[2] = part.start;
      const program::ProgramTensor& logits = program_.tensor(step.in[0]);
      if (part.size < logits.dims[logits.rank - 1u].size) task->flags |= assay_cuda_partial;
    }
    return task;
  }

  Result<AssayCudaTask> of(int kernel, std::initializer_list<std::int64_t> sizes, double number = 0) const {
    AssayCudaTask task = empty_task(kernel);
    for (std::size_t i = 0; i < step_.in.size(); ++i) {
      if (step_.in[i] < 0) continue;
      if (i >= std::size(task.in)) return refused(" with so many inputs");
      task.in[i] = step_.in[i];
    }
    for (std::size_t i = 0; i < step_.out.size(); ++i) {
      if (step_.out[i] < 0) continue;
      if (i >= std::size(task.out)) return refused(" with so many results");
      task.out[i] = step_.out[i];
    }
    std::copy(sizes.begin(), sizes.end(), task.sizes);
    task.number = number;
    return task;
  }

  Dims dims_of(int id) const {
    Dims dims;
    for (std::size_t i = 0; i < program_.tensor(id).rank; ++i) dims.push_back(program_.tensor(id).dims[i].dim);
    return dims;
  }
  static Dims joined(const Dims& a, const Dims& b) {
    Dims all = a;
    all.insert(all.end(), b.begin(), b.end());
    return all;
  }
  static bool has(const Dims& dims, model::LogicalDim dim) {
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
  }
  /// The sizes of some dimensions of a tensor, multiplied.
  std::int64_t extent(int id, const Dims& dims) const {
    std::int64_t all = 1;
    for (const model::LogicalDim dim : dims) all *= size(id, at(program_.tensor(id).find(dim)));
    return all;
  }

  /// Rows, columns and the summed dimensions must lie together in all three tensors, which then are matrices; or
  /// matrices of experts, one after the other.
  Result<AssayCudaTask> product() const {
    int left = step_.in[0], right = step_.in[1];
    const auto is_of_experts = [&](int id) { return dims_of(id).front() == model::LogicalDim::experts; };
    const bool batched = is_of_experts(left) && is_of_experts(right) && is_of_experts(step_.out[0]);
    const auto matrix = [&](int id) {
      Dims dims = dims_of(id);
      if (batched) dims.erase(dims.begin());
      return dims;
    };
    const Dims c = matrix(step_.out[0]);
    for (const bool swapped : {false, true}) {
      if (swapped) std::swap(left, right);
      const Dims a = matrix(left), b = matrix(right);
      Dims rows, columns, summed;
      bool is_paired = false;
      for (const model::LogicalDim dim : c) {
        is_paired = is_paired || (has(a, dim) && has(b, dim));
        (has(a, dim) ? rows : columns).push_back(dim);
      }
      for (const model::LogicalDim dim : a)
        if (!has(c, dim)) summed.push_back(dim);
      if (is_paired || c != joined(rows, columns)) continue;
      const bool plain_a = a == joined(rows, summed), plain_b = b == joined(summed, columns);
      if ((!plain_a && a != joined(summed, rows)) || (!plain_b && b != joined(columns, summed))) continue;
      if (step_.in[3] >= 0 && (batched || dims_of(step_.in[3]) != columns)) continue;
      ASSAY_TRY(task, of(assay_cuda_product, {extent(left, rows), extent(right, columns), extent(left, summed),
                                              batched ? size(left, 0) : 1}));
      task.in[0] = left;
      task.in[1] = right;
      task.flags = (plain_a ? 0 : assay_cuda_transposed_a) | (plain_b ? 0 : assay_cuda_transposed_b);
      return task;
    }
    return refused(" over such dimensions");
  }

  /// Tokens on their way to slots [experts, capacity, width] or back; gates are those of all experts.
  Result<AssayCudaTask> expert(int kernel, int gates, int slots) const {
    if (width(gates) != program_.tensor(slots).dims[0].size) return refused(" with some of the gates");
    return of(kernel, {rows(gates), width(gates), size(slots, 1), width(slots), first(slots), size(slots, 0)});
  }

  Result<AssayCudaTask> bias_grad() const {
    const Dims all = dims_of(step_.in[0]), bias = dims_of(step_.out[0]);
    if (bias.size() > all.size() || !std::equal(bias.rbegin(), bias.rend(), all.rbegin()))
      return refused(" over such dimensions");
    const std::int64_t columns = elements(step_.out[0]);
    return of(assay_cuda_bias_grad, {elements(step_.in[0]) / columns, columns});
  }

  Result<AssayCudaTask> norm(int kernel, int x, int scale, std::size_t operands) const {
    if (step_.is_centred) return refused(" that subtracts the mean");
    if (step_.detail > 0) return refused(" in groups");
    if (scale < 0 || program_.tensor(scale).rank != 1) return refused(" without a scale per channel");
    if (width(x) != program_.tensor(x).dims[program_.tensor(x).rank - 1u].size) return refused(" of split rows");
    for (std::size_t i = operands; i < step_.in.size(); ++i)
      if (step_.in[i] >= 0) return refused(" with a bias or given sums");
    return of(kernel, {elements(x) / width(x), width(x)}, norm_epsilon);
  }

  Result<AssayCudaTask> rotate() const {
    const int x = step_.in[0];
    const std::int64_t rope = layer_ && layer_->attention ? layer_->attention->rope_dim : 0;
    if (program_.tensor(x).rank != 4) return refused(" without heads");
    ASSAY_TRY(task, of(assay_cuda_rotate,
                       {size(x, 0) * size(x, 1) * size(x, 2), size(x, 2), size(x, 1), width(x),
                        rope > 0 ? rope : width(x), place_.layout.first_position(x, place_.device)},
                       rotary_base));
    if (step_.op == program::Op::rotate_grad) task.flags |= assay_cuda_backwards;
    return task;
  }

  Result<AssayCudaTask> attention(int kernel, int q, int k, int v, std::size_t operands) const {
    if (step_.detail < 0) return refused(" of partial sums");
    const program::AttentionShape& shape = program_.attentions[at(step_.detail)];
    for (std::size_t i = operands; i < step_.in.size(); ++i)
      if (step_.in[i] >= 0) return refused(" with sinks, biases or picked keys");
    if (!shape.flash) return refused(" that stores its scores");
    const bool is_windowed = shape.window > 0 && shape.window < shape.keys;
    if (size(q, 1) != shape.queries && !place_.in_blocks) return refused(" of a part of the sequence");
    const bool has_cache = kernel == assay_cuda_attention && program_.tensor(k).find(model::LogicalDim::context) >= 0;
    if (!shape.causal || shape.cross || is_windowed || shape.chunk > 0 || shape.picks > 0 ||
        (shape.queries != shape.keys && !has_cache))
      return refused(" that is not causal over the whole sequence");
    if (v < 0 || program_.tensor(k).rank != 4 || width(v) != width(q) || width(k) != width(q))
      return refused(" with keys and values of other sizes");
    const double scale = 1.0 / std::sqrt(static_cast<double>(width(q)));
    if (shape.queries != shape.keys)
      return of(assay_cuda_cache_attention, {size(q, 0), size(q, 2), size(k, 2), size(q, 1), width(q), shape.keys},
                scale);
    return of(kernel, {size(q, 0), size(q, 2), size(k, 2), size(q, 1), width(q)}, scale);
  }

  Result<AssayCudaTask> add() const {
    for (const int id : step_.in)
      if (id >= 0 && elements(id) != elements(step_.out[0])) return refused(" of a bias");
    return of(assay_cuda_add, {elements(step_.out[0])});
  }

  const StepPlace& place_;
  const program::Program& program_;
  const program::Step& step_;
  const model::Layer* layer_;
};

}  // namespace

Result<AssayCudaTask> task_of_step(const StepPlace& place, const program::Step& step) {
  return StepTask(place, step).run();
}

bool adds_up(const AssayCudaTask& task) {
  return (task.kernel == assay_cuda_product && task.in[2] < 0) || task.kernel == assay_cuda_embed_grad ||
         task.kernel == assay_cuda_bias_grad || task.kernel == assay_cuda_norm_grad;
}

Result<void> find_arrays(const program::Program& program, const program::Step& step, const std::vector<int>& arrays,
                         AssayCudaTask& task) {
  for (int& operand : task.in) {
    if (operand < 0) continue;
    const int id = operand;
    operand = arrays[at(id)];
    if (operand < 0)
      return fail("--engine cuda",
                  fmt::format("{} comes from another layer, which does not run on a GPU yet: {}",
                              program.tensor(id).name, program::step_text(program, step)),
                  cuda_remedy);
  }
  return {};
}

int type_of(const program::ProgramTensor& tensor) {
  if (tensor.dtype == Dtype::int32) return assay_cuda_int32;
  return facts(tensor.dtype).bits == 16 ? assay_cuda_bf16 : assay_cuda_fp32;
}

std::int64_t elements_of(const program::ProgramTensor& tensor) { return static_cast<std::int64_t>(tensor.elements); }

std::int64_t local_size(const program::Program& program, const program::ProgramTensor& tensor, std::size_t dim) {
  return static_cast<std::int64_t>(program::local_extent(program, tensor, static_cast<int>(dim)));
}

}  // namespace assay::engine
