// The software that a request assumes: --software and the options that describe it one by one.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "assay/ask/report/document.h"
#include "assay/ask/verbs/request.h"
#include "assay/predict/kernel/software/software.h"

namespace assay::verbs {

/// What --software means.
struct AssumedSoftware {
  std::string name = "any", version;                 ///< any: the best that was measured on such chips
  std::vector<kernel::SoftwareProperty> properties;  ///< of the named software
  std::vector<kernel::SoftwareProperty> plan;        ///< what its training plans may be
  std::vector<kernel::SoftwareWord> recompute;       ///< its own words for policies
  std::string fusion;                                ///< as the request gives it; empty: not at all
  double step_tokens = 0;                            ///< most prompt tokens of a serving step; 0: no limit
  std::string left_out;                              ///< what its estimate leaves out; empty: nothing known
  bool is_usual = false;                             ///< the request names none: it is the usual one on such chips

  bool is_read = false;  ///< of the file that --from reads

  /// Whether a plan that it cannot run is an error: the request names it.
  bool binds() const { return !is_usual && !is_read; }
  bool named() const { return !version.empty(); }
  /// "NAME@VERSION"; "any".
  std::string text() const { return named() ? name + "@" + version : name; }
};

/// Reads --software and --fusion. A property may depend on the case, whose `fusion` is set here. Without --software, it
/// is the usual one on chips of this maker; any where none is known.
Result<AssumedSoftware> read_software_name(const Request& request, const Context& context, kernel::SoftwareVerb verb,
                                           kernel::SoftwareCase at, std::string_view maker = {});

/// The value that the request gives to an option of software, unless that is read with the formats; "yes" or "no" for
/// flags.
std::optional<std::string> stated(const Request& request, std::string_view option);

/// Sets the properties of the named software, then the options that the request gives.
template <class S>
Result<void> set_assumed(const Request& request, const AssumedSoftware& assumed,
                         std::span<const kernel::SoftwareOption> options, S& software) {
  for (const kernel::SoftwareProperty& property : assumed.properties)
    ASSAY_CHECK(kernel::set_software(software, property.option, property.value, "--software"));
  if (!assumed.fusion.empty()) ASSAY_CHECK(kernel::set_software(software, "fusion", assumed.fusion, "--fusion"));
  for (const kernel::SoftwareOption& option : options)
    if (const auto value = stated(request, option.name); value && option.name != "fusion")
      ASSAY_CHECK(kernel::set_software(software, option.name, *value, "--" + std::string(option.name)));
  return {};
}

/// Adds the software and, of a named one, each property with its source.
void add_software(const AssumedSoftware& assumed, report::Members& out);

}  // namespace assay::verbs
