#include "cuda/attention.h"

#include <limits>

#include "cuda/kernels.h"

namespace assay::cuda {

using measure::cuda::Graph;
using measure::cuda::Sizes;

namespace {

/// Strides of [batch, heads, tokens, width] where heads lie inside of tokens.
Sizes strides_of(const Sizes& s) { return {s[1] * s[2] * s[3], s[3], s[1] * s[3], 1}; }

/// The start of both passes: scores of queries and keys, scaled and masked.
struct Scores {
  Scores(const measure::cuda::Cudnn& library, const AttentionShape& s)
      : graph(library),
        query_sizes{s.batch, s.heads, s.tokens, s.width},
        key_sizes{s.batch, s.kv_heads, s.tokens, s.width},
        row_sizes{s.batch, s.heads, s.tokens, 1},
        q(array(query_sizes)),
        k(array_transposed(key_sizes)),
        scale(graph.scalar(s.scale)),
        is_causal(s.causal) {}

  Graph::Tensor array(const Sizes& sizes) { return graph.tensor(CUDNN_DATA_BFLOAT16, sizes, strides_of(sizes)); }
  Graph::Tensor array_transposed(const Sizes& sizes) {
    return graph.tensor(CUDNN_DATA_BFLOAT16, measure::cuda::transposed(sizes),
                        measure::cuda::transposed(strides_of(sizes)));
  }
  Graph::Tensor rows() { return graph.tensor(CUDNN_DATA_FLOAT, row_sizes, measure::cuda::dense(row_sizes)); }

  Graph::Tensor scores() {
    const Graph::Tensor scaled = graph.map(CUDNN_POINTWISE_MUL, graph.product(q, k, CUDNN_DATA_FLOAT), scale);
    if (!is_causal) return scaled;
    const Graph::Tensor seen =
        graph.map(CUDNN_POINTWISE_CMP_GE, graph.index(scaled, 2), graph.index(scaled, 3), CUDNN_DATA_BOOLEAN);
    return graph.select(scaled, graph.scalar(std::numeric_limits<float>::lowest()), seen);
  }

  Graph graph;
  Sizes query_sizes, key_sizes, row_sizes;
  Graph::Tensor q, k, scale;
  bool is_causal;
};

}  // namespace

struct Attention::Forward : Scores {
  Forward(const measure::cuda::Cudnn& library, const AttentionShape& s) : Scores(library, s) {
    v = array(key_sizes);
    o = array(query_sizes);
    statistics = rows();
    const Graph::Tensor masked = scores();
    const Graph::Tensor largest = graph.reduce(CUDNN_REDUCE_TENSOR_MAX, masked);
    const Graph::Tensor powers = graph.map(CUDNN_POINTWISE_EXP, graph.map(CUDNN_POINTWISE_SUB, masked, largest));
    const Graph::Tensor sum = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
    graph.map(CUDNN_POINTWISE_ADD, graph.map(CUDNN_POINTWISE_LOG, sum), largest, statistics);
    graph.product(graph.map(CUDNN_POINTWISE_DIV, powers, sum, CUDNN_DATA_BFLOAT16), v, o);
    graph.plan();
  }
  Graph::Tensor v, o, statistics;
};

/// Gradients of grouped keys and values are made for every head, and summed after.
struct Attention::Backward : Scores {
  Backward(const measure::cuda::Cudnn& library, const AttentionShape& s) : Scores(library, s) {
    v = array_transposed(key_sizes);
    o = array(query_sizes);
    d_o = array(query_sizes);
    dq = array(query_sizes);
    dk = array(query_sizes);
    dv = array(query_sizes);
    statistics = rows();
    const Graph::Tensor agreed =
        graph.map(CUDNN_POINTWISE_MUL, graph.reduce(CUDNN_REDUCE_TENSOR_ADD, graph.map(CUDNN_POINTWISE_MUL, d_o, o)),
                  graph.scalar(1.0F));
    const Graph::Tensor weights = graph.map(CUDNN_POINTWISE_EXP, graph.map(CUDNN_POINTWISE_SUB, scores(), statistics));
    graph.product(graph.transpose(weights, CUDNN_DATA_BFLOAT16), d_o, dv);
    const Graph::Tensor d_weights = graph.product(d_o, v, CUDNN_DATA_FLOAT);
    const Graph::Tensor d_scores = graph.map(
        CUDNN_POINTWISE_MUL, graph.map(CUDNN_POINTWISE_MUL, graph.map(CUDNN_POINTWISE_SUB, d_weights, agreed), weights),
        scale, CUDNN_DATA_BFLOAT16);
    graph.product(d_scores, graph.transpose(k, CUDNN_DATA_BFLOAT16), dq);
    graph.product(graph.transpose(d_scores, CUDNN_DATA_BFLOAT16), q, dk);
    graph.plan();
    if (s.kv_heads == s.heads) return;
    const auto bytes = static_cast<std::size_t>(2 * s.batch * s.heads * s.tokens * s.width);
    for (std::unique_ptr<Buffer>& buffer : by_head) buffer = std::make_unique<Buffer>(bytes);
  }

  Graph::Tensor v, o, d_o, dq, dk, dv, statistics;
  std::unique_ptr<Buffer> by_head[2];  ///< gradients of keys and of values
};

Attention::Attention() = default;
Attention::~Attention() = default;

void Attention::forward(const AttentionShape& shape, const Operands& on, cudaStream_t stream) {
  std::unique_ptr<Forward>& pass = forward_[shape];
  if (!pass) pass = std::make_unique<Forward>(library_, shape);
  pass->graph.run(
      {{pass->q, on.q}, {pass->k, on.k}, {pass->v, on.v}, {pass->o, on.o}, {pass->statistics, on.statistics}}, stream);
}

void Attention::backward(const AttentionShape& shape, const Inputs& in, const Gradients& out, cudaStream_t stream) {
  std::unique_ptr<Backward>& pass = backward_[shape];
  if (!pass) pass = std::make_unique<Backward>(library_, shape);
  const bool is_grouped = shape.kv_heads < shape.heads;
  const Groups groups{shape.batch * shape.tokens, shape.heads, shape.kv_heads, shape.width};
  void *dk = out.dk, *dv = out.dv;
  if (is_grouped) {
    dk = pass->by_head[0]->at();
    dv = pass->by_head[1]->at();
  }
  pass->graph.run({{pass->q, in.q},
                   {pass->k, in.k},
                   {pass->v, in.v},
                   {pass->o, in.o},
                   {pass->statistics, in.statistics},
                   {pass->d_o, in.d_o},
                   {pass->dq, out.dq},
                   {pass->dk, dk},
                   {pass->dv, dv}},
                  stream);
  if (!is_grouped) return;
  sum_heads(static_cast<const bf16*>(dk), static_cast<bf16*>(out.dk), groups, stream);
  sum_heads(static_cast<const bf16*>(dv), static_cast<bf16*>(out.dv), groups, stream);
}

}  // namespace assay::cuda
