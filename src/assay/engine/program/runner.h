// The parts of a program that run in sequence, with the arrays they read: shared by training and
// serving.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/engine/program/run_program.h"
#include "assay/engine/program/step.h"

namespace assay::engine {

/// The first given input of a block with that name; below 0: none.
int given(const program::Program& program, const program::Block& block, std::string_view name,
          bool is_gradient = false);
/// The result of the last step of a block.
int result_of(const program::Program& program, const program::Block& block);
/// Embedded tokens, the input of the layers. The layers' token inputs are computed after them.
int embedded_by(const program::Program& program, const program::Block& block);
/// The token inputs of all layers: the embedding's last result; below 0: none.
int token_inputs_by(const program::Program& program, const program::Block& block);
/// One layer's part of it: [B, S, layers, width] to [B, S, width].
Shards token_input(const Shards& all, std::int64_t layer);
/// Keys and values that a block uses from another layer (given), or makes for others.
std::vector<int> lent_keys(const program::Program& program, const program::Block& block, bool is_given);

/// The layers of both stacks, encoder first.
struct StackedLayer {
  const model::Layer* shape = nullptr;
  int kind = -1;  ///< as numbered in the program
  bool encodes = false;
  std::int64_t place = 0;  ///< in its stack
};

class ProgramRunner {
 public:
  ProgramRunner(const program::Program& program, const model::Transformer& model, double tokens,
                Placement placement = {}, Overlap overlap = Overlap::hidden);

  /// Weights of a layer (below 0: embedding and head) by tensor, with the names they have in NamedArrays.
  std::map<int, std::string> names(std::int64_t layer) const;
  ProgramMemory memory(std::int64_t layer, const NamedArrays& weights) const;

  std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }
  /// The number of the decoder's first layer.
  std::int64_t first_decoding() const { return layers() - model_.decoder.layers(); }
  const StackedLayer& layer(std::int64_t number) const { return layers_[static_cast<std::size_t>(number)]; }
  int kind(std::int64_t number) const { return number < 0 ? -1 : layer(number).kind; }
  /// The first layer that may share weights with this one.
  std::int64_t first_of_kind(std::int64_t layer) const;
  /// The layer whose keys this one uses; below 0: it makes its own.
  std::int64_t lender(std::int64_t number) const;
  const program::Block& block(std::string_view name, program::Phase phase, int kind) const;
  const program::Block& layer_block(std::int64_t number, program::Phase phase) const {
    return block(layer(number).encodes ? "encoder layer" : "layer", phase, kind(number));
  }

  void run(const program::Block& which, std::int64_t layer, ProgramMemory& memory, bool once = false);
  /// Of the steps that run in every microbatch, only those that are marked, by number in the block.
  void run_marked(const program::Block& which, std::int64_t layer, ProgramMemory& memory,
                  const std::vector<char>& marks, bool marked);

  StepRunner& step() { return step_; }
  const StepRunner& step() const { return step_; }
  RunFacts facts() const { return {step_.disagreement(), step_.byte_error(), step_.received(), step_.predicted()}; }

 private:
  const program::Program& program_;
  const model::Transformer& model_;
  StepRunner step_;
  std::vector<StackedLayer> layers_;
  std::vector<std::map<int, std::string>> names_;  ///< by kind, the outer weights first
};

}  // namespace assay::engine
