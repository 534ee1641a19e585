#include "assay/hardware/collective_protocols.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/hardware/catalogue.h"

namespace assay::hardware {
namespace {

void read_algorithm(AlgorithmSteps& steps, RecordReader& reader) {
  reader.number("base", steps.base);
  reader.number("inside", steps.inside);
  reader.number("between", steps.between);
  reader.share("share", steps.share);
}

void read_protocol(CollectiveProtocol& protocol, RecordReader& reader) {
  reader.table("ring", protocol.ring, read_algorithm);
  reader.table("tree", protocol.tree, read_algorithm);
  reader.number("post", protocol.post);
  reader.number("two_nodes", protocol.two_nodes);
  reader.number("more_nodes", protocol.more_nodes);
}

void read_exchange(ExchangeKernel& kernel, RecordReader& reader) {
  static constexpr std::pair<std::string_view, bool> copies[] = {{"device", false}, {"expert", true}};
  reader.word("for_each", copies, kernel.per_expert);
  reader.number("rate", kernel.rate);
  reader.each_key("start", [&](const std::string& architecture, RecordReader& inner) {
    inner.number(architecture, kernel.starts.emplace_back(architecture, Given<Seconds>()).second);
  });
}

void read_protocols(CollectiveProtocols& out, RecordReader& reader) {
  reader.sources();
  reader.table("ll", out.ll, read_protocol);
  reader.table("ll128", out.ll128, read_protocol);
  reader.table("simple", out.simple, read_protocol);
  reader.table("switches", [&](RecordReader& inner) {
    inner.number("inside", out.switches_inside);
    inner.number("between", out.switches_between);
    inner.share("share", out.switches_share);
  });
  reader.table("bounds", [&](RecordReader& inner) {
    inner.share("tree", out.tree_share);
    inner.number("plateau", out.plateau);
  });
  reader.table("interfaces", [&](RecordReader& inner) { inner.share("share", out.interfaces); });
  reader.table("exchanges", [&](RecordReader& inner) { inner.share("share", out.exchange_share); });
  reader.each_table("exchange", [&](const std::string& name, RecordReader& inner) {
    out.exchanges.emplace_back().name = name;
    read_exchange(out.exchanges.back(), inner);
  });
  reader.table("flush", [&](RecordReader& inner) { inner.texts("architectures", out.flushed_architectures); });
  reader.each_table("fabric", [&](const std::string& name, RecordReader& inner) {
    auto& fabric = out.fabrics.emplace_back();
    fabric.name = name;
    if (inner.has("without")) inner.texts("without", fabric.without);
    if (inner.has("only_simple")) inner.texts("only_simple", fabric.only_simple);
    inner.flag("fixed_chunks", fabric.fixed_chunks);
  });
}

bool is_in(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

FabricProtocols CollectiveProtocols::of(std::string_view fabric, std::string_view architecture) const {
  FabricProtocols runs;
  runs.flushes = is_in(flushed_architectures, architecture);
  for (const LimitedFabric& limited : fabrics) {
    if (limited.name != fabric) continue;
    const bool only_simple = is_in(limited.only_simple, architecture);
    runs.ll = !only_simple && !is_in(limited.without, "ll");
    runs.ll128 = !only_simple && !is_in(limited.without, "ll128");
    runs.switches = !is_in(limited.without, "switches");
    runs.fixed_chunks = limited.fixed_chunks;
  }
  return runs;
}

Result<CollectiveProtocols> collective_protocols_of(const Catalogue& catalogue) {
  ASSAY_TRY(found,
            catalogue.kept<CollectiveProtocols>("protocols of collectives", [&]() -> Result<CollectiveProtocols> {
              CollectiveProtocols protocols;
              for (const auto& [path, text] : catalogue.files("steps/collectives.toml")) {
                RecordFile file{.name = path, .keys_hint = "docs/collectives.md describes the keys"};
                ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) { read_protocols(protocols, reader); }));
                break;
              }
              return protocols;
            }));
  return *found;
}

}  // namespace assay::hardware
