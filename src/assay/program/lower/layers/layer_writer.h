// Writes the forward steps of one layer. Attention, state spaces and the code that joins them are in separate
// files.
#pragma once
#include <array>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "assay/program/lower/layers/layers.h"

namespace assay::lower {

class LayerWriter {
 public:
  LayerWriter(Builder& builder, const model::Transformer& model, const model::Layer& layer, const Workload& work,
              int encoded);

  /// Writes the forward steps of a branch; returns the new value of the residual stream.
  int write(Branch branch, int x);
  /// Keys and values that later layers also use; below 0: none.
  CrossLayerKeys lent() const { return lent_; }

 private:
  /// The tensor of the next unused weight of that name; below 0 if the model has none.
  int weight(std::string_view name);
  /// The adapter of a weight is the weight with that number, possibly with the next one.
  void adapt(int weight, std::size_t next);
  int normed(int x);
  int norm(int x, std::string_view scale, std::string_view name);
  /// x + branch, resharded like x. The sum also adds the biases of the branch's last products.
  int joined_to(int x, int branch, std::string_view name);
  int add(std::initializer_list<int> terms, std::string_view name);
  /// x plus the pending biases.
  int biased(int x);
  /// Holds back a bias of the branch's last product until its partial sums have ended.
  void postpone(int bias) {
    if (bias >= 0) pending_[pending_[0] < 0 ? 0 : 1] = bias;
  }
  /// Attention and feed-forward read the same input; their partial sums are added before they are reduced.
  int parallel(int x);
  /// x + attention and feed-forward of x joined with the embedding.
  int with_block_aside(int x);
  /// x + the layer's input from the token itself, gated by x.
  int with_token_input(int x);
  /// A new tensor like `like` with another size of one dimension.
  int resized(int like, std::string_view name, model::LogicalDim dim, std::int64_t size);
  program::Sharding sharding(int id) { return build_.program().tensor(id).sharding; }

  // --- attention
  int attention_block(const model::Attention& a, int x);
  void lend(int keys, std::string_view name);
  /// Keys or values of an earlier layer.
  int shared(const model::Attention& a, std::string_view name, std::int64_t size, model::LogicalDim dim);
  /// The cache with the new keys (or values) written at its end, in the cache's format. A `whole` cache is not
  /// split by position.
  int cached(int fresh, const model::Attention& a, std::string_view name, bool whole = false);
  int latent_attention(const model::Attention& a, int x);
  /// The keys that queries attend to, chosen by an index whose queries come from the compressed `low`; below 0: all.
  int picked_keys(const model::Attention& a, int x, int low);
  /// Keys and values of all heads from their latent form.
  struct KeysAndValues {
    int keys = -1, values = -1;
  };
  KeysAndValues expand(const model::Attention& a, int c, int place, int expansion, model::LogicalDim along);
  int expanded(const model::Attention& a, int q, int latent, int expansion, int picked);
  /// Attention in latent form: the keys' half of the expansion is applied to the queries, the values' half to the
  /// result, and all heads share the cache.
  int absorbed(const model::Attention& a, int q, int latent, int expansion, int picked);
  /// Attention of queries to keys; `v` below 0: values are the leading part of the keys.
  int attend(const model::Attention& a, int q, int k, int v, model::Weight::Size result, int picked = -1);
  /// Sinks, or biases by relative position, added to the scores of queries; below 0: the layer has none.
  int score_terms(const model::Attention& a, int q);
  /// The sharding of attention's result for the output projection: tokens as in the rest of the layer, heads as in its
  /// weight.
  program::Sharding beside_output(int o);
  /// Ends attention over a cache split by position: sums weighted values and weights over the devices, then
  /// divides.
  int merged(int o, int weights, int sinks);

  // --- feed-forward
  int feed_forward(const model::FeedForward& f, int x, int onto);
  /// The weights of a dense block, and the dimensions of its intermediate and final results.
  struct DenseProjections {
    std::string_view in = "W_in", gate = "W_gate", out = "W_out";
    std::array<model::LogicalDim, 3> hidden{model::LogicalDim::batch, model::LogicalDim::sequence,
                                            model::LogicalDim::width};
    std::array<model::LogicalDim, 3> result{model::LogicalDim::batch, model::LogicalDim::sequence,
                                            model::LogicalDim::d_model};
    bool biased = true;
  };
  int dense(const model::FeedForward& f, int x, const DenseProjections& by, int onto);
  int experts_block(const model::FeedForward& f, int x);
  struct ExpertPlaces;
  ExpertPlaces expert_places(const model::FeedForward& f, int tokens);
  /// Slots of one expert, over all devices; `holders` split them.
  double slots_per_expert(const model::FeedForward& f, program::AxisList holders) const;
  /// Whether tokens are gathered before they are copied for their experts.
  bool gathers_before_dispatch(const model::FeedForward& f, const ExpertPlaces& places) const;
  /// The tokens as each device sends them to experts.
  program::ProgramTensor sent_slots(const model::FeedForward& f, const ExpertPlaces& places, int tokens);
  struct ExpertResults {
    int slots = -1;
    program::AxisSet unreduced = 0;
  };
  /// Results of the experts for the slots, back where the slots were sent from; with `sums_stay`, as partial sums.
  ExpertResults expert_results(const model::FeedForward& f, const ExpertPlaces& places,
                               const program::ProgramTensor& sent, int slots, bool sums_stay);
  /// y + the shared expert's output for x.
  int with_shared_expert(const model::FeedForward& f, int x, int y);
  /// The sharding of a result whose partial sums have just ended, on the way to `target`.
  program::Sharding summed(int from, const program::Sharding& target);

  // --- state spaces
  int state_space(const model::StateSpace& s, int x);
  int mamba1(const model::StateSpace& s, int x);
  int mamba2(const model::StateSpace& s, int x);
  int gated_delta(const model::StateSpace& s, int x);
  int lightning(const model::StateSpace& s, int x);
  int gated_convolution(const model::StateSpace& s, int x);
  int gated_linear(const model::StateSpace& s, int x);
  int mlstm(const model::StateSpace& s, int x);
  int rwkv4(const model::StateSpace& s, int x);
  int rwkv5(const model::StateSpace& s, int x);
  int rwkv7(const model::StateSpace& s, int x);
  struct WeightAndBias {
    std::string_view weight, bias = {};  ///< an empty bias: there is none
  };
  /// A projection of each token, without partial sums.
  int projected(std::string_view name, int x, const WeightAndBias& by, model::LogicalDim to);
  struct HeadInputs {
    int queries, keys, values, gate;
  };
  HeadInputs heads_of(int x);
  /// From here on, channels are grouped by heads.
  void by_heads(int x, model::LogicalDim last, const model::StateSpace& s);
  /// A tensor with its whole sequence on every device that scans it.
  int whole_sequence(int x);
  /// A short convolution along the sequence, per channel, and its activation.
  int convolved(int x, std::string_view weight_name, std::string_view bias);
  /// A weight over channels or heads, split like a tensor's last dimension.
  int along_channels(std::string_view name, int like);
  int scan(const model::StateSpace& s, std::initializer_list<int> in);
  /// Adds a result to the last step, shaped like another of its results.
  int also_made(int like, std::string_view name);
  /// Values mixed with the first layer's values.
  int with_first_values(const model::StateSpace& s, int x, int v);
  /// Names of two narrow matrices and a bias; the bias may be empty.
  struct NarrowMatrices {
    std::string_view low, high, bias;
  };
  /// A product with two narrow matrices, with an optional activation between them.
  int narrow_product(std::string_view name, int x, const NarrowMatrices& by,
                     std::initializer_list<model::LogicalDim> result, bool activated);
  /// The previous token of each token.
  int token_before(int x);
  /// x mixed with y once per name, by the weights of that name.
  std::array<int, 5> mixed(int x, int y, int weights, std::initializer_list<std::string_view> names);
  /// A feed-forward block that reads each token mixed with the previous one.
  int shifted_feed_forward(const model::FeedForward& f, int x);
  /// Moves from the scan's sharding back to the rest of the layer's.
  int scan_result(int y, int beside);

  Builder& build_;
  const model::Transformer& model_;
  const model::Layer& layer_;
  const Workload& work_;
  int encoded_;
  bool sandwich_;
  CrossLayerKeys lent_;
  std::array<int, 2> pending_{-1, -1};  ///< biases that the next sum adds
  std::vector<model::Weight> weights_;  ///< weights of the layer; taken ones have a blank name
  std::size_t next_ = 0;                ///< the first weight not taken yet
  int adapter_in_ = -1;                 ///< the first half of the last adapter
};

}  // namespace assay::lower
