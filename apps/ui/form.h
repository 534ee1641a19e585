// Bodies of several parts (multipart/form-data): a request, and files that come with it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/assay.h"

namespace assay::ui {

/// The boundary that a Content-Type names, if the body has several parts.
std::optional<std::string> form_boundary(std::string_view content_type);

struct Form {
  std::string_view request;  ///< the part called "request"; empty if there is none
  std::vector<Attachment> files;
};

/// The parts of a body, which has to outlive them; nothing if the boundary does not split it into parts.
std::optional<Form> read_form(std::string_view body, std::string_view boundary);

}  // namespace assay::ui
