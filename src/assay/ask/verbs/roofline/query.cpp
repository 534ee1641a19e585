#include "assay/ask/verbs/roofline/query.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/ranges.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/kernel/measured/harness.h"

namespace assay::verbs::roofline_verb {
namespace {

Result<Flops> parse_flops(std::string_view text, std::string_view where) {
  Flops flops;
  if (const auto number = parse_number(trim(text))) {
    flops = Flops(*number);
  } else if (auto quantity = parse_as<Flops>(text, where)) {
    flops = *quantity;
  } else if (auto count = parse_count(text, where)) {
    flops = Flops(static_cast<double>(*count));
  } else {
    return fail(std::string(where), fmt::format("{} is not a number of FLOP", in_quotes(text)),
                "e.g. 1e12, 2T or 3.5 TFLOP");
  }
  if (flops < Flops(0))
    return fail(std::string(where), fmt::format("{} is negative", in_quotes(text)), "give 0 or more");
  return flops;
}

Result<roofline::Tile> parse_tile(std::string_view text) {
  const auto parts = split(text, ',');
  if (parts.size() != 3 && parts.size() != 1)
    return fail("--tile", fmt::format("{} is not a tile", in_quotes(text)),
                "write bm,bk,bn such as 512,1024,512, or one number for a square", Error::Kind::usage);
  std::vector<double> sizes;
  for (const std::string& part : parts) {
    ASSAY_TRY(size, parse_count(part, "--tile"));
    sizes.push_back(static_cast<double>(size));
  }
  return sizes.size() == 1 ? roofline::Tile{sizes[0], sizes[0], sizes[0]}
                           : roofline::Tile{sizes[0], sizes[1], sizes[2]};
}

Result<std::vector<std::pair<std::string, double>>> parse_sizes(std::string_view text) {
  std::vector<std::pair<std::string, double>> sizes;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail("--sizes", fmt::format("{} is not NAME=SIZE", in_quotes(part)), "e.g. --sizes B=240,D=8192",
                  Error::Kind::usage);
    ASSAY_TRY(size, parse_count(part.substr(equals + 1), "--sizes " + part.substr(0, equals)));
    sizes.emplace_back(std::string(trim(part.substr(0, equals))), static_cast<double>(size));
  }
  return sizes;
}

/// The rate of the unit that the operation runs on.
Result<void> choose_unit(const Request& request, RooflineQuery& query) {
  const hardware::Chip& chip = query.cluster.chip;
  std::optional<Dtype> wanted;
  if (const auto text = request.value("compute"); text && *text != "vector")
    ASSAY_SET(wanted, parse_dtype(*text, "--compute"));
  const bool vector = request.value("compute") == "vector";
  const bool raw = query.operations.empty();
  const bool pointwise = !raw && query.operations.front().function();
  if (vector || (pointwise && !wanted)) {
    const bool fma = pointwise && query.operations.front().function()->uses_fma;
    query.roof.peak = fma ? hardware::vector_fma_rate(chip) : hardware::vector_rate(chip);
    query.unit = fma && chip.vector_unit.fma.value ? "vector unit, fused multiply-add" : "vector unit";
    query.compute = Dtype::fp32;
    return {};
  }
  if (wanted) {
    query.compute = *wanted;
  } else if (raw) {
    query.compute = chip.peak[static_cast<std::size_t>(Dtype::bf16)] ? Dtype::bf16 : Dtype::fp16;
    query.notes.push_back(
        fmt::format("computing in {} on the matrix unit, since --compute is not given", name(query.compute)));
  } else {
    const roofline::Operation& operation = query.operations.front();
    query.compute = product_dtype(operation.operands()[0].dtype, operation.operands()[1].dtype);
  }
  if (query.compute == Dtype::fp32 && !chip.peak[static_cast<std::size_t>(Dtype::fp32)]) {
    query.roof.peak = hardware::vector_fma_rate(chip);
    query.unit = "vector unit, fp32";
    query.notes.push_back(
        fmt::format("the matrix unit of {} has no fp32 rate, so the vector unit computes; use --compute tf32 or bf16 "
                    "if rounding is acceptable",
                    chip.id));
    return {};
  }
  ASSAY_SET(query.roof.peak, hardware::peak_rate(chip, query.compute, "--compute"));
  query.roof.compute_efficiency = chip.efficiency.matrix;
  query.unit = fmt::format("matrix unit, {}", name(query.compute));
  return {};
}

Result<void> read_work(const Request& request, RooflineQuery& query) {
  const bool raw = request.has("flops") || request.has("bytes");
  if (raw == !request.arguments().empty())
    return fail(
        "roofline", raw ? "an operation and --flops or --bytes contradict each other" : "an operation is missing",
        raw ? "give one or the other"
            : "e.g. assay roofline \"bf16[240,8192] @ bf16[8192,32768]\" --on tpu-v5e, or --flops 1e12 --bytes 4GB",
        Error::Kind::usage);
  if (raw) {
    for (const char* option : {"vary", "sizes", "tile", "split", "accumulate", "pad", "dtype"})
      if (request.has(option))
        return fail(fmt::format("--{}", option), "this applies to an operation, not to raw FLOP and bytes",
                    "leave it out", Error::Kind::usage);
    if (const auto text = request.value("flops")) ASSAY_SET(query.flops, parse_flops(*text, "--flops"));
    if (const auto text = request.value("bytes")) ASSAY_SET(query.bytes, roofline::parse_bytes(*text, "--bytes"));
    if (query.flops == Flops(0) && query.bytes == Bytes(0))
      return fail("roofline", "there is no work: FLOP and bytes are both zero", "");
    return {};
  }
  Dtype dtype = Dtype::bf16;
  if (const auto text = request.value("dtype")) ASSAY_SET(dtype, parse_dtype(*text, "--dtype"));
  std::vector<std::pair<std::string, double>> sizes;
  if (const auto text = request.value("sizes")) ASSAY_SET(sizes, parse_sizes(*text));
  for (const std::string& text : request.arguments()) {
    ASSAY_TRY(operation, roofline::parse_operation(text, in_quotes(text), dtype));
    for (const auto& [letter, value] : sizes) {
      const auto letters = operation.names();
      if (request.arguments().size() == 1 && std::find(letters.begin(), letters.end(), letter) == letters.end())
        return fail("--sizes", fmt::format("the operation has no size {}", in_quotes(letter)),
                    suggestion(letter, letters), Error::Kind::usage);
      operation = operation.with(letter, value);
    }
    if (query.operations.size() >= 8)
      return fail("roofline", "at most 8 operations are compared", "", Error::Kind::usage);
    if (!query.operations.empty() &&
        (query.operations.front().function() != nullptr) != (operation.function() != nullptr))
      return fail("roofline", "matrix products and element-wise functions run on different units",
                  "ask for them one at a time", Error::Kind::usage);
    query.operations.push_back(std::move(operation));
  }
  const bool bare = query.operations.front().function() && request.arguments().front().find('[') == std::string::npos;
  if (bare && !request.has("dtype"))
    query.notes.emplace_back("elements are bf16, since neither the operation nor --dtype says otherwise");
  return {};
}

Result<void> read_counting(const Request& request, RooflineQuery& query) {
  if (query.operations.empty()) return {};
  const roofline::Operation& operation = query.operations.front();
  for (const char* option : {"tile", "split", "pad", "accumulate"})
    if (request.has(option) && !operation.is_matmul())
      return fail(fmt::format("--{}", option), "this applies to matrix products", "leave it out", Error::Kind::usage);
  query.pad = request.has("pad");
  query.counting.sums = operation.result().dtype;
  if (const auto text = request.value("tile")) ASSAY_SET(query.counting.tile, parse_tile(*text));
  if (const auto text = request.value("split")) {
    ASSAY_TRY(chips, parse_count(*text, "--split"));
    if (chips < 2) return fail("--split", "a contraction is split over at least 2 chips", "", Error::Kind::usage);
    query.counting.split_chips = static_cast<double>(chips);
  }
  if (const auto text = request.value("accumulate")) {
    ASSAY_TRY(dtype, parse_dtype(*text, "--accumulate"));
    if (query.counting.split_chips == 1)
      return fail("--accumulate", "partial sums leave the chip only with --split",
                  "name the result's dtype instead: ... -> fp32[...]", Error::Kind::usage);
    query.counting.sums = dtype;
  }
  return {};
}

Result<void> read_free_size(const Request& request, RooflineQuery& query) {
  if (query.operations.empty()) return {};
  std::vector<std::string> all;
  for (const roofline::Operation& operation : query.operations) {
    if (operation.is_attention() && (request.has("vary") || !operation.free_sizes().empty()))
      return fail("roofline", "attention needs a number for every size", "give them with --sizes", Error::Kind::usage);
    for (std::string& letter : operation.names())
      if (std::find(all.begin(), all.end(), letter) == all.end()) all.push_back(std::move(letter));
  }
  if (all.empty()) all.emplace_back("B");  // which no operation has
  std::vector<VariedNumber> axes;
  for (const std::string& letter : all) axes.push_back({letter, &parse_varied_count, "1..4096"});
  ASSAY_SET(query.sweep, read_variation(request, axes));
  for (const roofline::Operation& operation : query.operations) {
    const auto letters = operation.names();
    if (query.sweep && std::find(letters.begin(), letters.end(), query.sweep->name) == letters.end())
      return fail("--vary", fmt::format("{} has no size {}", operation.text(), in_quotes(query.sweep->name)),
                  suggestion(query.sweep->name, letters), Error::Kind::usage);
    std::vector<std::string> free = operation.free_sizes();
    free.erase(std::remove(free.begin(), free.end(), query.sweep ? query.sweep->name : ""), free.end());
    if (free.size() > (query.sweep ? 0 : 1))
      return fail("roofline", fmt::format("{} {} free", join(free, ", "), free.size() == 1 ? "is" : "are"),
                  "one size may stay free; give the others with --sizes " + free.back() + "=8192", Error::Kind::usage);
    if (!free.empty()) {
      if (query.letter && *query.letter != free[0])
        return fail("roofline", "the operations leave different sizes free", "use the same letter", Error::Kind::usage);
      query.letter = free[0];
    }
  }
  if (query.sweep) query.letter = query.sweep->name;
  return {};
}

}  // namespace

Result<RooflineQuery> read_roofline_query(const Request& request, const Context& context) {
  RooflineQuery query;
  ASSAY_SET(query.cluster, cluster_of(request, context));
  ASSAY_CHECK(read_work(request, query));
  ASSAY_CHECK(read_counting(request, query));
  ASSAY_CHECK(read_free_size(request, query));
  ASSAY_CHECK(choose_unit(request, query));
  query.measured_given = request.has("measured");
  query.measured = request.value("measured").value_or(std::string(kernel::default_way));
  if (const auto kernel = request.value("attention-kernel")) {
    const auto* const known =
        std::find(std::begin(hardware::attention_kernel_names), std::end(hardware::attention_kernel_names), *kernel);
    query.attention = static_cast<hardware::AttentionKernel>(known - std::begin(hardware::attention_kernel_names));
    if (query.operations.empty() || !query.operations.front().is_attention())
      return fail("--attention-kernel", "this applies to attention", "leave it out", Error::Kind::usage);
  }
  const hardware::Chip& chip = query.cluster.chip;
  const bool split_work = query.counting.split_chips > 1;
  const std::string level = request.value("memory").value_or(split_work ? "scale-up" : "hbm");
  if (split_work && !request.has("memory") && !chip.network.scale_up)
    return fail("--split", fmt::format("{} has no scale-up network for the partial sums to cross", chip.id),
                "choose another path with --memory pcie or --memory dcn");
  ASSAY_TRY(roof, hardware::memory_roof(chip, level, "--memory"));
  query.roof.level = roof.name;
  query.roof.bandwidth = roof.bandwidth;
  if (roof.name == "hbm") query.roof.memory_efficiency = chip.efficiency.memory;
  if ((roof.name == "ici" || roof.name == "nvlink" || roof.name == "dcn") && chip.efficiency.network)
    query.roof.memory_efficiency = *chip.efficiency.network;
  if (const auto names = request.value("roofs")) {
    for (const std::string& shown : split(*names, ',')) {
      ASSAY_TRY(other, hardware::memory_roof(chip, shown, "--roofs"));
      query.shown_roofs.push_back(other);
    }
  } else if (roof.name == "hbm") {  // the faster levels of the chip itself
    for (hardware::MemoryRoof& other : hardware::memory_roofs(chip))
      if (other.bandwidth.value > roof.bandwidth.value) query.shown_roofs.push_back(std::move(other));
  }
  query.roof.chips = split_work ? 1.0 : static_cast<double>(query.cluster.chips());
  if (query.cluster.chips() > 1 && !split_work)
    query.notes.push_back(
        fmt::format("the work is spread evenly over {} chips; no communication is counted", query.cluster.chips()));
  return query;
}

}  // namespace assay::verbs::roofline_verb
