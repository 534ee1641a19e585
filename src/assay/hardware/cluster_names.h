// Names of clusters other than the grammar's: what people call a chip ("H100"), what clouds call a machine
// ("p5.48xlarge") or a slice ("v5p-128"). All of them are data: aliases of chip files, and catalogue/instances.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay::hardware {

class Catalogue;

/// What a name stands for.
struct ClusterName {
  std::string chip;                            ///< its id
  std::int64_t chips = 0;                      ///< chips of one machine or slice; 0: the name is that of a chip
  bool slice = false;                          ///< a whole torus slice, whose name gives its size
  std::optional<BytesPerSecond> network = {};  ///< bandwidth out of one machine, where the chip's file says another
  std::string provider = {};                   ///< provider of a machine
  std::string source = {};                     ///< "instances/aws.toml:12 (p5)"
  std::string counts = {};                     ///< what the number in a slice's name counts, if not chips
};

/// All names of a catalogue, compared by plain_name().
class ClusterNames {
 public:
  static Result<ClusterNames> read(const Catalogue& catalogue);

  std::optional<ClusterName> find(std::string_view name) const;
  /// What tables of prices mean by the name of an accelerator, which may be another chip than people mean by it.
  std::optional<ClusterName> find_listed(std::string_view accelerator) const;
  /// All names, for suggestions and completion.
  std::vector<std::string> all() const;

 private:
  struct Series {
    std::string prefix, chip, provider, source, counts;
    std::int64_t per_chip = 1;
  };
  Result<void> read_instances(const Catalogue& catalogue, const std::string& path, std::string_view text);

  std::map<std::string, ClusterName> names_;   ///< by plain_name()
  std::map<std::string, std::string> listed_;  ///< chips by names of accelerators in tables of prices
  std::vector<std::string> spelled_;
  std::vector<Series> series_;
};

}  // namespace assay::hardware
