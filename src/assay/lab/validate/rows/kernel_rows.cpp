#include "assay/lab/validate/rows/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/known_chips.h"
#include "assay/lab/validate/rows/known_readings.h"
#include "assay/lab/validate/rows/table_line.h"

namespace assay::validate {
namespace {

/// Reads the operation of a row, which its reader wrote; or why it cannot be read.
Why set_operation(KernelRow& row, std::string text, hardware::AttentionKernel attention = {}) {
  const auto read = roofline::parse_operation(text, "operation");
  if (!read) return read.error().what;
  row.operation = std::move(text);
  row.kernel = kernel::kernel_of(
      *read, read->function() ? Dtype::fp32 : product_dtype(read->operands()[0].dtype, read->operands()[1].dtype),
      attention);
  return std::nullopt;
}

/// batch x [m,k] x [k,n]; `result` is written by "->", or added to by "+=".
struct ProductSizes {
  double batch, m, n, k;
  bool grouped = false;
};
std::string product_text(const ProductSizes& p, std::string_view operand, std::string_view result) {
  const std::string batch = p.batch > 1.0 ? exact_number(p.batch) + "," : "";
  const std::string m = exact_number(p.m), n = exact_number(p.n), k = exact_number(p.k);
  const std::string text = fmt::format("{}[{}{},{}] @ {}[{}{},{}] {}[{}{},{}]", operand, batch, m, k, operand, batch, k,
                                       n, result, batch, m, n);
  return p.grouped ? fmt::format("grouped({})", text) : text;
}

/// The kernel of this name; any other is of the class of cuDNN's.
hardware::AttentionKernel attention_kernel(std::string_view name) {
  constexpr auto flash2 = hardware::AttentionKernel::flash2;
  return name == hardware::attention_kernel_names[static_cast<std::size_t>(flash2)] ? flash2
                                                                                    : hardware::AttentionKernel::cudnn;
}

struct AttentionSizes {
  double batch, heads, kv_heads, queries, keys, head_dim, value_dim;
  bool causal = true;
  std::string_view query = "bf16", cache = "bf16";
  double window = 0;
};
Why set_attention(KernelRow& row, std::string_view function, const AttentionSizes& sizes,
                  hardware::AttentionKernel kernel) {
  const auto& [batch, heads, kv_heads, queries, keys, head_dim, value_dim, causal, query, cache, window] = sizes;
  const auto tensor = [&](std::string_view dtype, double h, double length, double d) {
    return fmt::format("{}[{},{},{},{}]", dtype, exact_number(sizes.batch), exact_number(h), exact_number(length),
                       exact_number(d));
  };
  std::string text = fmt::format("{}({}, {}", function, tensor(query, heads, queries, head_dim),
                                 tensor(cache, kv_heads, keys, head_dim));
  if (value_dim != head_dim) text += ", " + tensor(cache, kv_heads, keys, value_dim);
  if (causal) text += ", causal";
  if (window > 0.0) text += fmt::format(", window={}", exact_number(window));
  row.shape =
      fmt::format("b{} h{}/{} q{} k{} d{}{}", batch, heads, kv_heads, queries, keys, head_dim, causal ? " causal" : "");
  if (window > 0.0) row.shape += fmt::format(" w{}", window);
  return set_operation(row, text + ")", kernel);
}

/// Formats by the names of the tables, in the grammar's words.
constexpr std::pair<std::string_view, std::string_view> dtype_names[] = {
    {"bf16", "bf16"}, {"bfloat16", "bf16"}, {"fp16", "fp16"},
    {"fp8", "fp8"},   {"nvfp4", "nvfp4"},   {"fp8_block", "fp8-128x128"}};

/// One row of the third-party table, or why it cannot be predicted.
class KernelTableRow {
 public:
  KernelTableRow(const TableLine& in, KnownChips& chips) : in_(in), chips_(chips) {}

  Why read(KernelRow& out) {
    using enum Field::Kind;
    static constexpr Field fields[] = {{"time_us", amount}, {"tflops", amount},     {"batch", count},
                                       {"m", count},        {"n", count},           {"k", count},
                                       {"n_heads", count},  {"n_kv_heads", count},  {"head_dim", count},
                                       {"q_len", count},    {"kv_len", count},      {"v_head_dim", count},
                                       {"window", whole},   {"moe_experts", count}, {"causal", words, "y|n"},
                                       {"moe_topk", count}, {"moe_d_model", count}, {"moe_d_ff", count},
                                       {"moe_tp", count},   {"moe_ep", count},      {"moe_tokens", count}};
    out.id = text("id");
    out.source = text("source_key");
    if (auto why = unread(in_.table, in_.row, fields)) return why;
    const std::optional<std::string> chip = chips_.find(text("chip"), out.source);
    if (!chip) return fmt::format("no chip {} in the catalogue", in_quotes(text("chip")));
    out.chip = *chip;
    const auto* const dtype = std::find_if(std::begin(dtype_names), std::end(dtype_names),
                                           [&](const auto& entry) { return entry.first == text("dtype"); });
    if (dtype == std::end(dtype_names)) return fmt::format("{} kernels have no model", text("dtype"));
    dtype_ = dtype->second;
    out.measured = number("time_us") * 1_us;
    if (auto why = read_op(out)) return why;
    if (!(out.measured > Seconds(0))) return "no time is given";
    out.group = fmt::format("{}, {}, {}, {}", out.source, text("chip"), label(out), text("dtype"));
    out.fold = is_apart_ ? held_out : chips_.fold(text("chip"), out.shape, text("split"));
    return std::nullopt;
  }

 private:
  std::string_view text(std::string_view column) const { return in_.text(column); }
  double number(std::string_view column, double missing = 0) const { return in_.number(column, missing); }
  std::string label(const KernelRow& row) const {
    if (!row.server.empty()) return "experts";
    const KernelKind kind = row.kernel.kind;
    if (kind == KernelKind::matmul && row.kernel.product.batch > 1.0) return "grouped matmul";
    const std::string name(kernel_kind_names[static_cast<std::size_t>(kind)]);
    if (!(kind > KernelKind::matmul && kind < KernelKind::decode)) return name;
    return fmt::format("{} {}{}{}", text("framework"), text("op").starts_with("mla") ? "latent " : "", name,
                       text("kv_dtype") == "fp8" ? " over an 8-bit cache" : "");
  }

  Why read_op(KernelRow& out) {
    const std::string_view op = text("op");
    if (op == "gemm" || op == "layer_linears_sum") return read_matmul(out, 1.0);
    if (op == "grouped_gemm") return read_matmul(out, std::max(1.0, number("moe_experts", 1)));
    if (op == "attention" || op == "attention_prefill") return read_attention(out);
    if (op == "attention_decode") return read_decode(out);
    if (op == "rmsnorm" || op == "layernorm" || op == "softmax" || op == "gelu") return read_stream(out, op);
    if (op == "silu_mul") return read_stream(out, "swiglu");
    if (op == "mla_prefill") return read_attention(out);
    if (op == "moe_ffn") return read_experts(out);
    if (op == "moe_grouped_gemm") return "routing decides how many tokens an expert gets";
    if (op.starts_with("mla_")) return "kernels that decode with latent attention have no model by themselves";
    return fmt::format("{} has no model", op);
  }

  /// Tables that give only how fast the work was done.
  void time_from_rate(KernelRow& out, Flops work) const {
    if (!(out.measured > Seconds(0)) && number("tflops") > 0) out.measured = work / (number("tflops") * 1_TFLOP_per_s);
  }

  Why read_matmul(KernelRow& out, double groups) {
    const ProductSizes sizes{groups * std::max(1.0, number("batch", 1)), number("m"), number("n"), number("k"),
                             groups > 1.0};
    if (!(sizes.m > 0 && sizes.n > 0 && sizes.k > 0)) return "the sizes are not given";
    // An accumulating gradient reads and writes fp32.
    const bool accumulates = text("notes").find("accumulate=True") != std::string_view::npos;
    // GPU tables have many N x K. Tables of chips that run whole programs have one or two, and vary M.
    out.shape = fmt::format("{}x{}", text("n"), text("k"));
    if (chips_.compiled_whole(out.chip)) out.shape = fmt::format("{}x{}", text("m"), out.shape);
    time_from_rate(out, Flops(2.0 * sizes.batch * sizes.m * sizes.n * sizes.k));
    const std::string_view result = accumulates ? "+= fp32" : dtype_ == "fp16" ? "-> fp16" : "-> bf16";
    return set_operation(out, product_text(sizes, dtype_, result));
  }

  Why read_attention(KernelRow& out) {
    const std::string_view direction = text("direction");
    // No law knows 8-bit kernels: they are asked at the rates of 16 bits, and no fit sees them.
    const std::string_view cache = text("kv_dtype") == "fp8" ? "fp8" : dtype_ == "fp8" ? "bf16" : dtype_;
    const std::string_view query = dtype_ == "fp8" ? "bf16" : dtype_;
    is_apart_ = cache != query || dtype_ == "fp8" || text("op").starts_with("mla");
    const auto kernel = attention_kernel(text("kernel"));
    const bool backward = direction == "bwd";
    const std::string_view function = backward             ? "attention_backward"
                                      : direction == "fwd" ? "attention"
                                                           : "attention_both";
    const double heads = number("n_heads"), queries = number("q_len"), keys = number("kv_len");
    const double d = number("head_dim"), dv = number("v_head_dim", d);
    if (!(heads > 0 && queries > 0 && keys >= queries && d > 0)) return "the sizes are not given";
    const double batch = std::max(1.0, number("batch", 1)), kv_heads = number("n_kv_heads", heads);
    const double window = number("window");
    if (auto why = set_attention(out, function,
                                 {batch, heads, kv_heads, queries, keys, d, dv, text("causal") == "y", query, cache,
                                  window < keys ? window : 0.0},
                                 kernel))
      return why;
    // A rate counts the scores that a causal mask leaves, unless a note says that it counts all.
    const bool all = text("causal") != "y" || text("notes").find("NOT causal-halved") != std::string_view::npos;
    const double scores = out.kernel.attention.heads * queries * (all ? keys : keys - queries / 2.0);
    const double products = backward ? 2.5 : direction == "fwd" ? 1.0 : 3.5;
    time_from_rate(out, Flops(4.0 * scores * out.kernel.attention.head_dim * products));
    return std::nullopt;
  }

  Why read_decode(KernelRow& out) {
    const double heads = number("n_heads"), keys = number("kv_len"), d = number("head_dim");
    if (!(heads > 0 && keys > 0 && d > 0)) return "the sizes are not given";
    const double batch = std::max(1.0, number("batch", 1)), kv_heads = number("n_kv_heads", heads);
    return set_attention(out, "attention",
                         {batch, heads, kv_heads, 1, keys, d, number("v_head_dim", d), true, dtype_,
                          text("kv_dtype") == "fp8" ? "fp8" : dtype_, number("window")},
                         hardware::AttentionKernel::cudnn);
  }

  /// The experts of one device, as a server with one layer lists them. Parts of each expert are narrower experts.
  Why read_experts(KernelRow& out) {
    is_apart_ = true;
    const double experts = number("moe_experts"), picks = number("moe_topk"), width = number("moe_d_model"),
                 inner = number("moe_d_ff") / number("moe_tp", 1), tokens = number("moe_tokens");
    const std::string devices = exact_number(number("moe_ep", 1));
    if (devices != "1" && text("moe_distribution") != "balanced")
      return "of several devices the busiest was timed, and its part of the tokens is not stated";
    if (!(experts > 0 && picks > 0 && width > 0 && inner > 0 && tokens > 0)) return "the sizes are not given";
    out.server = {
        fmt::format(R"({{"model_type":"transformer","layers":1,"d_model":{},"vocabulary":32000,"heads":32,)"
                    R"("kv_heads":4,"head_dim":128,"d_ff":{},"gated":true,"experts":{},"experts_per_token":{},)"
                    R"("expert_width":{}}})",
                    width, inner, experts, picks, inner),
        "--on",
        fmt::format("{}:{}", out.chip, devices),
        "--dp",
        devices,
        "--ep",
        devices,
        "--batch",
        exact_number(tokens),
        "--prompt",
        "1",
        "--output",
        "2",
        "--weights",
        std::string(dtype_),
        "--compute",
        dtype_.ends_with("fp4") ? "fp4" : std::string(dtype_.substr(0, dtype_.find('-'))),
        "--list"};
    if (const std::string_view engine = text("framework"); !engine.empty())
      out.server.insert(out.server.end(), {"--software", std::string(engine)});
    out.shape = fmt::format("{} of {}x{}, {} for each of {} tokens, {}", experts, width, inner, picks, tokens,
                            text("moe_distribution"));
    return std::nullopt;
  }

  Why read_stream(KernelRow& out, std::string_view function) {
    const double m = number("m"), n = number("n");
    if (!(m > 0 && n > 0)) return "the sizes are not given";
    out.shape = fmt::format("{} {}x{}", text("op"), m, n);
    return set_operation(out, fmt::format("{}({}[{},{}])", function, dtype_, exact_number(m), exact_number(n)));
  }

  const TableLine& in_;
  KnownChips& chips_;
  std::string_view dtype_;
  bool is_apart_ = false;  ///< its kernels are not those that fits are for
};

}  // namespace

bool is_own(std::string_view source) {
  return std::any_of(std::begin(own_tables), std::end(own_tables),
                     [&](const OwnTable& table) { return table.source == source; });
}

namespace {

/// An operation of our tables: how many sizes (a, b and so on) it has.
struct MeasuredOp {
  std::string_view name;
  std::size_t sizes;
};
constexpr MeasuredOp measured_ops[] = {{"gemm", 3},
                                       {"bmm", 4},
                                       {"grouped_gemm", 4},
                                       {"grouped_wgrad", 4},
                                       {"attn_fwd_causal", 5},
                                       {"attn_bwd_causal", 5},
                                       {"attn_decode", 5},
                                       {"copy", 1},
                                       {"read", 1},
                                       {"upload", 1},
                                       {"download", 1},
                                       {"add", 2},
                                       {"silu", 2},
                                       {"rms_norm", 2},
                                       {"softmax", 2},
                                       {"adamw_fused", 1},
                                       {"all_gather", 2},
                                       {"reduce_scatter", 2},
                                       {"all_reduce", 2},
                                       {"all_to_all", 2}};

/// A row of our tables.
struct OwnRow {
  const std::string &op, &note;
  Dtype dtype;
  double a, b, c, d, e;
};

Why read_own_product(const OwnRow& own, KernelRow& row) {
  const auto& [op, note, dtype, a, b, c, d, e] = own;
  const std::string_view operand = name(dtype), result = facts(dtype).bits < 16 ? "bf16" : operand;
  row.shape = fmt::format("{}x{}", b, op == "grouped_wgrad" ? a : c);
  if (op == "gemm" || op == "bmm") {
    row.group =
        fmt::format("{} {}{}", op == "gemm" ? "matmul" : "batched matmul", operand, row.sustained ? ", sustained" : "");
    Why why = set_operation(row, product_text({op == "bmm" ? d : 1.0, a, b, c}, operand, fmt::format("-> {}", result)));
    constexpr double bulk = 16;  // bytes
    if (const double rows = std::min(row.kernel.product.operand_rows, row.kernel.product.result_rows);
        rows < bulk && facts(dtype).bits == 16)
      row.group += rows < 4.0 ? ", rows of 2 bytes" : ", rows of 4 or 8 bytes";
    return why;
  }
  const std::string m = exact_number(a), n = exact_number(b), k = exact_number(c), groups = exact_number(d);
  const bool gradient = op == "grouped_wgrad";
  row.group = gradient ? "grouped matmul, gradients of weights" : "grouped matmul";
  return set_operation(row, gradient ? fmt::format("grouped({}[{},{}] @ {}[{},{}] -> {}[{},{},{}])", operand, m, k,
                                                   operand, k, n, result, groups, m, n)
                                     : fmt::format("grouped({}[{},{}] @ {}[{},{},{}] -> {}[{},{}])", operand, m, k,
                                                   operand, groups, k, n, result, m, n));
}

Why read_own_op(const OwnRow& own, KernelRow& row) {
  const auto& [op, note, dtype, a, b, c, d, e] = own;
  if (op == "gemm" || op == "bmm" || op.starts_with("grouped_")) return read_own_product(own, row);
  if (op.starts_with("attn_")) {
    const auto why = set_attention(row, op == "attn_bwd_causal" ? "attention_backward" : "attention",
                                   {a, b, c, op == "attn_decode" ? 1.0 : d, d, e, e}, attention_kernel(note));
    row.group = fmt::format("{} {}", kernel_kind_names[static_cast<std::size_t>(row.kernel.kind)], note);
    return why;
  }
  constexpr std::pair<std::string_view, std::string_view> functions[] = {
      {"copy", "copy"},        {"add", "add"},         {"silu", "silu"},
      {"rms_norm", "rmsnorm"}, {"softmax", "softmax"}, {"adamw_fused", "adamw"}};
  for (const auto& [known, function] : functions)
    if (known == op) {
      row.shape = b > 0 ? fmt::format("{}x{}", a, b) : fmt::format("{}", a);
      const std::string sizes = b > 0 ? exact_number(a) + "," + exact_number(b) : exact_number(a);
      return set_operation(row, fmt::format("{}({}[{}])", function, name(dtype), sizes));
    }
  return fmt::format("{} has no model", op);
}

}  // namespace

Why unread_measurement(const CsvTable& table, std::size_t row) {
  const std::string_view op = table.text(row, "op");
  const auto* known = std::find_if(std::begin(measured_ops), std::end(measured_ops),
                                   [&](const MeasuredOp& one) { return one.name == op; });
  if (known == std::end(measured_ops)) return fmt::format("op {} is not known", in_quotes(op));
  if (const auto dtype = parse_dtype(table.text(row, "dtype"), "dtype"); !dtype) return dtype.error().what;
  using enum Field::Kind;
  static constexpr Field fields[] = {{"a", count}, {"b", count},          {"c", count},     {"d", count},
                                     {"e", count}, {"us_median", amount}, {"us_min", level}};
  if (auto why = unread(table, row, fields)) return why;
  for (std::size_t i = 0; i < known->sizes; ++i)
    if (trim(table.text(row, fields[i].column)).empty()) return fmt::format("size {} is missing", fields[i].column);
  constexpr Seconds shortest = 0.001_us, longest = 3.6e9_us;
  const Seconds time = table.number(row, "us_median") * 1_us;
  if (!(shortest <= time && time <= longest))
    return fmt::format("us_median {} is no time of a kernel: 1 ns to 1 h", in_quotes(table.text(row, "us_median")));
  return std::nullopt;
}

KernelRows read_own_ops(const CsvTable& table, std::string_view source, std::string_view chip) {
  KernelRows rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto number = [&](std::string_view column) { return table.number(i, column); };
    const std::string op(table.text(i, "op")), note(table.text(i, "note"));
    const double a = number("a"), b = number("b"), c = number("c"), d = number("d"), e = number("e");
    KernelRow row;
    row.id = fmt::format("{}-{}", source, table.line(i));
    row.source = source;
    row.chip = chip;
    if (auto why = unread_measurement(table, i)) {
      rows.unanswered.push_back({row.id, op, std::move(*why)});
      continue;
    }
    row.measured = number("us_median") * 1_us;
    row.sustained = note == "sustained";
    row.group = op;
    if (auto why = read_own_op({op, note, *parse_dtype(table.text(i, "dtype"), "dtype"), a, b, c, d, e}, row)) {
      rows.unanswered.push_back({row.id, op, std::move(*why)});
      continue;
    }
    row.fold = fold_of(row.shape);
    rows.rows.push_back(std::move(row));
  }
  return rows;
}

Result<KernelRows> read_kernels(const CsvTable& given, const hardware::Catalogue& catalogue) {
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  return rows_after_readings<KernelRows>(
      given, catalogue, [&](const TableLine& in, KernelRow& row) { return KernelTableRow(in, chips).read(row); });
}

Question question_of(const KernelRow& row) {
  if (!row.server.empty()) {
    Question question{{"serve"}, {}, "decode_experts"};
    question.words.insert(question.words.end(), row.server.begin(), row.server.end());
    return question;
  }
  Question question{{"roofline", row.operation, "--on", row.chip},
                    {"--measured", row.sustained ? "in-a-stream" : row.source}};
  if (row.kernel.library != hardware::AttentionKernel::automatic) {
    question.words.emplace_back("--attention-kernel");
    question.words.emplace_back(hardware::attention_kernel_names[static_cast<std::size_t>(row.kernel.library)]);
  }
  return question;
}

std::optional<Seconds> predict(const KernelRow& row, const hardware::Chip& chip,
                               const hardware::Calibration& calibration, const Harness& harness) {
  const auto place = kernel::kernel_place(row.kernel, chip, calibration);
  if (!place || !place->has(row.kernel)) return std::nullopt;
  if (!row.sustained) return kernel::measured_time(Plain{}, row.kernel, *place, harness).total;
  // Until a fit has found this regime, products follow each other as in the table, without pauses.
  const hardware::Regime regime = calibration.sustained.value_or(
      hardware::Regime{harness.launch[static_cast<std::size_t>(row.kernel.kind)], Seconds(0), harness.ramp});
  return kernel::measured_time(Plain{}, row.kernel, *place, kernel::harness_of(regime)).total;
}

}  // namespace assay::validate
