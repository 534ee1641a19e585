// One step of a program, executed on virtual devices with real numbers.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "assay/engine/devices.h"
#include "assay/engine/program/activity.h"
#include "assay/engine/program/adam.h"
#include "assay/engine/program/background.h"
#include "assay/engine/program/local_step.h"
#include "assay/engine/program/run_program.h"

namespace assay::engine {

/// Learning rate of the updates of executed programs: plain gradient descent.
inline constexpr double descent_rate = 0.1;

/// The kind of work that reports sum up: "products", "attention", "collectives", "update", "other kernels".
std::string_view work_kind(const program::Step& step);

/// Which movements travel while other steps run, between processes: none, those that nothing waits for, or all of them.
enum class Overlap { none, hidden, all };

class StepRunner {
 public:
  /// The program must outlive it. The loss is averaged over `tokens`.
  StepRunner(const program::Program& program, double tokens, Placement placement = {},
             Overlap overlap = Overlap::hidden);

  /// Runs a step of a block of `layer` (nullptr: embedding and head).
  void run(const program::Step& step, const model::Layer* layer, ProgramMemory& memory);
  /// From now on recurrent steps start from these states, in order, and store new ones; nullptr: no state.
  void carry(std::vector<Shards>* states) {
    states_ = states;
    next_state_ = 0;
  }

  /// The numbers and functions of the model; it must outlive the runner. Without one they are the usual ones.
  void define(const model::Definition& definition) { definition_ = &definition; }

  /// Updates are steps of AdamW from now on, the `number`-th from 1 on; its moments are kept by weight.
  void update_with(const AdamW& adam, std::int64_t number, std::map<int, Moments>& moments) {
    adam_ = &adam;
    update_number_ = number;
    moments_ = &moments;
  }

  /// Whether movements that nothing waits for travel while other steps run: between processes.
  bool overlaps() const { return background_ != nullptr; }
  /// Starts a movement whose result is needed later, if what it reads is there.
  void start_ahead(const program::Step& step, ProgramMemory& memory);
  /// The same of any movement that travels and has not been started.
  void start_ready(const program::Step& step, ProgramMemory& memory);
  /// Waits for what a step reads, if it travels.
  void take_inputs(const program::Step& step, ProgramMemory& memory);
  /// Waits for everything that still travels.
  void settle();
  /// Time of movements in the background, and how long steps waited for them.
  Seconds background_time() const { return background_time_; }
  Seconds waited_time() const { return waited_time_; }

  const VirtualDevices& devices() const { return devices_; }
  Shards distributed(const Array& global, int tensor) const;
  /// The global array; records how far devices that should hold the same values disagree.
  Array collected(int tensor, const ProgramMemory& memory);

  /// The largest difference so far between devices that should hold the same values.
  double disagreement() const { return disagreement_; }
  /// The largest relative difference so far between the bytes a collective moved and the bytes its step states.
  double byte_error() const { return byte_error_; }
  Bytes received() const { return moved_; }  ///< mean over the devices of this process
  /// The same, as steps state it; of a ragged exchange, as it is routed.
  Bytes predicted() const { return predicted_; }
  /// Sum of the squares of all gradients that updates used, those on the devices of this process; every part is counted
  /// on one device.
  double squared_gradients() const { return squared_gradients_; }
  /// By step of the program.
  const std::vector<StepClock>& clocks() const { return clocks_; }
  /// What this process did since the last call; nothing where it has all devices.
  std::vector<Activity> take_activities() { return std::exchange(activities_, {}); }

 private:
  /// The result of a slice or a collective, whose bytes are counted.
  Shards moved(const program::Step& step, const Shards& from);
  /// The same of rows that go where `to` says.
  Shards exchanged(const program::Step& step, const Shards& from, const Shards& to);
  void count(Bytes received, Bytes predicted);
  /// What a movement did, counted.
  Shards counted(const program::Step& step, Moved run);
  bool travels(const program::Step& step) const;
  const program::Permutation* permutation_of(const program::Step& step) const;
  void record(const program::Step& step, Activity::Kind kind, Seconds start, Seconds end, Seconds busy = {});
  void start(const program::Step& step, ProgramMemory& memory);
  void take(ProgramMemory& memory, int tensor);
  void run_on_devices(const program::Step& step, const model::Layer* layer, ProgramMemory& memory);
  /// Plain gradient descent or AdamW on a device's part of the weight.
  void run_update(const program::Step& step, ProgramMemory& memory);
  /// The state that a recurrent step continues from; nullptr: none.
  Shards* state_of(const program::Step& step);
  /// Throws where operands that are combined element by element have different shardings.
  void check_layouts(const program::Step& step) const;

  const program::Program& program_;
  double tokens_;
  const model::Definition* definition_;
  VirtualDevices devices_;
  TensorLayout layout_;
  std::vector<Shards>* states_ = nullptr;
  std::size_t next_state_ = 0;
  double disagreement_ = 0, byte_error_ = 0;
  Bytes moved_, predicted_;
  const AdamW* adam_ = nullptr;
  std::int64_t update_number_ = 0;
  std::map<int, Moments>* moments_ = nullptr;
  double squared_gradients_ = 0;
  std::vector<StepClock> clocks_;
  bool records_ = false;
  std::vector<Activity> activities_;
  Overlap overlap_;
  std::unique_ptr<Background> background_;
  std::map<Background::Key, ProgramMemory*> travelling_;  ///< where results go
  Seconds background_time_, waited_time_;
};

}  // namespace assay::engine
