#include "assay/lab/fit/ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::validate {
namespace {

void read_pass(RecordReader& reader, PassRanges& pass) {
  reader.range("share", pass.share);
  reader.range("wide", pass.wide);
  reader.range("softmax", pass.softmax);
  reader.range("passes", pass.passes);
  reader.range("start", pass.row_start);
  reader.range("tail", pass.tail);
  reader.range("uneven", pass.uneven);
  reader.range("part_row", pass.part_row);
}

void read_attention(RecordReader& reader, AttentionRanges& attention) {
  reader.bounds("table_share", attention.table_share);
  reader.table("forward", [&](RecordReader& pass) { read_pass(pass, attention.forward); });
  reader.table("backward", [&](RecordReader& pass) { read_pass(pass, attention.backward); });
  reader.table("decode", [&](RecordReader& decode) {
    decode.range("share", attention.decode_share);
    decode.range("crowded", attention.crowded);
    decode.range("wide", attention.decode_wide);
    decode.range("item", attention.item);
  });
}

void read_matmul(RecordReader& reader, MatmulRanges& matmul) {
  reader.bounds("share", matmul.share);
  reader.bounds("droop", matmul.droop);
  reader.range("memory_share", matmul.memory_share);
  reader.range("small_tile", matmul.small_tile);
  reader.range("fill", matmul.fill);
  reader.range("split_cost", matmul.split_cost);
  reader.range("scales", matmul.scales);
  reader.range("stage", matmul.stage);
  reader.range("port", matmul.port);
  reader.range("narrow_port", matmul.narrow_port);
  reader.range("scattered_port", matmul.scattered_port);
  reader.range("scattered_result_port", matmul.scattered_result_port);
  reader.range("grouped_port", matmul.grouped_port);
  reader.range("grouped_fill", matmul.grouped_fill);
  reader.range("straddle", matmul.straddle);
}

void read_pointwise(RecordReader& reader, PointwiseRanges& pointwise) {
  reader.range("stream", pointwise.stream);
  reader.range("norm", pointwise.norm);
  reader.range("softmax", pointwise.softmax);
  reader.range("optimizer", pointwise.optimizer);
  reader.range("ramp", pointwise.ramp);
}

void read_collective(RecordReader& reader, CollectiveRanges& collective) {
  reader.range("latency", collective.latency);
  reader.range("member", collective.member);
  reader.range("share", collective.share);
  reader.range("pair", collective.pair);
  reader.range("chunk", collective.chunk);
  reader.bounds("in_network", collective.in_network);
}

void read_across(RecordReader& reader, CollectiveRanges& collective) {
  reader.range("latency", collective.across_latency);
  reader.range("chunk", collective.across_chunk);
}

/// Bounds and a pull to the table's own start.
void read_launch(RecordReader& reader, std::string_view key, FitRange<Seconds>& launch) {
  reader.table(key, [&](RecordReader& inner) {
    inner.number("low", launch.low);
    inner.number("high", launch.high);
    inner.number("pull", launch.pull);
  });
}

void read_measuring(RecordReader& reader, HarnessRanges& harness) {
  read_launch(reader, "product_launch", harness.product_launch);
  read_launch(reader, "kernel_launch", harness.kernel_launch);
  reader.bounds("collective_launch", harness.collective_launch);
  reader.bounds("gap", harness.gap);
  reader.bounds("burst_gap", harness.burst_gap);
  reader.bounds("ramp", harness.ramp);
  reader.range("dirty", harness.dirty);
  reader.range("evicts", harness.evicts);
  reader.range("attention_passes", harness.attention_passes);
}

void read_quantise(RecordReader& reader, QuantiseRanges& quantise) {
  reader.range("fixed", quantise.fixed);
  reader.range("fixed_fp4", quantise.fixed_fp4);
  reader.texts("by_row", quantise.by_row);
  reader.range("element", quantise.element);
  reader.range("passes", quantise.passes);
}

void read_start(RecordReader& reader, HarnessStart& start) {
  reader.number("launch", start.launch);
  reader.number("gap", start.gap);
  reader.number("ramp", start.ramp);
  reader.flag("whole_k", start.whole_k);
}

void read_own_start(OwnStart& own, RecordReader& reader) {
  reader.text("name", own.name);
  reader.flag("usual", own.usual);
  const auto optional = [&](std::string_view key, std::string& value) {
    if (reader.has(key)) reader.text(key, value);
  };
  optional("measured_as", own.measured_as);
  optional("rested_as", own.rested_as);
  optional("shows", own.shows);
  if (own.shows.empty()) return;
  if (std::find(std::begin(own_subjects), std::end(own_subjects), own.shows) == std::end(own_subjects))
    reader.fault("shows", fmt::format("no fit takes {}", in_quotes(own.shows)),
                 fmt::format("{}", fmt::join(own_subjects, " or ")));
  if (own.measured_as.empty())
    reader.fault("measured_as", "a table that shows one thing cannot tell how it was measured", "name one that can");
}

/// How tables were measured. Fits need one that is usual, and one for each subject.
void read_tables(RecordReader& reader, KernelRanges& out) {
  reader.items("harness", out.tables, [](HarnessStart& start, RecordReader& inner) {
    inner.text("name", start.name);
    read_start(inner, start);
    inner.flag("usual", start.usual);
    inner.flag("engine", start.engine);
  });
  reader.items("own_table", out.own_tables, &read_own_start);
  reader.items("sweep", out.sweeps, [](CollectiveSweep& sweep, RecordReader& inner) {
    inner.text("name", sweep.name);
    inner.flag("plain", sweep.plain);
  });
  const auto one = [&](std::string_view key, const auto& tables, std::string_view what, const auto& is_one) {
    if (const auto n = std::count_if(tables.begin(), tables.end(), is_one); n != 1)
      reader.fault(key, fmt::format("{} tables {}", n, what), "a fit takes exactly one");
  };
  const auto usual = [](const auto& table) { return table.usual; };
  one("harness", out.tables, "are usual", usual);
  one("own_table", out.own_tables, "are usual", usual);
  for (const std::string_view subject : own_subjects)
    one("own_table", out.own_tables, fmt::format("show {}", subject),
        [&](const OwnStart& own) { return own.shows == subject; });
}

void read_kernel_file(RecordReader& reader, KernelRanges& out) {
  reader.table("matmul", [&](RecordReader& inner) { read_matmul(inner, out.matmul); });
  reader.table("pointwise", [&](RecordReader& inner) { read_pointwise(inner, out.pointwise); });
  reader.table("attention", [&](RecordReader& inner) { read_attention(inner, out.attention); });
  reader.table("collective", [&](RecordReader& inner) { read_collective(inner, out.collective); });
  reader.table("across", [&](RecordReader& inner) { read_across(inner, out.collective); });
  reader.table("measuring", [&](RecordReader& inner) { read_measuring(inner, out.harness); });
  reader.table("quantise", [&](RecordReader& inner) { read_quantise(inner, out.quantise); });
  reader.table("own", [&](RecordReader& inner) { read_start(inner, out.own); });
  read_tables(reader, out);
  reader.items("ignored", out.ignored, [](IgnoredRows& rows, RecordReader& inner) {
    inner.text("table", rows.table);
    if (inner.has("chip")) inner.text("chip", rows.chip);
    inner.texts("kinds", rows.kinds);
  });
}

void read_measured_file(RecordReader& reader, MeasuredRanges& out) {
  reader.table("cpu", [&](RecordReader& inner) {
    inner.range("share", out.cpu.share);
    inner.range("memory_share", out.cpu.memory_share);
    inner.range("fill", out.cpu.fill);
    inner.range("fork", out.cpu.fork);
    inner.range("launch", out.cpu.launch);
    inner.range("ramp", out.cpu.ramp);
  });
  reader.table("gpu", [&](RecordReader& inner) {
    inner.range("share", out.gpu.share);
    inner.range("memory_share", out.gpu.memory_share);
    inner.range("droop", out.gpu.droop);
    inner.range("small_tile", out.gpu.small_tile);
    inner.range("fill", out.gpu.fill);
    inner.range("split_cost", out.gpu.split_cost);
    inner.range("port", out.gpu.port);
  });
  reader.table("alone", [&](RecordReader& inner) {
    inner.range("launch", out.alone.launch);
    inner.range("gap", out.alone.gap);
    inner.range("ramp", out.alone.ramp);
  });
  reader.table("in-a-stream", [&](RecordReader& inner) {
    inner.range("launch", out.in_a_stream.launch);
    inner.range("ramp", out.in_a_stream.ramp);
  });
  reader.table("copies", [&](RecordReader& inner) {
    inner.range("stream", out.copies.stream);
    inner.range("ramp", out.copies.ramp);
  });
  reader.table("ranks", [&](RecordReader& inner) {
    inner.range("latency", out.ranks.latency);
    inner.range("share", out.ranks.share);
    inner.range("chunk", out.ranks.chunk);
    inner.range("member", out.ranks.member);
    inner.range("pair", out.ranks.pair);
  });
}

void read_training_file(RecordReader& reader, numbers::FitRanges& out) {
  numbers::StepCalibration rows;
  numbers::RangesReader ranges(reader, out);
  numbers::visit_training(rows, ranges);
}

void read_serving_file(RecordReader& reader, numbers::FitRanges& out) {
  numbers::ServingCalibration rows;
  numbers::RangesReader ranges(reader, out);
  numbers::visit_serving(rows, ranges);
}

/// A file of catalogue/fits; `read` reads its tables.
template <class Ranges>
Result<Ranges> ranges_of(const hardware::Catalogue& catalogue, const std::string& path,
                         void (*read)(RecordReader&, Ranges&)) {
  for (const auto& [file, text] : catalogue.files(path)) {
    Ranges out;
    RecordFile shared{.name = file};
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      read(reader, out);
    }));
    return out;
  }
  return fail(path, "is not in the catalogue", "", Error::Kind::missing);
}

}  // namespace

const HarnessStart& KernelRanges::usual() const {
  return *std::find_if(tables.begin(), tables.end(), [](const HarnessStart& table) { return table.usual; });
}

const OwnStart& KernelRanges::own_usual() const {
  return *std::find_if(own_tables.begin(), own_tables.end(), [](const OwnStart& table) { return table.usual; });
}

FitRange<Seconds> KernelRanges::launch(std::string_view source, FitRange<Seconds> range) const {
  const auto table =
      std::find_if(tables.begin(), tables.end(), [&](const HarnessStart& start) { return start.name == source; });
  range.start = table == tables.end() ? own.launch : table->launch;
  return range;
}

const OwnStart& KernelRanges::showing(std::string_view subject) const {
  return *std::find_if(own_tables.begin(), own_tables.end(),
                       [&](const OwnStart& table) { return table.shows == subject; });
}

Result<KernelRanges> kernel_ranges_of(const hardware::Catalogue& catalogue) {
  return ranges_of(catalogue, "fits/kernels.toml", &read_kernel_file);
}

Result<MeasuredRanges> measured_ranges_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(out, ranges_of(catalogue, "fits/measured.toml", &read_measured_file));
  ASSAY_TRY(kernels, kernel_ranges_of(catalogue));
  out.attention = kernels.attention;
  return out;
}

Result<numbers::FitRanges> training_ranges_of(const hardware::Catalogue& catalogue) {
  return ranges_of(catalogue, "fits/training.toml", &read_training_file);
}

Result<numbers::FitRanges> serving_ranges_of(const hardware::Catalogue& catalogue) {
  return ranges_of(catalogue, "fits/serving.toml", &read_serving_file);
}

}  // namespace assay::validate
