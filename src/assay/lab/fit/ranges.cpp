#include "assay/lab/fit/ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::validate {
namespace {

/// Reads the ranges of a table whose numbers are those of a section of a calibration, or are named by their unit. What
/// the table lacks is not fitted; starts may be given elsewhere.
class SectionRanges {
 public:
  SectionRanges(RecordReader& reader, numbers::FitRanges& out, std::string path)
      : reader_(reader), out_(out), path_(std::move(path)) {}

  template <class Section, class Visit>
  void section(Visit visit) {
    Section numbers{};
    visit(numbers, *this);
  }
  template <class Q>
  void all(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) add<Q>(key);
  }

  template <class T>
  void number(std::string_view key, T&) {
    add<T>(key);
  }
  template <class T>
  void number(std::string_view key, std::optional<T>&) {
    add<T>(key);
  }
  void share(std::string_view key, double&) { add<double>(key); }
  void formats(std::string_view key, std::array<double, 12>&) { add<double>(key); }
  void flag(std::string_view, bool&) {}
  template <class T, class Visit>
  void table(std::string_view key, T& values, Visit visit) {
    if (!reader_.has(key)) return;
    reader_.table(key, [&](RecordReader& inner) {
      SectionRanges ranges(inner, out_, path_ + std::string(key) + ".");
      visit(values, ranges);
    });
  }

 private:
  template <class Q>
  void add(std::string_view key) {
    if (!reader_.has(key)) return;
    reader_.table(key, [&](RecordReader& inner) {
      FitRange<Q> range;
      const bool starts = inner.has("start");
      if (starts) inner.number("start", range.start);
      if (inner.has("low") || inner.has("high")) {
        inner.number("low", range.low);
        inner.number("high", range.high);
        if (!(Q{} < range.low && range.low < range.high) ||
            (starts && !(range.low <= range.start && range.start <= range.high)))
          inner.fault("low", "bounds lie above 0 and on both sides of the start");
      }
      if (inner.has("pull")) inner.number("pull", range.pull);
      out_[path_ + std::string(key)] = numbers::in_base_units(range);
    });
  }

  RecordReader& reader_;
  numbers::FitRanges& out_;
  std::string path_;
};

/// Reads a table of ranges: `visit` names its numbers.
template <class Visit>
void read_ranges(RecordReader& reader, std::string_view table, numbers::FitRanges& out, Visit visit) {
  reader.table(table, [&](RecordReader& inner) {
    SectionRanges ranges(inner, out, std::string(table) + ".");
    visit(ranges);
  });
}

using Sections = hardware::CalibrationSections;
void visit_products(SectionRanges& ranges) { ranges.section<hardware::MatmulCalibration>(Sections::matmul); }
void visit_regime(SectionRanges& ranges) { ranges.section<hardware::Regime>(Sections::regime); }
void visit_streams(SectionRanges& ranges) { ranges.section<hardware::PointwiseCalibration>(Sections::pointwise); }
void visit_curve(SectionRanges& ranges) { ranges.section<hardware::CollectiveCurve>(Sections::collective_curve); }

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
  const auto read = [&](std::string_view table, auto visit) { read_ranges(reader, table, out.numbers, visit); };
  read("matmul", visit_products);
  read("pointwise", visit_streams);
  read("attention", [](SectionRanges& ranges) {
    ranges.all<double>({"table_share"});
    ranges.section<hardware::AttentionKernelCalibration>(Sections::attention_kernel);
  });
  read("collective", [](SectionRanges& ranges) {
    visit_curve(ranges);
    ranges.all<double>({"in_network"});
  });
  read("across", [](SectionRanges& ranges) { ranges.all<Seconds>({"latency", "chunk"}); });
  read("measuring", [](SectionRanges& ranges) {
    ranges.all<Seconds>({"product_launch", "kernel_launch", "collective_launch", "gap", "burst_gap", "ramp"});
    ranges.all<Bytes>({"dirty"});
    ranges.all<double>({"evicts", "attention_passes"});
  });
  reader.table("quantise", [&](RecordReader& inner) {
    SectionRanges ranges(inner, out.numbers, "quantise.");
    ranges.all<Seconds>({"fixed", "fixed_fp4", "element"});
    ranges.all<double>({"passes"});
    inner.texts("by_row", out.casts_by_row);
  });
  reader.table("own", [&](RecordReader& inner) { read_start(inner, out.own); });
  read_tables(reader, out);
  reader.items("ignored", out.ignored, [](IgnoredRows& rows, RecordReader& inner) {
    inner.text("table", rows.table);
    if (inner.has("chip")) inner.text("chip", rows.chip);
    inner.texts("kinds", rows.kinds);
  });
}

void read_measured_file(RecordReader& reader, MeasuredRanges& out) {
  const auto read = [&](std::string_view table, auto visit) { read_ranges(reader, table, out.numbers, visit); };
  read("cpu", [](SectionRanges& ranges) {
    visit_products(ranges);
    visit_regime(ranges);
  });
  read("gpu", visit_products);
  read("alone", visit_regime);
  read("in-a-stream", visit_regime);
  read("copies", visit_streams);
  read("ranks", visit_curve);
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

AnyRange RangeTable::operator[](std::string_view key) const {
  const auto known = all_->find(path_ + std::string(key));
  if (known == all_->end()) throw InternalError(fmt::format("no range of {}{} is known", path_, key));
  return {known->second};
}

hardware::AttentionKernelCalibration attention_start(const RangeTable& attention) {
  const auto pass = [&](std::string_view name) {
    const RangeTable of = attention.inside(name);
    return hardware::AttentionPass{
        of["share"].start(), of["wide"].start(), of["softmax"].start(), of["passes"].start(), {}, of["tail"].start()};
  };
  const RangeTable decode = attention.inside("decode");
  return {
      {},
      false,
      pass("forward"),
      pass("backward"),
      {decode["share"].start(), decode["crowded"].start(), decode["wide"].start(), decode["item"].start<Seconds>()}};
}

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
  for (const auto& [path, range] : kernels.numbers)
    if (path.starts_with("attention.")) out.numbers.emplace(path, range);
  return out;
}

Result<numbers::FitRanges> training_ranges_of(const hardware::Catalogue& catalogue) {
  return ranges_of(catalogue, "fits/training.toml", &read_training_file);
}

Result<numbers::FitRanges> serving_ranges_of(const hardware::Catalogue& catalogue) {
  return ranges_of(catalogue, "fits/serving.toml", &read_serving_file);
}

}  // namespace assay::validate
