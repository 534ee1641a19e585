// Ring attention: where a program gathers the keys and values of all devices, blocks of them pass around the devices
// instead, and each device joins what its queries see of every block. The bytes are those of the program's movements.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/cuda/movement_task.h"
#include "assay/engine/cuda/task_builder.h"
#include "assay/program/form/program.h"

namespace assay::engine {

/// Steps that attention, or its gradient, replaces.
struct RingStep {
  std::int32_t keys = -1, values = -1;                    ///< gathered
  std::int32_t key_gradients = -1, value_gradients = -1;  ///< summed and scattered; below 0: none
};

/// The rings of a program: attention over keys and values of which devices have parts of the sequence, like its
/// queries.
class Rings {
 public:
  explicit Rings(const program::Program& program);

  /// Null: the step is no such attention.
  const RingStep* at_step(std::int32_t step) const {
    const auto found = rings_.find(step);
    return found == rings_.end() ? nullptr : &found->second;
  }
  bool replaces(std::int32_t step) const { return replaced_[static_cast<std::size_t>(step)] != 0; }

 private:
  std::map<std::int32_t, RingStep> rings_;
  std::vector<char> replaced_;  ///< by step
};

/// The tasks of one ring on a device.
class RingTasks {
 public:
  /// Attention of one block, without operands, and how keys and values are passed on.
  RingTasks(TaskBuilder& builder, Movements& movements, const AssayCudaTask& attention, const RingShift& keys,
            const RingShift& values)
      : builder_(builder), movements_(movements), attention_(attention), keys_(keys), values_(values) {}

  struct Block {
    int keys = -1, values = -1;
  };
  struct Output {
    int o = -1, statistics = -1;
  };
  void forward(int q, const Block& own, const Output& result);

  struct Pass {
    int d_o = -1, q = -1, o = -1, statistics = -1;
  };
  /// `sums` says how the gradients of keys and of values are passed on.
  struct Sums {
    RingShift keys, values;
  };
  struct InputGradients {
    int q = -1, keys = -1, values = -1;
  };
  void backward(const Pass& pass, const Block& own, const Sums& sums, const InputGradients& result);

 private:
  int like(int array) { return builder_.added(builder_.array(array).type, builder_.array(array).elements); }
  int shifted(const RingShift& shift, int array);
  Block shifted(const RingShift& keys, const RingShift& values, const Block& block);
  void join(const Output& a, const Output& b, const Output& both);
  void add(int a, int b, int sum);
  AssayCudaTask attended(bool is_own) const;

  TaskBuilder& builder_;
  Movements& movements_;
  AssayCudaTask attention_;
  RingShift keys_, values_;
};

}  // namespace assay::engine
