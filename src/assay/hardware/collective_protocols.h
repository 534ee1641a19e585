// How a library of collectives times its own algorithms between nodes: catalogue/steps/collectives.toml. The law that
// uses the numbers is in predict/collective/collective_models.h.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/explain.h"
#include "assay/base/result.h"
#include "assay/base/units.h"

namespace assay::hardware {

class Catalogue;

/// An algorithm under a protocol: fixed time, a step to the next chip of a node and to the next node, and the share of
/// the bandwidth left for data.
struct AlgorithmSteps {
  Seconds base, inside, between;
  double share = 1;
};
struct CollectiveProtocol {
  AlgorithmSteps ring, tree;
  Seconds post;  ///< least time of a ring's step between nodes: the host hands messages to the interface
  std::optional<BytesPerSecond> two_nodes, more_nodes;  ///< most bytes per second that the protocol carries
};

/// The protocols and algorithms that run on a fabric.
struct FabricProtocols {
  bool ll = true, ll128 = true, switches = true;
  bool flushes = false;       ///< bytes that arrived wait for a second message
  bool fixed_chunks = false;  ///< short arrays are not cut into smaller chunks
};

/// A kernel of serving engines that exchanges tokens with their experts, in place of the library's all-to-all.
struct ExchangeKernel {
  std::string name;
  bool per_expert = false;  ///< a token goes once for each of its experts, not once to each device that has one
  std::vector<std::pair<std::string, Given<Seconds>>> starts;  ///< by architecture
  Given<BytesPerSecond> rate;                                  ///< at which a device sends copies, also to itself
};

/// Protocols in the order of how fast they start: LL and LL128 send flags with the data, Simple sends them behind.
struct CollectiveProtocols {
  CollectiveProtocol ll, ll128, simple;
  Seconds switches_inside, switches_between;  ///< steps of switches that reduce in a node and a tree between nodes
  double switches_share = 1;                  ///< share of the rate at which switches reduce in one node
  double tree_share = 1;                      ///< share of the interfaces' bandwidth that a tree reaches
  double plateau = 1;                         ///< how much longer a ring takes to start an all-reduce under Simple
  double interfaces = 1;                      ///< share of their bandwidth that interfaces reach

  struct LimitedFabric {
    std::string name;
    std::vector<std::string> without, only_simple;
    bool fixed_chunks = false;
  };
  std::vector<LimitedFabric> fabrics;
  std::vector<std::string> flushed_architectures;

  std::vector<ExchangeKernel> exchanges;
  Given<double> exchange_share = 1.0;  ///< of the links' bandwidth that these kernels reach

  FabricProtocols of(std::string_view fabric, std::string_view architecture) const;
};

/// Reads the protocols of the catalogue; reports every fault at once.
Result<CollectiveProtocols> collective_protocols_of(const Catalogue& catalogue);

}  // namespace assay::hardware
