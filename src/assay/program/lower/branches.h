// Branches of layers within a program. Kinds of layers mostly differ in one branch, or only in a window:
// equal branches are lowered once and copied.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/program/lower/layers/layers.h"

namespace assay::lower {

/// A stretch of a program: steps, and the tensors added with them.
struct Stretch {
  int first_step = 0, last_step = 0;
  int first_tensor = 0, last_tensor = 0;

  /// An empty stretch at the end of a program.
  static Stretch begin(const program::Program& program) {
    Stretch made;
    made.first_step = static_cast<int>(program.steps.size());
    made.first_tensor = static_cast<int>(program.tensors.size());
    return made;
  }
  void end(const program::Program& program) {
    last_step = static_cast<int>(program.steps.size());
    last_tensor = static_cast<int>(program.tensors.size());
  }
};

struct LoweredBranch {
  const model::Layer* layer = nullptr;
  const Workload* work = nullptr;
  Branch branch = Branch::mixer;
  int input = -1, output = -1;  ///< values of the residual stream
  int attention = -1;           ///< index of its attention shape
  int same = -1;                ///< the first branch with the same forward steps; itself if there is no earlier one
  int like = -1;                ///< the branch it shares backward steps with, maybe itself; below 0: none yet
  int transposed = -1;          ///< the branch whose backward steps were written first
  Stretch forward;
  Stretch backward;                               ///< gradients
  Stretch reduced;                                ///< weight gradients, summed over devices
  Stretch updated;                                ///< the weights
  int arriving = -1, leaving = -1;                ///< gradients of output and input
  bool needs_input = false, keeps_input = false;  ///< flags of the input, as the backward steps set them
  int first_gradient = 0, last_gradient = 0;      ///< range in Branches::gradients
};

class Branches {
 public:
  explicit Branches(program::Program& program) : program_(program) { all_.reserve(8); }

  int size() const { return static_cast<int>(all_.size()); }
  LoweredBranch& operator[](int number) { return all_[static_cast<std::size_t>(number)]; }
  const LoweredBranch& operator[](int number) const { return all_[static_cast<std::size_t>(number)]; }

  /// A branch of a layer that begins here. If an equal branch was lowered before, copies its forward steps.
  bool begin(const model::Layer& layer, Branch branch, const Workload& work, int input);
  void end(int output);

  /// Writes the backward steps of branches [first, last) if equal branches were written before, with a gradient
  /// like `arriving`: for one branch, or for a whole layer.
  bool copy_backward(int first, int last, int arriving);
  /// Writes the steps that sum the gradients of weights, if copy_backward() wrote the other steps.
  bool copy_reduced(int number);
  /// Writes the steps that update weights, if an equal branch was written before.
  bool copy_updated(int number);

  /// A tensor that no step computes, and its gradient.
  struct Gradient {
    int of = -1, is = -1;
  };
  std::vector<Gradient> gradients;  ///< gradients of all branches

 private:
  bool begins_layer(int number) const;
  /// The first of the branches that match [first, last), or below 0.
  int transposed_like(int first, int last, int arriving) const;
  /// Maps tensors to their numbers in the copy.
  void rename(int from, int to);
  void rename(const Stretch& from, const Stretch& to);
  int renamed(int id) const { return renamed_[static_cast<std::size_t>(id + 1)]; }
  /// Copies a stretch to the end of the program.
  Stretch copied(const Stretch& from, int attention);

  program::Program& program_;
  std::vector<LoweredBranch> all_;
  std::vector<std::int16_t> renamed_;  ///< by tensor number + 1: entry 0 stands for none
};

}  // namespace assay::lower
