#include "assay/engine/cuda/rings.h"

#include <algorithm>

#include "assay/base/index.h"
#include "assay/engine/cuda/task_of_step.h"

namespace assay::engine {
namespace {

/// Steps of a block by what they make and what they read.
class BlockSteps {
 public:
  BlockSteps(const program::Program& program, const program::Block& block) : program_(program), block_(block) {}

  /// The step of a kind that makes a tensor which nothing but `reader` reads; below 0: there is none.
  std::int32_t maker(int id, program::Collective kind, std::int32_t reader) const {
    std::int32_t found = -1;
    for (std::int32_t i = block_.first; i < block_.last; ++i) {
      if (makes(i, id) && is_along_sequence(i, kind)) found = i;
      if (i != reader && reads(i, id)) return -1;
    }
    return found;
  }
  /// The only step that reads a tensor, where it is of a kind; below 0: there is none.
  std::int32_t only_reader(int id, program::Collective kind) const {
    std::int32_t found = -1;
    for (std::int32_t i = block_.first; i < block_.last; ++i) {
      if (!reads(i, id)) continue;
      if (found >= 0 || !is_along_sequence(i, kind)) return -1;
      found = i;
    }
    return found;
  }

 private:
  const program::Step& step(std::int32_t i) const { return program_.steps[at(i)]; }
  bool reads(std::int32_t i, int id) const {
    return std::find(step(i).in.begin(), step(i).in.end(), id) != step(i).in.end();
  }
  bool makes(std::int32_t i, int id) const {
    return std::find(step(i).out.begin(), step(i).out.end(), id) != step(i).out.end();
  }
  /// Whether the second dimension is joined or split, and nothing else.
  bool is_along_sequence(std::int32_t i, program::Collective kind) const {
    if (!program::is_collective(step(i).op) || step(i).collective != kind) return false;
    const program::ProgramTensor &before = program_.tensor(step(i).in[0]), &after = program_.tensor(step(i).out[0]);
    for (std::size_t d = 0; d < before.rank; ++d)
      if ((local_size(program_, before, d) != local_size(program_, after, d)) != (d == 1)) return false;
    return before.rank == 4;
  }

  const program::Program& program_;
  const program::Block& block_;
};

}  // namespace

Rings::Rings(const program::Program& program) : replaced_(program.steps.size(), 0) {
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[at(i)];
      const bool is_gradient = step.op == program::Op::attention_grad;
      if (!is_gradient && step.op != program::Op::attention) continue;
      const std::size_t q = is_gradient ? 1 : 0;
      if (step.in[q + 1] < 0 || step.in[q + 2] < 0) continue;
      const BlockSteps steps(program, block);
      RingStep ring{steps.maker(step.in[q + 1], program::Collective::all_gather, i),
                    steps.maker(step.in[q + 2], program::Collective::all_gather, i)};
      if (ring.keys < 0 || ring.values < 0) continue;
      const program::ProgramTensor& own = program.tensor(program.steps[at(ring.keys)].in[0]);
      if (local_size(program, own, 1) != local_size(program, program.tensor(step.in[q]), 1)) continue;
      if (is_gradient) {
        ring.key_gradients = steps.only_reader(step.out[1], program::Collective::reduce_scatter);
        ring.value_gradients = steps.only_reader(step.out[2], program::Collective::reduce_scatter);
        if (ring.key_gradients < 0 || ring.value_gradients < 0) continue;
        replaced_[at(ring.key_gradients)] = replaced_[at(ring.value_gradients)] = 1;
      }
      replaced_[at(ring.keys)] = replaced_[at(ring.values)] = 1;
      rings_[i] = ring;
    }
}

int RingTasks::shifted(const RingShift& shift, int array) {
  AssayCudaTask task = shift.task;
  task.in[0] = array;
  task.out[0] = like(array);
  movements_.moved += Bytes(static_cast<double>(task.sizes[1] * bytes_of_type(builder_.array(array).type)));
  builder_.add(task);
  return task.out[0];
}

RingTasks::Block RingTasks::shifted(const RingShift& keys, const RingShift& values, const Block& block) {
  const int moved = shifted(keys, block.keys);
  return {moved, shifted(values, block.values)};
}

void RingTasks::join(const Output& a, const Output& b, const Output& both) {
  const long long* s = attention_.sizes;
  builder_.add(task_of(assay_cuda_join, attention_.step, {a.o, a.statistics, b.o, b.statistics},
                       {both.o, both.statistics}, {s[0], s[1], s[3], s[4]}));
}

void RingTasks::add(int a, int b, int sum) { builder_.add_sum(attention_.step, a, b, sum); }

AssayCudaTask RingTasks::attended(bool is_own) const {
  AssayCudaTask task = attention_;
  if (!is_own) task.flags |= assay_cuda_unmasked;
  return task;
}

void RingTasks::forward(int q, const Block& own, const Output& result) {
  // Queries see their own block up to themselves, all of the blocks before it, and nothing of those after it.
  Block block = own;
  Output joined;
  for (int from = keys_.mine; from > keys_.mine - keys_.count; --from) {
    if (from < keys_.mine) block = shifted(keys_, values_, block);
    if (from < 0) continue;  // for others
    const bool is_last = from == 0;
    const Output made = is_last && joined.o < 0 ? result : Output{like(result.o), like(result.statistics)};
    AssayCudaTask task = attended(from == keys_.mine);
    task.in[0] = q, task.in[1] = block.keys, task.in[2] = block.values;
    task.out[0] = made.o, task.out[1] = made.statistics;
    builder_.add(task);
    if (joined.o < 0) {
      joined = made;
      continue;
    }
    const Output both =
        is_last ? result
                : Output{builder_.added(assay_cuda_fp32, builder_.array(result.o).elements), like(result.statistics)};
    join(joined, made, both);
    joined = both;
  }
}

void RingTasks::backward(const Pass& pass, const Block& own, const Sums& sums, const InputGradients& result) {
  // The sums of a block's gradients start behind the device that has the block, and reach it last.
  Block block = own, gradients;
  int dq = -1;
  for (int t = 0; t < keys_.count; ++t) {
    const bool is_own = t + 1 == keys_.count;
    const int from = keys_.mine - 1 - t;
    const bool sees = from >= 0 || is_own;
    block = is_own ? own : shifted(keys_, values_, block);
    if (t > 0) gradients = shifted(sums.keys, sums.values, gradients);
    if (!sees) {
      if (t > 0) continue;  // others' sums go on
      gradients = {like(result.keys), like(result.values)};
      for (const int array : {gradients.keys, gradients.values})
        builder_.add(task_of(assay_cuda_clear, attention_.step, {}, {array}));
      continue;
    }
    AssayCudaTask task = attended(is_own);
    task.in[0] = pass.d_o, task.in[1] = pass.q, task.in[2] = block.keys, task.in[3] = block.values;
    task.in[4] = pass.o, task.in[5] = pass.statistics;
    task.out[0] = is_own && dq < 0 ? result.q : like(result.q);
    task.out[1] = like(result.keys), task.out[2] = like(result.values);
    builder_.add(task);
    if (dq >= 0) add(dq, task.out[0], is_own ? result.q : dq);
    if (dq < 0) dq = task.out[0];
    if (t > 0) {
      const Block all = is_own ? Block{result.keys, result.values} : Block{like(result.keys), like(result.values)};
      add(gradients.keys, task.out[1], all.keys);
      add(gradients.values, task.out[2], all.values);
      gradients = all;
    } else {
      gradients = {task.out[1], task.out[2]};
    }
  }
}

}  // namespace assay::engine
