// The texts of a picture.
#pragma once
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "assay/ask/draw/scene.h"

namespace assay::testing {

inline std::vector<draw::Label> labels_of(const draw::Scene& scene) {
  std::vector<draw::Label> labels;
  for (const draw::SceneItem& item : scene.items)
    if (const draw::Label* label = std::get_if<draw::Label>(&item.shape); label && !label->text.empty())
      labels.push_back(*label);
  return labels;
}

inline bool shows(const draw::Scene& scene, const std::string& text) {
  const auto labels = labels_of(scene);
  return std::any_of(labels.begin(), labels.end(), [&](const draw::Label& label) { return label.text == text; });
}

}  // namespace assay::testing
