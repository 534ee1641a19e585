#include "assay/engine/language/run_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "assay/testing/sampling.h"
#include "assay/testing/thread_ranks.h"

namespace assay::engine {
namespace {

struct BothRuns {
  language::Compiled sharded;
  TextRun run, reference;
};

Result<BothRuns> run_both(const std::string& text) {
  const language::Source source{"program", text};
  ASSAY_TRY(syntax, language::parse(source));
  BothRuns out;
  ASSAY_TRY(sharded, language::compile(source, syntax, language::Reading::sharded,
                                       plan::byte_prices(language::mesh_of(syntax)), false));
  ASSAY_TRY(whole, language::compile(source, syntax, language::Reading::unsharded, plan::byte_prices({}), false));
  out.run = run_text(sharded);
  out.reference = run_text(whole);
  out.sharded = std::move(sharded);
  return out;
}

/// Every result that the unsharded run has is equal, and so are the bytes.
void expect_as_on_one_device(const std::string& text, bool all = true) {
  const auto both = run_both(text);
  ASSERT_TRUE(both) << text << both.error().where << ": " << both.error().what << "\n" << both.error().hint;
  for (const auto& [name, array] : both->run.results) {
    const auto expected = both->reference.results.find(name);
    if (expected == both->reference.results.end()) {
      EXPECT_FALSE(all) << name << " has nothing to be compared with\n" << text;
      continue;
    }
    EXPECT_LE(relative_error(array, expected->second), 1e-9) << name << "\n" << text;
  }
  EXPECT_LE(both->run.facts.disagreement, 1e-9) << text;
  EXPECT_LE(both->run.facts.byte_error, 1e-9) << text;
  EXPECT_NEAR(both->run.facts.moved.value(), both->run.predicted.value(), 1e-9 * both->run.predicted.value() + 1e-12);
}

/// The same program on as many ranks as its mesh has devices: results, bytes and their check as on virtual devices.
void expect_as_on_virtual_devices(const std::string& text) {
  const auto both = run_both(text);
  if (!both) return;  // explicit programs may be ambiguous
  const auto ranks = static_cast<std::size_t>(both->sharded.program.mesh.devices());
  if (ranks < 2 || ranks > 8) return;
  std::vector<TextRun> runs(ranks);
  std::vector<TimedRun> overlapped(ranks);
  testing::on_thread_ranks(ranks, [&](Transport& transport) {
    runs[transport.rank()] = run_text(both->sharded, &transport);
    overlapped[transport.rank()] = run_timed(both->sharded, transport, Overlap::all, 1);
  });
  for (const TimedRun& run : overlapped)
    for (const auto& [name, array] : both->run.results)
      EXPECT_LE(relative_error(run.results.at(name), array), 1e-12) << name << ", overlapped\n" << text;
  for (const TextRun& run : runs) {
    for (const auto& [name, array] : both->run.results)
      EXPECT_LE(relative_error(run.results.at(name), array), 1e-12) << name << "\n" << text;
    EXPECT_LE(run.facts.byte_error, 1e-9) << text;
    EXPECT_NEAR(run.facts.moved.value(), both->run.facts.moved.value(), 1e-9 * run.facts.moved.value() + 1e-12) << text;
    EXPECT_NEAR(run.predicted.value(), both->run.predicted.value(), 1e-9 * run.predicted.value() + 1e-12) << text;
  }
}

std::vector<std::string> collectives_of(const language::Compiled& compiled) {
  std::vector<std::string> out;
  for (const program::Step& step : compiled.program.steps)
    if (program::is_collective(step.op)) out.emplace_back(program::name(step));
  return out;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TextProgram, ExamplesEqualOneDevice) {
  std::set<std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator("examples"))
    if (entry.path().extension() == ".assay") {
      SCOPED_TRACE(entry.path().string());
      expect_as_on_one_device(file_text(entry.path()), false);
      seen.insert(entry.path().stem().string());
    }
  EXPECT_GE(seen.size(), 16u);
}

TEST(TextProgram, SliceAndAverageIsTheTextbooks) {
  const auto both = run_both(file_text("examples/slice_and_average.assay"));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->run.results.at("average").values, (std::vector<double>{224, 225, 226, 227}));
}

TEST(TextProgram, MeansOfShardsAreTheTextbooks) {
  const auto both = run_both(file_text("examples/shard_means.assay"));
  ASSERT_TRUE(both);
  const Array& means = both->run.results.at("means");
  EXPECT_EQ(means.shape, (Shape{4, 2}));
  EXPECT_EQ(means.values.front(), 509.5);
  EXPECT_EQ(means.values.back(), 3585.5);
  EXPECT_TRUE(collectives_of(both->sharded).empty());
}

TEST(TextProgram, CollectiveMatmulHasFourProductsAndThreePermutes) {
  const auto both = run_both(file_text("examples/collective_matmul.assay"));
  ASSERT_TRUE(both);
  EXPECT_EQ(collectives_of(both->sharded), (std::vector<std::string>(3, "permute")));
  const auto& steps = both->sharded.program.steps;
  EXPECT_EQ(
      std::count_if(steps.begin(), steps.end(), [](const program::Step& s) { return s.op == program::Op::product; }),
      4);
}

TEST(TextProgram, AnExplicitResultSaysTheCollective) {
  const auto text = [](const char* out) {
    return fmt::format(
        "mesh X=2, Y=2; dims B=8, D=64, F=4; mode explicit; input x[B_X, D_Y]; input w[D_Y, F]; "
        "{} = x * w; result out",
        out);
  };
  EXPECT_EQ(collectives_of(run_both(text("out[B_X, F_Y]"))->sharded), std::vector<std::string>{"reduce-scatter"});
  EXPECT_EQ(collectives_of(run_both(text("out[B_X, F]"))->sharded), std::vector<std::string>{"all-reduce"});
  const auto open = run_both(text("out[B, F]"));
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().what.find("ambiguous"), std::string::npos);
  EXPECT_NE(open.error().hint.find("out[B_X, F_Y] (16 B received)"), std::string::npos) << open.error().hint;
}

TEST(TextProgram, AnExplicitProductGathersASummedDimensionThatOneOperandSplits) {
  const auto both = run_both(
      "mesh X=4; dims B=8, D=16, F=4; mode explicit; input x[B_X, D]; input w[D_X, F]; out[B, F] = x * w; result out");
  ASSERT_TRUE(both);
  EXPECT_EQ(collectives_of(both->sharded), std::vector<std::string>{"all-gather"});
}

TEST(TextProgram, ShardingsAreChosenForTheWholeProgram) {
  // Alone, the first product would scatter its sums for half the bytes; but the second one needs them all.
  const std::string text =
      "mesh X=4; dims B=8, D=16, F=16, G=16; input x[B, D_X]; input w[D_X, F]; input u[F, G_X]; "
      "h[B, F] = x * w; y[B, G] = h * u; result y";
  const auto both = run_both(text);
  ASSERT_TRUE(both);
  const double all_reduce = 2.0 * 0.75 * 8 * 16 * 2;
  EXPECT_LE(both->run.predicted.value(), all_reduce);
  EXPECT_EQ(both->run.facts.moved.value(), both->run.predicted.value());
}

TEST(TextProgram, ATransformerBlockFindsTensorParallelism) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  // Heads and hidden dimension are split over Y, so attention and the feed-forward part end in one sum each, and so do
  // their gradients; over X only gradients of weights are summed.
  const auto both = run_both(file_text("examples/transformer.assay"));
  ASSERT_TRUE(both);
  std::map<std::string, int> over;  // of tensors of tokens, by axis
  const program::Program& program = both->sharded.program;
  for (const program::Step& step : program.steps)
    if (program::is_collective(step.op) && program.tensor(step.in[0]).rank == 3 &&
        !program.tensor(step.in[0]).name.starts_with("w_"))
      ++over[program::axes_text(program.mesh, step.axes) + " " + std::string(program::name(step))];
  EXPECT_EQ(over, (std::map<std::string, int>{{"Y all-reduce", 4}}));
}

/// Numbers that a seed gives.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::size_t operator()(std::size_t below) { return static_cast<std::size_t>(mixed(seed_, next_++) % below); }
  bool chance(std::size_t in) { return (*this)(in) == 0; }

 private:
  std::uint64_t seed_, next_ = 0;
};

/// Random programs over four dimensions of 8 and a mesh of up to two axes.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : dice_(seed) {}

  std::string program(const char* mode) {
    constexpr int sizes[] = {1, 2, 4};
    text_ = "mesh X=" + std::to_string(sizes[dice_(3)]);
    axes_ = {"X"};
    if (!dice_.chance(3)) {
      text_ += ", Y=" + std::to_string(sizes[dice_(2)]);
      axes_.emplace_back("Y");
    }
    text_ += fmt::format("\ndims A=8, B=8, C=8, D=8\nmode {}\n", mode);
    const std::size_t inputs = 2 + dice_(3);
    for (std::size_t i = 0; i < inputs; ++i) {
      const std::string dims = some_dims(1 + dice_(3));
      add("x" + std::to_string(i), dims, "input {}\n", true);
    }
    const std::size_t lines = 1 + dice_(6);
    for (std::size_t i = 0; i < lines; ++i) line("t" + std::to_string(i));
    for (std::size_t i = tensors_.size() - std::min<std::size_t>(2, tensors_.size()); i < tensors_.size(); ++i)
      text_ += fmt::format("result {}\n", tensors_[i].name);
    text_ += fmt::format("loss = sum(square({}), {})\ngradients of loss\n", tensors_.back().name,
                         listed(tensors_.back().dims));
    return text_;
  }

 private:
  struct Tensor {
    std::string name, dims;  ///< one letter a dimension
  };

  std::string some_dims(std::size_t count) {
    std::string all = "ABCD", out;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = dice_(all.size());
      out += all[at];
      all.erase(at, 1);
    }
    return out;
  }
  static std::string listed(const std::string& dims) {
    std::string out;
    for (char dim : dims) out += (out.empty() ? "" : ", ") + std::string(1, dim);
    return out;
  }
  /// Dimensions with a random sharding.
  std::string sharded(const std::string& dims) {
    std::vector<std::string> words;
    for (char dim : dims) words.emplace_back(1, dim);
    for (const std::string& axis : axes_)
      if (!dice_.chance(3)) {
        std::string& word = words[dice_(words.size())];
        word += (word.size() == 1 ? "_" : "") + axis;
      }
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
    return out;
  }
  void add(const std::string& name, const std::string& dims, const char* form, bool pinned) {
    text_ += fmt::format(fmt::runtime(form), fmt::format("{}[{}]{}", name, pinned ? sharded(dims) : listed(dims), ""));
    tensors_.push_back({name, dims});
  }
  const Tensor& some() { return tensors_[dice_(tensors_.size())]; }

  void line(const std::string& name) {
    const Tensor a = some(), b = some();
    const auto write = [&](const std::string& dims, const std::string& value) {
      const bool pins = dice_.chance(4);
      text_ += fmt::format("{}[{}]{} = {}\n", name, pins ? sharded(dims) : listed(dims), pins ? " {}" : "", value);
      tensors_.push_back({name, dims});
    };
    std::string both = a.dims, shared, rest;
    for (char dim : b.dims)
      if (both.find(dim) == std::string::npos) both += dim;
    for (char dim : both)
      (a.dims.find(dim) != std::string::npos && b.dims.find(dim) != std::string::npos ? shared : rest) += dim;
    switch (dice_(9)) {
      case 0:
      case 1: {  // a product that sums over some shared dimensions
        std::string kept = rest;
        for (char dim : shared)
          if (dice_.chance(2)) kept += dim;
        if (kept.empty()) kept = shared.substr(0, 1);
        return write(kept, fmt::format("{} * {}", a.name, b.name));
      }
      case 2:
        return write(both, fmt::format("{} {} {}", a.name, dice_.chance(2) ? "+" : "-", b.name));
      case 3: {
        constexpr const char* functions[] = {"relu", "gelu", "tanh", "square", "sigmoid", "sin"};
        std::string turned = a.dims;
        std::rotate(turned.begin(), turned.begin() + 1, turned.end());
        return write(dice_.chance(2) ? a.dims : turned, fmt::format("{}({})", functions[dice_(6)], a.name));
      }
      case 4: {
        if (a.dims.size() == 1) return write(a.dims, fmt::format("softmax({}, {})", a.name, a.dims));
        constexpr const char* functions[] = {"sum", "max", "mean"};
        return write(a.dims.substr(1), fmt::format("{}({}, {})", functions[dice_(3)], a.name, a.dims[0]));
      }
      case 5: {
        const std::string all = "ABCD";
        const auto free =
            std::find_if(all.begin(), all.end(), [&](char dim) { return a.dims.find(dim) == std::string::npos; });
        if (free == all.end()) return write(a.dims, fmt::format("-{}", a.name));
        std::string renamed = a.dims;
        renamed[0] = *free;
        return write(renamed, fmt::format("rename({}, {} -> {})", a.name, a.dims[0], *free));
      }
      case 6:
        return write(both, fmt::format("where({0} < {1}, {0}, 2 * {1})", a.name, b.name));
      case 7:
        return write(a.dims, fmt::format("put(chunk({0}, {1}, {2}, 4), {1}, 3, 4)", a.name, a.dims[0], dice_(4)));
      default:
        return write(a.dims, fmt::format("softmax({}, {})", a.name, a.dims[dice_(a.dims.size())]));
    }
  }

  Dice dice_;
  std::string text_;
  std::vector<std::string> axes_;
  std::vector<Tensor> tensors_;
};

TEST(TextProgram, RandomProgramsEqualOneDevice) {
  const auto cases = static_cast<std::uint64_t>(testing::sampled_count(400));
  for (std::uint64_t seed = 0; seed < cases; ++seed) expect_as_on_one_device(Writer(seed).program("auto"));
}

TEST(TextProgram, RandomExplicitProgramsEqualOneDeviceOrAreAmbiguous) {
  const auto cases = static_cast<std::uint64_t>(testing::sampled_count(300));
  std::size_t equal = 0;
  for (std::uint64_t seed = 1000; seed < 1000 + cases; ++seed) {
    const std::string text = Writer(seed).program("explicit");
    if (const auto both = run_both(text); !both) {
      EXPECT_NE(both.error().what.find("ambiguous"), std::string::npos) << text << both.error().what;
      continue;
    }
    expect_as_on_one_device(text);
    ++equal;
  }
  EXPECT_GE(15 * equal, cases);
}

TEST(TextProgram, RandomManualProgramsEqualOneDevice) {
  constexpr const char* bodies[] = {
      "y = all_gather(x, {0}, I); result y[I, J]; expect y[I, J] = x",
      "y = all_to_all(x, {0}, J, I); result y[I, J_{0}]; expect y[I, J] = x",
      "y = all_to_all(all_to_all(x, {0}, J, I), {0}, I, J); result y[I_{0}, J]; expect y[I, J] = x",
      "y = ppermute(ppermute(x, {1}, 1), {1}, -1); result y[I_{0}, J]; expect y[I, J] = x",
      ("z = all_gather(x, {0}, I); y[J, K] = psum(chunk(z, I, axis_index({0}), {2}) * u, {0}); result y[J, K]; "
       "expect y[J, K] = x * w"),
      "y[J, K] = psum_scatter(x * u, {0}, J); result y[J_{0}, K]; expect y[J, K] = x * w",
      "s = psum(sum(square(x), I, J), {0}); result s; expect s = sum(square(x), I, J)",
      ("table = all_gather(w, {0}, I); rows[T, K] = gather(table, t); s = psum(sum(square(rows), T, K), {0}); result "
       "s; "
       "expect s = sum(square(gather(w, t)), T, K)"),
  };
  Dice dice(7);
  for (int round = 0; round < 40; ++round) {
    const std::string body = bodies[dice(std::size(bodies))];
    const bool two = dice.chance(2);
    const std::string mesh = two ? "X=2, Y=4" : "X=4", axes = two ? "XY" : "X";
    std::string text = fmt::format(
        "mesh {}; dims I=16, J=8, K=4, T=8; mode manual; input x[I_{}, J]; input w[I_{}, K]; "
        "input t[T_{}] = random 1 below I; ",
        mesh, axes, axes, axes);
    text += "u = w; ";
    text += fmt::format(fmt::runtime(body), axes, two ? "Y" : "X", two ? 8 : 4);
    // A scalar is joined without dimensions.
    if (const std::size_t at = text.find("result s;"); at != std::string::npos) text.replace(at, 9, "result s[];");
    const bool differentiates = dice.chance(2);
    if (differentiates) text += text.find("result s") != std::string::npos ? "; gradients of s" : "; gradients of y";
    expect_as_on_one_device(text, true);
  }
}

TEST(TextProgram, ValuesThatAreNoNumbersAreEqualOnAllDevices) {
  const auto both = run_both("mesh X=4; dims I=8; input x[I_X]; y = sum(log(x - 9), I); result y");
  ASSERT_TRUE(both);
  EXPECT_TRUE(std::isnan(both->run.results.at("y").values[0]));
  EXPECT_EQ(both->run.facts.disagreement, 0.0);
}

TEST(TextProgram, AResultThatDiffersBetweenDevicesIsNamed) {
  const auto both =
      run_both("mesh X=4; dims I=8; mode manual; input x[I_X]; y = x + 1; z = psum(x, X); result y[I]; result z[I]");
  ASSERT_TRUE(both);
  EXPECT_GT(both->run.facts.disagreement, 0.0);
  EXPECT_EQ(both->run.disagreeing, "y");
}

TEST(TextProgram, ARowThatATableLacksIsFound) {
  const auto both =
      run_both("mesh X=2; dims T=4, V=3, D=2; input t[T_X] = iota; input table[V, D]; y = gather(table, t); result y");
  ASSERT_TRUE(both);
  ASSERT_TRUE(both->run.beyond);
  EXPECT_EQ(both->run.beyond->row, 3.0);
  EXPECT_EQ(both->run.beyond->rows, 3);
}

TEST(TextProgram, MaximaAndSoftmaxesOverSplitDimensionsMoveARowsNumbersAlone) {
  // Four rows a device: a maximum, a sum and a picked logit for the loss, one sum and the weights' gradients for the
  // rest.
  const std::string loss =
      "mesh X=2, Y=4; dims B=8, V=64; input logits[B_X, V_Y]; input t[B_X] = random 1 below V; "
      "p[B, V] = softmax(logits, V); picked[B] = sum(where(iota(V) == t, p, 0), V); loss = -mean(log(picked), B); "
      "result loss; gradients of loss";
  expect_as_on_one_device(loss);
  const double row = 2.0 * 0.75 * 4 * 2, scalar = 2.0 * 0.5 * 2;
  EXPECT_EQ(run_both(loss)->run.predicted.value(), 4 * row + scalar);
  // Elements that are equally large share the gradient, wherever they are.
  expect_as_on_one_device(
      "mesh X=4; dims A=4, B=8; input x[A, B_X] = 0.5; input y[A, B_X]; loss = sum(max(x, B) * max(y, B), A); "
      "result loss; gradients of loss");
  expect_as_on_one_device("mesh X=4; dims A=4, B=8; mode explicit; input x[A, B_X]; p = softmax(x, B); result p");
  EXPECT_EQ(
      collectives_of(
          run_both("mesh X=4; dims A=4, B=8; mode explicit; input x[A, B_X]; p = softmax(x, B); result p")->sharded),
      (std::vector<std::string>{"all-reduce", "all-reduce"}));
}

TEST(TextProgram, AMaximumOverDevicesOfWhatIsNoNumberIsNone) {
  const auto both = run_both("mesh X=4; dims I=8; input x[I_X]; y = max(log(x), I); result y");
  ASSERT_TRUE(both);
  EXPECT_TRUE(std::isnan(both->run.results.at("y").values[0]));
  EXPECT_EQ(both->run.facts.disagreement, 0.0);
}

TEST(TextProgram, AFunctionIsItsLinesWrittenOut) {
  const std::string head = "mesh X=2, Y=2; dims B=8, D=8, F=16; input x[B_X, D]; input w[D, F_Y]; input u[F_Y, D]; ";
  const std::string called = head +
                             "def block(x, w, u) { h[B, F] = gelu(x * w); return x + h * u }; "
                             "def two(x, w, u) { y[B, D] = block(x, w, u); return block(y, w, u) }; "
                             "y[B, D] = two(x, w, u); result y; loss = sum(square(y), B, D); gradients of loss";
  const std::string written = head +
                              "h[B, F] = gelu(x * w); y[B, D] = x + h * u; h[B, F] = gelu(y * w); y[B, D] = y + h * u; "
                              "result y; loss = sum(square(y), B, D); gradients of loss";
  expect_as_on_one_device(called);
  const auto one = run_both(called), other = run_both(written);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->run.results, other->run.results);
  EXPECT_EQ(one->run.predicted.value(), other->run.predicted.value());
}

TEST(TextProgram, SumsAreAddedUpBeforeTheyEnd) {
  const auto kinds = [](const char* text) {
    expect_as_on_one_device(text);
    return collectives_of(run_both(text)->sharded);
  };
  EXPECT_EQ(kinds("mesh X=4; dims B=8, D=16; input x[B_X, D]; acc[D] = 0; "
                  "for i in 0..3 { acc[D] = acc + sum(square(x + i), B) }; result acc[D]")
                .size(),
            1u);
  // The weights of fully sharded data parallelism: gathered once, and their gradients of both uses scattered once.
  EXPECT_EQ(
      kinds("mesh X=4; dims B=8, D=16, F=16; input x[B_X, D]; input w[D_X, F]; wg[D, F] {} = w; y[B_X, F] = x * wg; "
            "z[B_X, F] = tanh(x) * wg; loss = sum(square(y), B, F) + sum(square(z), B, F); result loss; "
            "gradients of loss"),
      (std::vector<std::string>{"all-gather", "all-reduce", "reduce-scatter"}));
}

TEST(TextProgram, WhatTheLastRoundOfARingSendsIsNotSent) {
  const char* text =
      "mesh X=4; dims S=8, T=8, H=4; mode manual; input q[S_X, H]; input k[T_X, H]; o = 0; "
      "for i in 0..4 { s[S, T] = q * k; o[S, H] = o + s * k; k = ppermute(k, X, 1) }; result o[S_X, H]; "
      "expect z[S, T] = q * k; expect o[S, H] = z * k";
  expect_as_on_one_device(text);
  EXPECT_EQ(collectives_of(run_both(text)->sharded), (std::vector<std::string>(3, "permute")));
}

TEST(TextProgram, MeshesOfManyAxesAreBounded) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  expect_as_on_one_device(
      "mesh A=2, B=2, C=2, D=2, E=2, F=2, G=2, H=2; dims I=16, J=16, K=16; input x[I_AB, J_CD]; input w[J_EF, K_GH]; "
      "y[I, K] = x * w; z[I_EF, K_AB] = gelu(y); result z");
}

TEST(TextProgramOnRanks, ExamplesEqualVirtualDevices) {
  std::vector<std::filesystem::path> examples;
  for (const auto& entry : std::filesystem::directory_iterator("examples"))
    if (entry.path().extension() == ".assay") examples.push_back(entry.path());
  for (const std::filesystem::path& path : testing::sampled(examples)) {
    SCOPED_TRACE(path.string());
    expect_as_on_virtual_devices(file_text(path));
  }
}

TEST(TextProgramOnRanks, ChunksOfACollectiveMatmulTravelBesideProducts) {
  const auto both = run_both(file_text("examples/collective_matmul.assay"));
  ASSERT_TRUE(both);
  std::vector<TimedRun> blocking(8), overlapped(8);
  testing::on_thread_ranks(8, [&](Transport& transport) {
    blocking[transport.rank()] = run_timed(both->sharded, transport, Overlap::none, 1);
    overlapped[transport.rank()] = run_timed(both->sharded, transport, Overlap::all, 1);
  });
  const auto of_kind = [](const std::vector<Activity>& rank, Activity::Kind kind) {
    return std::count_if(rank.begin(), rank.end(), [&](const Activity& one) { return one.kind == kind; });
  };
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(of_kind(blocking[0].ranks[rank], Activity::Kind::moves), 3);
    EXPECT_EQ(of_kind(blocking[0].ranks[rank], Activity::Kind::travels), 0);
    EXPECT_EQ(of_kind(overlapped[0].ranks[rank], Activity::Kind::moves), 0);
    EXPECT_EQ(of_kind(overlapped[0].ranks[rank], Activity::Kind::travels), 3);
  }
}

TEST(TextProgramOnRanks, RandomProgramsEqualVirtualDevices) {
  const auto cases = static_cast<std::uint64_t>(testing::sampled_count(50));
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    expect_as_on_virtual_devices(Writer(seed).program("auto"));
    expect_as_on_virtual_devices(Writer(1000 + seed).program("explicit"));
  }
}

}  // namespace
}  // namespace assay::engine
