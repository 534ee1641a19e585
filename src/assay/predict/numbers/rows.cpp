#include "assay/predict/numbers/rows.h"

namespace assay::numbers {

void NumbersWriter::add(std::string& list, std::string_view name, const std::string& value) {
  list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", name, value);
}

std::string NumbersWriter::in_text(double value) { return fmt::format("{:.4g}", value); }
std::string NumbersWriter::in_text(Seconds value) { return fmt::format("\"{:.4g} us\"", value.in(1_us)); }
std::string NumbersWriter::in_text(Bytes value) { return fmt::format("\"{:.4g} GiB\"", value.in(1_GiB)); }

}  // namespace assay::numbers
