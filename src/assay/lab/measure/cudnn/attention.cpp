#include "assay/lab/measure/cuda/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "assay/lab/measure/cuda/operands.h"
#include "assay/lab/measure/cudnn/graph.h"

namespace assay::measure::cuda {
namespace {

struct Shape {
  std::int64_t batch, heads, kv_heads, queries, keys, size;
  std::int64_t query_elements() const { return batch * heads * queries * size; }
  std::int64_t key_elements() const { return batch * kv_heads * keys * size; }
  bool causal() const { return queries > 1; }
};

/// Queries, keys, values, results and their gradients are contiguous in memory, each [batch, heads, tokens,
/// size].
struct Arrays {
  Buffer q, k, v, o, statistics, gradient_o, gradient_q, gradient_k, gradient_v;
  explicit Arrays(const Shape& s)
      : q(query_bytes(s)),
        k(key_bytes(s)),
        v(key_bytes(s)),
        o(query_bytes(s)),
        statistics(static_cast<std::size_t>(4 * s.batch * s.heads * s.queries)),
        gradient_o(query_bytes(s)),
        gradient_q(query_bytes(s)),
        gradient_k(key_bytes(s)),
        gradient_v(key_bytes(s)) {}

 private:
  static std::size_t query_bytes(const Shape& s) { return static_cast<std::size_t>(2 * s.query_elements()); }
  static std::size_t key_bytes(const Shape& s) { return static_cast<std::size_t>(2 * s.key_elements()); }
};

/// The start of both passes: scores of queries and keys, scaled and masked.
class Scores {
 public:
  Scores(const Cudnn& library, const Shape& s)
      : graph(library),
        query_sizes{s.batch, s.heads, s.queries, s.size},
        key_sizes{s.batch, s.kv_heads, s.keys, s.size},
        q(graph.tensor(CUDNN_DATA_BFLOAT16, query_sizes, dense(query_sizes))),
        k(graph.tensor(CUDNN_DATA_BFLOAT16, transposed(key_sizes), transposed(dense(key_sizes)))),
        scale(graph.scalar(1.0F / std::sqrt(static_cast<float>(s.size)))),
        shape_(s) {}

  Graph::Tensor scores() {
    const Graph::Tensor raw = graph.product(q, k, CUDNN_DATA_FLOAT);
    const Graph::Tensor scaled = graph.map(CUDNN_POINTWISE_MUL, raw, scale);
    if (!shape_.causal()) return scaled;
    const Graph::Tensor seen =
        graph.map(CUDNN_POINTWISE_CMP_GE, graph.index(scaled, 2), graph.index(scaled, 3), CUDNN_DATA_BOOLEAN);
    return graph.select(scaled, graph.scalar(std::numeric_limits<float>::lowest()), seen);
  }

  Graph graph;
  Sizes query_sizes, key_sizes;
  Graph::Tensor q, k, scale;

 private:
  Shape shape_;
};

class Forward : Scores {
 public:
  Forward(const Cudnn& library, const Shape& s) : Scores(library, s) {
    const Sizes rows{s.batch, s.heads, s.queries, 1};
    v_ = graph.tensor(CUDNN_DATA_BFLOAT16, key_sizes, dense(key_sizes));
    o_ = graph.tensor(CUDNN_DATA_BFLOAT16, query_sizes, dense(query_sizes));
    statistics_ = graph.tensor(CUDNN_DATA_FLOAT, rows, dense(rows));
    const Graph::Tensor masked = scores();
    const Graph::Tensor largest = graph.reduce(CUDNN_REDUCE_TENSOR_MAX, masked);
    const Graph::Tensor powers = graph.map(CUDNN_POINTWISE_EXP, graph.map(CUDNN_POINTWISE_SUB, masked, largest));
    const Graph::Tensor sum = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
    graph.map(CUDNN_POINTWISE_ADD, graph.map(CUDNN_POINTWISE_LOG, sum), largest, statistics_);
    graph.product(graph.map(CUDNN_POINTWISE_DIV, powers, sum, CUDNN_DATA_BFLOAT16), v_, o_);
    graph.plan();
  }
  void run(const Arrays& a, cudaStream_t stream) const {
    graph.run({{q, a.q.at()}, {k, a.k.at()}, {v_, a.v.at()}, {o_, a.o.at()}, {statistics_, a.statistics.at()}}, stream);
  }

 private:
  Graph::Tensor v_, o_, statistics_;
};

class Backward : Scores {
 public:
  Backward(const Cudnn& library, const Shape& s) : Scores(library, s) {
    const Sizes rows{s.batch, s.heads, s.queries, 1};
    const auto like_queries = [&] { return graph.tensor(CUDNN_DATA_BFLOAT16, query_sizes, dense(query_sizes)); };
    const auto like_keys = [&] { return graph.tensor(CUDNN_DATA_BFLOAT16, key_sizes, dense(key_sizes)); };
    v_ = graph.tensor(CUDNN_DATA_BFLOAT16, transposed(key_sizes), transposed(dense(key_sizes)));
    o_ = like_queries();
    gradient_o_ = like_queries();
    gradient_q_ = like_queries();
    gradient_k_ = like_keys();
    gradient_v_ = like_keys();
    statistics_ = graph.tensor(CUDNN_DATA_FLOAT, rows, dense(rows));

    const Graph::Tensor agreed = graph.map(
        CUDNN_POINTWISE_MUL, graph.reduce(CUDNN_REDUCE_TENSOR_ADD, graph.map(CUDNN_POINTWISE_MUL, gradient_o_, o_)),
        graph.scalar(1.0F));
    const Graph::Tensor weights = graph.map(CUDNN_POINTWISE_EXP, graph.map(CUDNN_POINTWISE_SUB, scores(), statistics_));
    graph.product(graph.transpose(weights, CUDNN_DATA_BFLOAT16), gradient_o_, gradient_v_);
    const Graph::Tensor gradient_weights = graph.product(gradient_o_, v_, CUDNN_DATA_FLOAT);
    const Graph::Tensor gradient_scores =
        graph.map(CUDNN_POINTWISE_MUL,
                  graph.map(CUDNN_POINTWISE_MUL, graph.map(CUDNN_POINTWISE_SUB, gradient_weights, agreed), weights),
                  scale, CUDNN_DATA_BFLOAT16);
    graph.product(gradient_scores, graph.transpose(k, CUDNN_DATA_BFLOAT16), gradient_q_);
    graph.product(graph.transpose(gradient_scores, CUDNN_DATA_BFLOAT16), q, gradient_k_);
    graph.plan();
  }
  void run(const Arrays& a, cudaStream_t stream) const {
    graph.run({{q, a.q.at()},
               {k, a.k.at()},
               {v_, a.v.at()},
               {o_, a.o.at()},
               {statistics_, a.statistics.at()},
               {gradient_o_, a.gradient_o.at()},
               {gradient_q_, a.gradient_q.at()},
               {gradient_k_, a.gradient_k.at()},
               {gradient_v_, a.gradient_v.at()}},
              stream);
  }

 private:
  Graph::Tensor v_, o_, gradient_o_, gradient_q_, gradient_k_, gradient_v_, statistics_;
};

void fill(Arrays& a) {
  const std::vector<unsigned char> block = random_elements(Format::bf16, std::size_t{1} << 22);
  std::size_t shift = 0;
  for (Buffer* array : {&a.q, &a.k, &a.v, &a.gradient_o}) {
    std::vector<unsigned char> own(block.begin() + static_cast<std::ptrdiff_t>(2 * shift), block.end());
    cuda::fill(*array, own);
    shift += 4096;  // each starts elsewhere in the block
  }
}

std::vector<double> downloaded(const Buffer& buffer) {
  std::vector<unsigned char> bytes(buffer.bytes());
  check(cudaMemcpy(bytes.data(), buffer.at(), bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  std::vector<double> values;
  for (std::size_t i = 0; i < bytes.size(); i += 2) values.push_back(decode(Format::bf16, &bytes[i]));
  return values;
}

double relative_error(const Buffer& buffer, const std::vector<double>& right) {
  const std::vector<double> got = downloaded(buffer);
  double wrong = 0, all = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    wrong += (got[i] - right[i]) * (got[i] - right[i]);
    all += right[i] * right[i];
  }
  return std::sqrt(wrong / all);
}

/// The largest relative error of results and gradients against the host's arithmetic in double, one head at a time.
double attention_error(const Cudnn& library, Clock& clock) {
  const Shape s{1, 2, 2, 128, 128, 64};
  Arrays a(s);
  fill(a);
  for (const Buffer* result : {&a.o, &a.gradient_q, &a.gradient_k, &a.gradient_v})
    check(cudaMemset(result->at(), 0xff, result->bytes()), "cudaMemset");  // poison: not a number
  Forward(library, s).run(a, clock.stream());
  Backward(library, s).run(a, clock.stream());
  check(cudaStreamSynchronize(clock.stream()), "cudaStreamSynchronize");

  const std::vector<double> q = downloaded(a.q), k = downloaded(a.k), v = downloaded(a.v), g = downloaded(a.gradient_o);
  std::vector<double> o(q.size()), dq(q.size()), dk(k.size()), dv(v.size());
  const auto tokens = static_cast<std::size_t>(s.queries), size = static_cast<std::size_t>(s.size);
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.size));
  const auto dot = [&](const double* x, const double* y) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += x[i] * y[i];
    return sum;
  };
  const auto add = [&](double* to, double factor, const double* x) {
    for (std::size_t i = 0; i < size; ++i) to[i] += factor * x[i];
  };
  for (std::size_t head = 0; head < static_cast<std::size_t>(s.batch * s.heads); ++head)
    for (std::size_t i = 0; i < tokens; ++i) {
      const std::size_t row = (head * tokens + i) * size, first = head * tokens * size;
      std::vector<double> weight(i + 1);
      double sum = 0;
      for (std::size_t j = 0; j <= i; ++j) sum += weight[j] = std::exp(scale * dot(&q[row], &k[first + j * size]));
      for (std::size_t j = 0; j <= i; ++j) add(&o[row], weight[j] /= sum, &v[first + j * size]);
      const double agreed = dot(&g[row], &o[row]);
      for (std::size_t j = 0; j <= i; ++j) {
        const std::size_t other = first + j * size;
        const double of_score = scale * weight[j] * (dot(&g[row], &v[other]) - agreed);
        add(&dq[row], of_score, &k[other]);
        add(&dk[other], of_score, &q[row]);
        add(&dv[other], weight[j], &g[row]);
      }
    }
  return std::max({relative_error(a.o, o), relative_error(a.gradient_q, dq), relative_error(a.gradient_k, dk),
                   relative_error(a.gradient_v, dv)});
}

/// Head counts and sizes of real models; keys are shared by heads in the forward pass and in decoding.
std::vector<Shape> shapes(Extent extent, bool decode) {
  struct Heads {
    std::int64_t heads, kv_heads, size;
  };
  const bool full = extent == Extent::full;
  const std::vector<Heads> all =
      full ? std::vector<Heads>{{32, 32, 128}, {32, 8, 128}, {64, 8, 128}, {16, 16, 64}, {12, 12, 64}, {40, 40, 128}}
           : std::vector<Heads>{{32, 32, 128}, {32, 8, 128}};
  std::vector<Shape> out;
  for (const auto& [heads, kv_heads, size] : all)
    for (const std::int64_t batch : decode ? std::vector<std::int64_t>{1, 16, 64} : std::vector<std::int64_t>{1, 4})
      for (const std::int64_t tokens :
           full ? std::vector<std::int64_t>{512, 1024, 2048, 3072, 4096, 8192, 16384} : std::vector<std::int64_t>{2048})
        if (batch * tokens <= (decode ? 64 * 8192 : 16384))
          out.push_back({batch, heads, kv_heads, decode ? 1 : tokens, tokens, size});
  return out;
}

class Run {
 public:
  Run(Measurement& out, Clock& clock) : out_(out), clock_(clock) {}

  void all(Extent extent) {
    const double error = attention_error(library_, clock_);
    if (!(error < 0.02)) throw Failure("its result is wrong: relative error " + std::to_string(error));
    out_.facts.emplace_back("cuDNN", std::to_string(cudnnGetVersion()));
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1e", error);
    out_.facts.emplace_back("relative error of attention and its gradients", text.data());
    for (const Shape& shape : shapes(extent, false)) {
      Arrays arrays(shape);
      fill(arrays);
      row<Forward>("attn_fwd_causal", shape, arrays);
      if (shape.heads == shape.kv_heads) row<Backward>("attn_bwd_causal", shape, arrays);
    }
    for (const Shape& shape : shapes(extent, true)) {
      Arrays arrays(shape);
      fill(arrays);
      row<Forward>("attn_decode", shape, arrays);
    }
  }

 private:
  template <class Pass>
  void row(const char* op, const Shape& s, const Arrays& arrays) {
    try {
      const Pass pass(library_, s);
      const Times times = clock_.bursts([&](cudaStream_t stream) { pass.run(arrays, stream); });
      out_.rows.push_back(
          {op, "bf16", s.batch, s.heads, s.kv_heads, s.keys, s.size, times.median, times.least, "cudnn"});
    } catch (const Failure& failure) {
      out_.notes.push_back(std::string(op) + " of " + std::to_string(s.batch) + " x " + std::to_string(s.heads) +
                           " heads x " + std::to_string(s.keys) + " tokens not measured: " + failure.what());
    }
  }

  Measurement& out_;
  Clock& clock_;
  Cudnn library_;
};

}  // namespace

void measure_attention(Measurement& out, Extent extent, Clock& clock) {
  try {
    Run(out, clock).all(extent);
  } catch (const Failure& failure) {
    out.notes.push_back(std::string("attention not measured: ") + failure.what());
  }
}

}  // namespace assay::measure::cuda
