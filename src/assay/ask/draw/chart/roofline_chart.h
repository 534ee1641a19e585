// Pictures of rooflines: attainable FLOP/s over arithmetic intensity, and achieved FLOP/s over a size.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/draw/chart/chart.h"
#include "assay/hardware/chip.h"
#include "assay/predict/roofline/roofline.h"

namespace assay::draw {

/// A ceiling of the picture: a memory level's slope up to a peak.
struct RoofLine {
  std::string name;
  FlopsPerSecond peak;
  BytesPerSecond bandwidth;
};

/// A named operation on the picture: its intensity and the FLOP/s that the bound allows.
struct RoofPoint {
  std::string name;
  FlopsPerByte intensity;
  FlopsPerSecond achieved;
};

/// The log-log roofline. Shades where every roof is bandwidth-bound, where only the slower ones are, and where none
/// is; the regions refer to the first roof's peak.
Chart roofline_chart(std::string title, std::string subtitle, const std::vector<RoofLine>& roofs,
                     const std::vector<RoofPoint>& points);

/// All memory levels and dtypes of a chip.
Chart chip_chart(const hardware::Chip& chip);

/// A curve of achieved FLOP/s over one size, with its knee if it has one.
struct SizeCurve {
  std::string name;
  std::vector<PlotPoint> points;  ///< size, FLOP/s
  std::optional<double> knee;
};
Chart size_chart(std::string title, std::string subtitle, const std::string& letter,
                 const std::vector<SizeCurve>& curves, FlopsPerSecond peak);

}  // namespace assay::draw
