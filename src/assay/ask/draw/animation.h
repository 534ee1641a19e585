// Scenes one after the other, as one SVG.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::draw {

/// Shows each scene for some seconds, again and again, without scripts; readers that do not animate show the first one.
std::string to_animated_svg(const std::string& title, const std::vector<Scene>& frames, double seconds_each);

}  // namespace assay::draw
