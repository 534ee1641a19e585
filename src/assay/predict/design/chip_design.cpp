#include "assay/predict/design/chip_design.h"

#include <fmt/format.h>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::design {
namespace {

constexpr double most_parts = 1e6;  ///< of a kind on a die

class Reader {
 public:
  Reader(const Technology& technology, const std::string& file) : technology_(technology), file_(file) {}

  void read(ChipDesign& out, RecordReader& in) {
    in.text("id", out.id);
    out.name = out.id;
    if (in.has("name")) in.text("name", out.name);
    if (in.has("base")) in.text("base", out.base);
    if (in.has("source")) in.sources();
    in.number("clock", out.clock);
    if (in.has("power")) in.number("power", out.limit.emplace());
    if (in.has("volume")) in.number("volume", out.volume.emplace());
    in.items("die", out.dies, [&](Die& die, RecordReader& one) { read_die(die, one); });
    if (out.dies.empty()) in.fault("die", "a chip has at least one die", "add a table [[die]]");
    in.each_key("rates", [&](const std::string& format, RecordReader& one) {
      const auto dtype = parse_dtype(format, "rates");
      double rate = 0.0;
      one.number(format, rate);
      if (!dtype) return one.fault(format, dtype.error().what, dtype.error().hint);
      out.rates.emplace_back(*dtype, rate);
    });
    if (in.has("memory")) in.table("memory", [&](RecordReader& one) { read_memory(out, one); });
    if (in.has("scale_up")) in.text("scale_up", out.scale_up);
    if (in.has("cache_on")) in.number("cache_on", out.cache_on.emplace());
    std::string package = "interposer";
    if (in.has("package")) in.text("package", package);
    find(technology_.packages, package, "package", in, out.package);
    in.optional_table("published", [&](RecordReader& one) { one.number("power", out.published.emplace()); });
    check(out, in);
  }

 private:
  template <class T>
  void find(const std::vector<T>& all, const std::string& name, std::string_view key, RecordReader& in, const T*& out) {
    const auto found = named(all, name, file_, key);
    if (found)
      out = *found;
    else
      in.fault(key, found.error().what, found.error().hint);
  }
  static void amount(RecordReader& in, std::string_view key, double& out) {
    if (!in.has(key)) return;
    in.number(key, out);
    if (out > most_parts) in.fault(key, "implausibly large", fmt::format("at most {:.0e} of a kind", most_parts));
  }

  void read_die(Die& die, RecordReader& in) {
    std::string node;
    in.text("node", node);
    find(technology_.nodes, node, "node", in, die.node);
    in.text("style", die.style);
    amount(in, "count", die.count);
    amount(in, "cores", die.cores.count);
    die.cores.used = die.cores.count;
    amount(in, "cores_on", die.cores.used);
    if (die.cores.used > die.cores.count) in.fault("cores_on", "more cores are on than the die has");
    amount(in, "matrix_units", die.matrix_units);
    amount(in, "multiply_adds", die.multiply_adds);
    amount(in, "lanes", die.lanes);
    amount(in, "double_lanes", die.double_lanes);
    amount(in, "integer_lanes", die.integer_lanes);
    for (const auto& [key, to] :
         {std::pair{"local", &die.local}, {"cache", &die.cache}, {"scratchpad", &die.scratchpad}})
      if (in.has(key)) in.number(key, *to);
    amount(in, "stacks", die.stacks);
    in.each_key("links", [&](const std::string& kind, RecordReader& one) {
      DieLinks& links = die.links.emplace_back();
      find(technology_.links, kind, kind, one, links.kind);
      amount(one, kind, links.count);
    });
    if (in.has("other")) in.number("other", die.other);
    if (in.has("published")) in.number("published", die.published.emplace());
  }

  void read_memory(ChipDesign& out, RecordReader& in) {
    std::string kind;
    in.text("kind", kind);
    find(technology_.stacks, kind, "kind", in, out.memory);
    if (!out.memory) return;
    for (const Die& die : out.dies) out.stacks += die.count * die.stacks;
    amount(in, "stacks_on", out.stacks);
    out.stack_capacity = out.memory->capacity;
    out.stack_bandwidth = out.memory->bandwidth;
    if (in.has("capacity")) in.number("capacity", out.stack_capacity);
    if (in.has("bandwidth")) in.number("bandwidth", out.stack_bandwidth);
  }

  static void check(const ChipDesign& out, RecordReader& in) {
    if (!(out.clock > Hertz())) in.fault("clock", "a chip has a clock", "e.g. clock = \"1.8 GHz\"");
    if (out.volume && !(*out.volume >= 1.0)) in.fault("volume", "at least one chip is made");
    double stacks = 0;
    for (const Die& die : out.dies) stacks += die.count * die.stacks;
    if (out.stacks > stacks)
      in.fault("memory", fmt::format("{} stacks are on, and the dies have PHYs of {}", out.stacks, stacks),
               "stacks of a [[die]] says how many it has");
    if (stacks > 0.0 && !out.memory)
      in.fault("memory", "the dies have PHYs of stacks", "e.g. memory = { kind = \"hbm3\" }");
    if (out.peak() == FlopsPerSecond())
      in.fault("die", "no core multiplies", "cores, matrix_units and multiply_adds of a [[die]]");
    const auto is_linked = [&](const Die& die) {
      for (const DieLinks& links : die.links)
        if (links.kind && links.kind->name == out.scale_up) return true;
      return false;
    };
    bool linked = out.scale_up.empty();
    for (const Die& die : out.dies) linked = linked || is_linked(die);
    if (!linked)
      in.fault("scale_up", fmt::format("no die has links of {}", in_quotes(out.scale_up)),
               "links of a [[die]] lists kinds with how many");
  }

  const Technology& technology_;
  const std::string& file_;
};

}  // namespace

double ChipDesign::cores() const {
  double sum = 0;
  for (const Die& die : dies) sum += die.count * die.cores.used;
  return sum;
}

FlopsPerSecond ChipDesign::peak() const {
  double multiply_adds = 0;
  for (const Die& die : dies) multiply_adds += die.count * die.cores.used * die.matrix_units * die.multiply_adds;
  return multiply_adds * multiply_and_add(Plain{}) * clock;
}

BytesPerSecond ChipDesign::link_bandwidth() const {
  BytesPerSecond sum;
  for (const Die& die : dies)
    for (const DieLinks& links : die.links)
      if (links.kind->name == scale_up) sum += die.count * links.count * links.kind->bandwidth;
  return sum;
}

Result<ChipDesign> read_design(const Toml& root, const std::string& file, const Technology& technology) {
  ChipDesign out;
  RecordFile record{.name = file,
                    .keys_hint = "docs/design.md describes the keys",
                    .sourced_tables = false,
                    .own = true,
                    .largest = 1e12};
  RecordReader in(record, root);
  Reader(technology, file).read(out, in);
  in.finish();
  ASSAY_CHECK(joined(std::move(record.faults)));
  return out;
}

ChipRates rates_of(const ChipDesign& design, Hertz clock) {
  ChipRates out;
  out.cores = design.cores();
  const FlopsPerSecond each = (clock / design.clock) * design.peak() / out.cores;
  out.peaks = {{Dtype::bf16, each}, {Dtype::fp16, each}};
  for (const auto& [format, rate] : design.rates) out.peaks.emplace_back(format, rate * each);
  if (design.memory) {
    out.capacity = design.stacks * design.stack_capacity;
    out.bandwidth = design.memory_bandwidth();
  }
  for (const Die& die : design.dies)
    for (const DieLinks& of : die.links)
      if (of.kind->name == design.scale_up) out.links += die.count * of.count;
  if (out.links > 0.0) out.link_bandwidth = design.link_bandwidth() / out.links;
  return out;
}

std::string chip_file(const ChipDesign& design, const ChipRates& rates, Watts power) {
  const auto text = [](AnyQuantity quantity) {
    return fmt::format("\"{} {}\"", exact_number(quantity.value), base_unit(quantity.dim));
  };
  std::string out =
      fmt::format("id = \"{}\"\nname = \"{}\"\nbase = \"{}\"\n\n[peak]\n", design.chip_id(), design.name, design.base);
  for (const auto& [format, peak] : rates.peaks)
    out += fmt::format("{} = {}\n", name(format), text(rates.cores * peak));
  out += fmt::format("\n[cores]\ncount = {:.0f}\n", rates.cores);
  if (rates.bandwidth > BytesPerSecond())
    out += fmt::format("\n[memory.hbm]\ncapacity = {}\nbandwidth = {}\n", text(rates.capacity), text(rates.bandwidth));
  if (rates.links > 0.0)
    out += fmt::format("\n[network.scale_up]\nlinks = {:.0f}\nlink_bandwidth = {}\n", rates.links,
                       text(rates.link_bandwidth));
  out += fmt::format("\n[power]\nchip = {}\n", text(power));
  return out;
}

}  // namespace assay::design
