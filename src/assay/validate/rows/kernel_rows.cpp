#include "assay/validate/rows/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/lower/layers/layers.h"
#include "assay/validate/rows/known_chips.h"
#include "assay/validate/rows/table_line.h"

namespace assay::validate {
namespace {

Bytes matmul_bytes(const estimate::MatmulShape& s, double operand, double result) {
  return Bytes(s.batch * (operand * (s.m * s.k + s.n * s.k) + result * s.m * s.n));
}

/// A row's attention: batch x heads, both lengths, and the bytes of queries, results, keys and values.
struct AttentionSizes {
  double batch, heads, kv_heads, queries, keys, head_dim, value_dim;
  bool causal = true;
  double kv_bytes = 2.0;  ///< of one element of keys and values
};
void set_attention(KernelRow& row, const AttentionSizes& sizes) {
  const auto& [batch, heads, kv_heads, queries, keys, head_dim, value_dim, causal, kv_bytes] = sizes;
  row.work.heads = batch * heads;
  row.work.head_dim = (head_dim + value_dim) / 2.0;
  row.work.queries = queries;
  row.work.shape.causal = causal;
  row.work.shape.queries = static_cast<std::int64_t>(queries);
  row.work.shape.keys = static_cast<std::int64_t>(keys);
  row.work.bytes = Bytes(batch * (head_dim + value_dim) * (2.0 * heads * queries + kv_bytes * kv_heads * keys));
  row.work.shared = Bytes(batch * (head_dim + value_dim) * kv_bytes * (heads - kv_heads) * keys);
  row.items = batch * kv_heads;
  row.shape =
      fmt::format("b{} h{}/{} q{} k{} d{}{}", batch, heads, kv_heads, queries, keys, head_dim, causal ? " causal" : "");
}

struct DtypeName {
  std::string_view name;
  Dtype dtype;
  double bytes;
};
constexpr DtypeName dtype_names[] = {{"bf16", Dtype::bf16, 2},
                                     {"bfloat16", Dtype::bf16, 2},
                                     {"fp16", Dtype::bf16, 2},
                                     {"fp8", Dtype::fp8, 1},
                                     {"nvfp4", Dtype::fp4, 0.5625}};  // with an 8-bit scale per 16 elements

/// One row of the third-party table, or why it cannot be predicted.
class KernelTableRow {
 public:
  KernelTableRow(const CsvTable& table, std::size_t row, KnownChips& chips) : table_(table), row_(row), chips_(chips) {}

  Why read(KernelRow& out) {
    using enum Field::Kind;
    static constexpr Field fields[] = {{"time_us", amount}, {"tflops", amount},     {"batch", count},
                                       {"m", count},        {"n", count},           {"k", count},
                                       {"n_heads", count},  {"n_kv_heads", count},  {"head_dim", count},
                                       {"q_len", count},    {"kv_len", count},      {"v_head_dim", count},
                                       {"window", whole},   {"moe_experts", count}, {"causal", words, "y|n"}};
    out.id = text("id");
    out.source = text("source_key");
    if (auto why = unread(table_, row_, fields)) return why;
    const std::optional<std::string> chip = chips_.find(text("chip"));
    if (!chip) return fmt::format("no chip {} in the catalogue", in_quotes(text("chip")));
    out.chip = *chip;
    const DtypeName* dtype = std::find_if(std::begin(dtype_names), std::end(dtype_names),
                                          [&](const DtypeName& entry) { return entry.name == text("dtype"); });
    if (dtype == std::end(dtype_names)) return fmt::format("{} kernels have no model", text("dtype"));
    out.compute = dtype->dtype;
    element_ = dtype->bytes;
    if (text("notes").find("L2-resident") != std::string_view::npos)
      return "operands stay in the L2 cache: no bytes of main memory to predict";
    out.measured = number("time_us") * 1_us;
    if (auto why = read_op(out)) return why;
    if (!(out.measured > Seconds(0))) return "no time is given";
    out.group = fmt::format("{}, {}, {}, {}", out.source, text("chip"), label(out), text("dtype"));
    out.fold = fold_of(out.shape, text("split"));
    return std::nullopt;
  }

 private:
  std::string_view text(std::string_view column) const { return table_.text(row_, column); }
  double number(std::string_view column, double missing = 0) const { return table_.number(row_, column, missing); }
  std::string label(const KernelRow& row) const {
    if (row.kind == KernelKind::matmul && row.matmul.batch > 1.0) return "grouped matmul";
    if (row.kind != KernelKind::attention_forward && row.kind != KernelKind::attention_both &&
        row.kind != KernelKind::attention_backward)
      return std::string(kernel_kind_names[static_cast<std::size_t>(row.kind)]);
    return fmt::format("{} {}", text("framework"), kernel_kind_names[static_cast<std::size_t>(row.kind)]);
  }

  Why read_op(KernelRow& out) {
    const std::string_view op = text("op");
    if (op == "gemm" || op == "layer_linears_sum") return read_matmul(out, 1.0);
    if (op == "grouped_gemm") return read_matmul(out, std::max(1.0, number("moe_experts", 1)));
    if (op == "attention" || op == "attention_prefill") return read_attention(out);
    if (op == "attention_decode") return read_decode(out);
    if (op == "rmsnorm" || op == "layernorm") return read_stream(out, KernelKind::norm, 2.0);
    if (op == "softmax") return read_stream(out, KernelKind::softmax, 2.0);
    if (op == "gelu") return read_stream(out, KernelKind::stream, 2.0);
    if (op == "silu_mul") return read_stream(out, KernelKind::stream, 3.0);  // gate and value in, one out
    if (op == "moe_ffn" || op == "moe_grouped_gemm") return "routing decides how many tokens an expert gets";
    if (op.starts_with("mla_")) return "latent attention kernels have no model";
    return fmt::format("{} has no model", op);
  }

  Why read_matmul(KernelRow& out, double groups) {
    out.kind = KernelKind::matmul;
    out.matmul.batch = groups * std::max(1.0, number("batch", 1));
    out.matmul.grouped = groups > 1.0;
    out.matmul.m = number("m");
    out.matmul.n = number("n");
    out.matmul.k = number("k");
    if (!(out.matmul.m > 0 && out.matmul.n > 0 && out.matmul.k > 0)) return "the sizes are not given";
    // An accumulating gradient reads and writes fp32.
    const bool accumulates = text("notes").find("accumulate=True") != std::string_view::npos;
    out.matmul.bytes = matmul_bytes(out.matmul, element_, accumulates ? 8.0 : 2.0);
    // GPU tables have many N x K. Tables of chips that run whole programs have one or two, and vary M.
    out.shape = fmt::format("{}x{}", text("n"), text("k"));
    if (chips_.compiled_whole(out.chip)) out.shape = fmt::format("{}x{}", text("m"), out.shape);
    return std::nullopt;
  }

  Why read_attention(KernelRow& out) {
    const std::string_view framework = text("framework"), direction = text("direction");
    if (framework == "FlashAttention-1" || framework.find("unfused") != std::string_view::npos)
      return fmt::format("{} has no model", framework);
    if (out.compute == Dtype::fp8 || text("kv_dtype") == "fp8") return "8-bit attention kernels have no model";
    out.attention =
        framework == "FlashAttention-2" ? hardware::AttentionKernel::flash2 : hardware::AttentionKernel::cudnn;
    out.kind = direction == "bwd"   ? KernelKind::attention_backward
               : direction == "fwd" ? KernelKind::attention_forward
                                    : KernelKind::attention_both;
    const double heads = number("n_heads"), queries = number("q_len"), keys = number("kv_len");
    const double d = number("head_dim"), dv = number("v_head_dim", d);
    if (!(heads > 0 && queries > 0 && keys >= queries && d > 0)) return "the sizes are not given";
    const double batch = std::max(1.0, number("batch", 1)), kv_heads = number("n_kv_heads", heads);
    set_attention(out, {batch, heads, kv_heads, queries, keys, d, dv, text("causal") == "y"});
    if (const double window = number("window"); window > 0 && window < keys) {
      out.work.shape.window = static_cast<std::int64_t>(window);
      out.shape += fmt::format(" w{}", window);
    }
    if (out.source == "simumax") {  // rates only, and they count all scores, including masked ones
      const double products = out.kind == KernelKind::attention_backward ? 2.5 : 1.0;
      const double flops = 4.0 * out.work.heads * queries * keys * out.work.head_dim * products;
      out.measured = Flops(flops) / (number("tflops") * 1_TFLOP_per_s);
    }
    return std::nullopt;
  }

  Why read_decode(KernelRow& out) {
    out.kind = KernelKind::decode;
    out.attention = hardware::AttentionKernel::cudnn;
    const double heads = number("n_heads"), keys = number("kv_len"), d = number("head_dim");
    if (!(heads > 0 && keys > 0 && d > 0)) return "the sizes are not given";
    const double batch = std::max(1.0, number("batch", 1)), kv_heads = number("n_kv_heads", heads);
    const double window = number("window"), seen = window > 0 ? std::min(window, keys) : keys;
    const double element = text("kv_dtype") == "fp8" ? 1.0 : 2.0;
    set_attention(out, {batch, heads, kv_heads, 1, keys, d, number("v_head_dim", d), true, element});
    out.bytes = Bytes(batch * kv_heads * seen * (d + number("v_head_dim", d)) * element);
    if (window > 0) out.shape += fmt::format(" w{}", window);
    return std::nullopt;
  }

  /// Reads and writes `tensors` of m x n elements each.
  Why read_stream(KernelRow& out, KernelKind kind, double tensors) {
    out.kind = kind;
    const double m = number("m"), n = number("n");
    if (!(m > 0 && n > 0)) return "the sizes are not given";
    out.bytes = Bytes(tensors * element_ * m * n);
    out.shape = fmt::format("{} {}x{}", text("op"), m, n);
    return std::nullopt;
  }

  const CsvTable& table_;
  std::size_t row_;
  KnownChips& chips_;
  double element_ = 2;
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
    row.compute = *parse_dtype(table.text(i, "dtype"), "dtype");
    const double element = facts(row.compute).bits / 8.0;
    row.sustained = note == "sustained";
    row.group = op;
    const auto stream = [&](KernelKind kind, double bytes) {
      row.kind = kind;
      row.bytes = Bytes(bytes);
      row.shape = b > 0 ? fmt::format("{}x{}", a, b) : fmt::format("{}", a);
    };
    if (op == "gemm" || op == "bmm") {
      row.matmul = {op == "bmm" ? d : 1.0, a, b, c, {}};
      row.matmul.bytes = matmul_bytes(row.matmul, element, std::max(2.0, element));
      row.shape = fmt::format("{}x{}", b, c);
      row.group = fmt::format("{} {}{}", op == "gemm" ? "matmul" : "batched matmul", table.text(i, "dtype"),
                              row.sustained ? ", sustained" : "");
    } else if (op == "grouped_gemm" || op == "grouped_wgrad") {
      // Experts without rows do no work; the others get more rows each.
      const bool gradient = op == "grouped_wgrad";
      const double rows_of_all = gradient ? c : a, touched = d * lower::touched_share(rows_of_all, 1.0, d);
      row.matmul = gradient ? estimate::MatmulShape{touched, a, b, c / touched, {}, true}
                            : estimate::MatmulShape{touched, a / touched, b, c, {}, true};
      row.matmul.bytes = matmul_bytes(row.matmul, element, std::max(2.0, element));
      row.shape = fmt::format("{}x{}", b, gradient ? a : c);
      row.group = gradient ? "grouped matmul, gradients of weights" : "grouped matmul";
    } else if (op.starts_with("attn_")) {
      const bool decode = op == "attn_decode";
      row.kind = decode                    ? KernelKind::decode
                 : op == "attn_bwd_causal" ? KernelKind::attention_backward
                                           : KernelKind::attention_forward;
      row.attention = note == "flash2" ? hardware::AttentionKernel::flash2 : hardware::AttentionKernel::cudnn;
      set_attention(row, {a, b, c, decode ? 1.0 : d, d, e, e});
      row.bytes = Bytes(a * c * d * 2.0 * e * 2.0);
      row.group = fmt::format("{} {}", kernel_kind_names[static_cast<std::size_t>(row.kind)], note);
    } else if (op == "copy") {
      stream(KernelKind::stream, 2.0 * a);
    } else if (op == "add") {
      stream(KernelKind::stream, 6.0 * a * b);
    } else if (op == "silu") {
      stream(KernelKind::stream, 4.0 * a * b);
    } else if (op == "rms_norm") {
      stream(KernelKind::norm, 4.0 * a * b);
    } else if (op == "softmax") {
      stream(KernelKind::softmax, 4.0 * a * b);
    } else if (op == "adamw_fused") {
      stream(KernelKind::optimizer, 14.0 * a);  // parameter, gradient and two moments in; all but the gradient out
    } else {
      rows.unanswered.push_back({row.id, op, fmt::format("{} has no model", op)});
      continue;
    }
    row.fold = fold_of(row.shape);
    rows.rows.push_back(std::move(row));
  }
  return rows;
}

Result<KernelRows> read_kernels(const CsvTable& table, const hardware::Catalogue& catalogue) {
  KernelRows rows;
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    KernelRow row;
    if (auto why = KernelTableRow(table, i, chips).read(row))
      rows.unanswered.push_back({std::string(table.text(i, "id")),
                                 fmt::format("{}, {}", table.text(i, "source_key"), table.text(i, "op")),
                                 std::move(*why)});
    else
      rows.rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<Seconds> predict(const KernelRow& row, const hardware::Chip& chip,
                               const hardware::Calibration& calibration, const Harness& harness) {
  const auto format = static_cast<std::size_t>(row.compute);
  if (row.kind < KernelKind::decode && !chip.peak[format]) return std::nullopt;
  const FlopsPerSecond peak = chip.peak[format] ? chip.peak[format]->value : FlopsPerSecond(0);
  const estimate::CoreRates cores = estimate::core_rates(chip);
  const Seconds launch = harness.launch[static_cast<std::size_t>(row.kind)];
  const auto attention = [&](bool backward) {
    const hardware::AttentionKernelCalibration& kernel =
        *estimate::attention_kernel(*calibration.attention, row.attention);
    hardware::AttentionPass pass = backward ? kernel.backward : kernel.forward;
    pass.passes += harness.attention_passes;
    return estimate::attention_time(Plain{}, {pass, cores, peak}, row.work, backward);
  };
  const auto stream = [&](double share) -> std::optional<Seconds> {
    return launch + estimate::stream_time(Plain{}, cores.hbm, share, calibration.pointwise->ramp, row.bytes);
  };
  switch (row.kind) {
    case KernelKind::matmul: {
      if (!calibration.matmul || calibration.matmul->share[format] == 0.0) return std::nullopt;
      Seconds extra(0);
      if (const auto cast = harness.quantise.find({row.compute, chip.architecture}); cast != harness.quantise.end()) {
        const Quantising& q = cast->second;
        extra = q.fixed + row.matmul.k * q.element + Bytes(q.passes * row.matmul.m * row.matmul.k) / cores.hbm;
      }
      hardware::Regime regime{launch, harness.gap, harness.ramp};
      estimate::MatmulShape shape = row.matmul;
      if (row.sustained)
        regime = calibration.sustained.value_or(hardware::Regime{launch, Seconds(0), harness.ramp});
      else
        shape.bytes = harness.moved(shape.bytes);
      return extra + estimate::matmul_time(Plain{},
                                           {*calibration.matmul, cores, peak, calibration.matmul->share[format]}, shape,
                                           regime, harness.split_k)
                         .total;
    }
    case KernelKind::attention_forward:
    case KernelKind::attention_backward:
      if (!calibration.attention) return std::nullopt;
      return launch + attention(row.kind == KernelKind::attention_backward);
    case KernelKind::attention_both:
      if (!calibration.attention) return std::nullopt;
      return launch + attention(false) + attention(true);
    case KernelKind::decode:
      if (!calibration.attention) return std::nullopt;
      return launch + estimate::decode_time(
                          Plain{}, {estimate::attention_kernel(*calibration.attention, row.attention)->decode, cores},
                          row.items, row.work.head_dim, harness.moved(row.bytes));
    default:
      break;
  }
  if (!calibration.pointwise) return std::nullopt;
  switch (row.kind) {
    case KernelKind::norm:
      return stream(calibration.pointwise->norm);
    case KernelKind::softmax:
      return stream(calibration.pointwise->softmax);
    case KernelKind::optimizer:
      return stream(calibration.pointwise->optimizer);
    default:
      return stream(calibration.pointwise->stream);
  }
}

double spread_of(const hardware::SpreadCalibration& spread, KernelKind kind) {
  switch (kind) {
    case KernelKind::matmul:
      return spread.matmul;
    case KernelKind::attention_forward:
    case KernelKind::attention_backward:
    case KernelKind::attention_both:
      return spread.attention;
    case KernelKind::decode:
      return spread.decode;
    case KernelKind::collective:
      return spread.collective;
    default:
      return spread.pointwise;
  }
}

}  // namespace assay::validate
