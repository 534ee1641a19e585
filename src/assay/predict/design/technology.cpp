#include "assay/predict/design/technology.h"

#include <fmt/format.h>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"
#include "assay/predict/design/read_spread.h"

namespace assay::design {
namespace {

void read_node(Node& node, RecordReader& in) {
  read_spread(in, "logic", node.logic);
  read_spread(in, "cell", node.cell);
  read_spread(in, "arithmetic", node.arithmetic);
  read_spread(in, "wafer", node.wafer);
  read_spread(in, "defects", node.defects);
  read_spread(in, "leakage", node.leakage);
  read_spread(in, "masks", node.masks);
  read_spread(in, "design", node.design);
}

void read_stack(StackKind& stack, RecordReader& in) {
  read_spread(in, "area", stack.area);
  read_spread(in, "footprint", stack.footprint);
  read_spread(in, "edge", stack.edge);
  in.number("capacity", stack.capacity);
  in.number("bandwidth", stack.bandwidth);
  read_spread(in, "energy", stack.energy);
  read_spread(in, "price", stack.price);
}

void read_link(LinkKind& link, RecordReader& in) {
  read_spread(in, "area", link.area);
  read_spread(in, "controller", link.controller);
  in.number("bandwidth", link.bandwidth);
  read_spread(in, "energy", link.energy);
}

void read_package(PackageKind& package, RecordReader& in) {
  read_spread(in, "price", package.price);
  read_spread(in, "test", package.test);
  read_spread(in, "bonding", package.bonding);
}

template <class T>
void read_kinds(RecordReader& in, std::string_view key, std::vector<T>& out, void (*read)(T&, RecordReader&)) {
  in.each_table(key, [&](const std::string& name, RecordReader& one) {
    out.emplace_back().name = name;
    read(out.back(), one);
  });
}

void read_technology(Technology& out, RecordReader& in) {
  in.sources();
  read_kinds(in, "node", out.nodes, read_node);
  read_kinds(in, "memory", out.stacks, read_stack);
  read_kinds(in, "link", out.links, read_link);
  read_kinds(in, "package", out.packages, read_package);
  in.table("units", [&](RecordReader& one) {
    read_spread(one, "multiply_add", out.multiply_add);
    read_spread(one, "lane", out.lane);
    read_spread(one, "double_lane", out.double_lane);
    read_spread(one, "integer_lane", out.integer_lane);
  });
  in.table("sram", [&](RecordReader& one) {
    one.text("node", out.sram_node);
    read_spread(one, "local", out.local);
    read_spread(one, "cache", out.cache);
    read_spread(one, "scratchpad", out.scratchpad);
  });
  in.table("wafer", [&](RecordReader& one) {
    read_spread(one, "diameter", out.diameter);
    read_spread(one, "edge", out.edge);
    read_spread(one, "scribe", out.scribe);
    read_spread(one, "clustering", out.clustering);
    read_spread(one, "reticle", out.reticle);
  });
  in.table("designed", [&](RecordReader& one) { one.number("area", out.designed); });
  in.table("power", [&](RecordReader& one) {
    read_spread(one, "exponent", out.exponent);
    read_spread(one, "density", out.density);
  });
}

}  // namespace

Result<const Technology*> technology_of(const hardware::Catalogue& catalogue) {
  return catalogue.kept<Technology>("technology", [&]() -> Result<Technology> {
    Technology out;
    for (const auto& [path, text] : catalogue.files("technology/silicon.toml")) {
      RecordFile file{.name = path, .keys_hint = "docs/design.md describes the keys", .largest = 1e12};
      ASSAY_CHECK(read_record(text, file, [&](RecordReader& in) { read_technology(out, in); }));
    }
    return out;
  });
}

template <class T>
Result<const T*> named(const std::vector<T>& all, std::string_view name, std::string where, std::string_view what) {
  std::vector<std::string> names;
  for (const T& one : all) {
    if (one.name == name) return &one;
    names.push_back(one.name);
  }
  return fail(std::move(where), fmt::format("unknown {} {}", what, in_quotes(name)), "one of " + join(names, ", "));
}
template Result<const Node*> named(const std::vector<Node>&, std::string_view, std::string, std::string_view);
template Result<const StackKind*> named(const std::vector<StackKind>&, std::string_view, std::string, std::string_view);
template Result<const LinkKind*> named(const std::vector<LinkKind>&, std::string_view, std::string, std::string_view);
template Result<const PackageKind*> named(const std::vector<PackageKind>&, std::string_view, std::string,
                                          std::string_view);

}  // namespace assay::design
