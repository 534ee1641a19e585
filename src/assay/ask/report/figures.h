// Numbers as a screen shows them: three digits, no exponents, one unit for what is compared.
#pragma once
#include <string>

#include "assay/base/units.h"

namespace assay::report {

/// Three significant digits without exponent, separators from a thousand up: "6.95", "0.0621", "1,790".
std::string short_number(double value);

/// The same with the unit that suits the value: "6.95 s", "25.4 GiB", "24.3 M USD", "1.21 M tokens/s". Bytes are in
/// binary units, unless they are round in decimal ones.
std::string short_quantity(AnyQuantity quantity);

/// Bytes in binary units even if they are round in decimal ones.
std::string short_binary(Bytes bytes);

/// "53.5 %", "+0.04 %": one decimal from one percent up, two below.
std::string percent(double share);
std::string signed_percent(double share);

/// A unit for several values of one kind, which suits the largest of them.
struct SharedUnit {
  std::string unit;  ///< "GiB", "M USD"
  double scale = 1.0;
  int decimals = 0;

  /// The number alone.
  std::string number(double value) const;
  /// "25.4 GiB"
  std::string text(double value) const;
  /// Whether a value is more than nothing in the digits that are shown.
  bool shows(double value) const;
};
SharedUnit shared_unit(AnyQuantity largest);

}  // namespace assay::report
