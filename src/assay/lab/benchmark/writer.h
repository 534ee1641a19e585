// Programs that measure servers and training runs, and what their files look like: catalogue/benchmarks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"

namespace assay::benchmark {

/// What a file may say: of the request, or of how long it took.
enum class FigureKind : std::uint8_t { text, count, time, rate };
struct FigureFacts {
  std::string_view name;
  FigureKind kind;
  bool measured = false;  ///< a result: above 0, and finite
};
inline constexpr FigureFacts all_figures[] = {
    {"model", FigureKind::text},
    {"chip", FigureKind::text},      // as drivers call it
    {"software", FigureKind::text},  // and its release
    {"version", FigureKind::text},
    {"chips", FigureKind::count},
    {"tp", FigureKind::count},
    {"pp", FigureKind::count},
    {"dp", FigureKind::count},
    {"requests", FigureKind::count},
    {"failed", FigureKind::count},
    {"rate", FigureKind::rate},  // of requests; infinite: all at once
    {"clients", FigureKind::count},
    {"in_flight", FigureKind::count},  // requests at once, on average
    {"prompt", FigureKind::count},
    {"prompts", FigureKind::count},  // tokens of all of them
    {"output", FigureKind::count},
    {"outputs", FigureKind::count},
    {"first_token", FigureKind::time, true},
    {"per_token", FigureKind::time, true},
    {"latency", FigureKind::time, true},  // of a whole request
    {"throughput", FigureKind::rate, true},
    {"sequences", FigureKind::count},          // of a training step
    {"sequences_of_chip", FigureKind::count},  // the same of one chip
    {"sequence", FigureKind::count},           // its tokens
    {"step", FigureKind::time, true},
    {"chip_throughput", FigureKind::rate, true},  // tokens per second of a chip in training
};
/// Nullptr if there is no such figure.
const FigureFacts* find_figure(std::string_view name);

/// Where a figure may stand, "PATH in UNIT"; the first place that a file has counts. Paths are keys with dots between
/// them, a metric and a column, or what stands in front of the value in a line, and behind it after a star. A unit
/// "@PATH" stands in the file, too.
struct Figure {
  std::string name;
  struct Place {
    std::string path, unit;
  };
  std::vector<Place> places;
};

struct Writer {
  enum class Form : std::uint8_t { json, table, log };
  std::string id, name, form_name;
  Form form = Form::json;
  std::string verb;              ///< train or serve
  std::string software;          ///< that it always measures; empty: any
  std::vector<std::string> has;  ///< paths by which a file is known, with | between names of one thing
  std::string rows;              ///< where its list of runs stands; empty: the file is one run, or has one in each line
  std::string step;              ///< in every line of a step, where the lines or objects are steps of one run
  std::int64_t warm_up = 0;      ///< the first of these steps, which do not count
  std::vector<Figure> figures;
};

/// Reads such a file; reports every fault at once.
Result<Writer> read_writer(std::string_view document, std::string_view file);
/// Those of the catalogue, by id.
Result<std::vector<Writer>> writers_of(const hardware::Catalogue& catalogue);

}  // namespace assay::benchmark
