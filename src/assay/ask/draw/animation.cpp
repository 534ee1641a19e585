#include "assay/ask/draw/animation.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::draw {

std::string to_animated_svg(const std::string& title, const std::vector<Scene>& frames, double seconds_each) {
  double width = 1.0, height = 1.0;
  for (const Scene& frame : frames) {
    width = std::max(width, frame.width);
    height = std::max(height, frame.height);
  }
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\">\n<title>{2}</title>\n",
      width, height, xml_escaped(title));
  const auto count = static_cast<double>(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const double from = static_cast<double>(i) / count, to = static_cast<double>(i + 1) / count;
    std::string values = i == 0 ? "visible" : "hidden;visible", times = i == 0 ? "0" : fmt::format("0;{:.6f}", from);
    if (i + 1 < frames.size()) {
      values += ";hidden";
      times += fmt::format(";{:.6f}", to);
    }
    out += fmt::format("<g visibility=\"{}\">\n", i == 0 ? "visible" : "hidden");
    if (frames.size() > 1)
      out += fmt::format(
          "<animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"{:.1f}s\" repeatCount=\"indefinite\" "
          "values=\"{}\" keyTimes=\"{}\"/>\n",
          count * seconds_each, values, times);
    const std::string frame = to_svg(frames[i]);
    out += frame.substr(std::min(frame.size(), frame.find("<svg"))) + "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace assay::draw
