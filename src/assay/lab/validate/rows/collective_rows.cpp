#include "assay/lab/validate/rows/collective_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/base/text.h"
#include "assay/hardware/cluster.h"
#include "assay/hardware/collective_protocols.h"
#include "assay/lab/validate/rows/csv_schema.h"
#include "assay/lab/validate/rows/known_chips.h"
#include "assay/lab/validate/rows/known_readings.h"

namespace assay::validate {
namespace {

constexpr std::pair<std::string_view, program::Collective> kinds[] = {
    {"all_gather", program::Collective::all_gather}, {"reduce_scatter", program::Collective::reduce_scatter},
    {"all_reduce", program::Collective::all_reduce}, {"alltoall", program::Collective::all_to_all},
    {"send_recv", program::Collective::permute},     {"moe_exchange", program::Collective::ragged_all_to_all}};

/// "NVLink4 + 32x100G EFA": one-way bandwidth of a node's interfaces.
std::optional<BytesPerSecond> node_network(std::string_view interconnect) {
  const std::size_t plus = interconnect.find("+ ");
  if (plus == std::string_view::npos) return std::nullopt;
  const std::string_view rest = interconnect.substr(plus + 2);
  const std::size_t times = rest.find('x'), unit = rest.find('G');
  if (times == std::string_view::npos || unit == std::string_view::npos || unit < times) return std::nullopt;
  const auto count = parse_number(rest.substr(0, times)), rate = parse_number(rest.substr(times + 1, unit - times - 1));
  if (!count || !rate) return std::nullopt;
  return *count * *rate * 1_Gbit_per_s;
}

class CollectiveTableRow {
 public:
  using Kernels = std::set<std::string, std::less<>>;
  CollectiveTableRow(const TableLine& in, const hardware::Catalogue& catalogue, KnownChips& chips,
                     const Kernels& kernels)
      : in_(in), catalogue_(catalogue), chips_(chips), kernels_(kernels) {}

  Why read(CollectiveRow& out) {
    using enum Field::Kind;
    static constexpr Field fields[] = {{"time_us", amount}, {"algbw_gbps", amount}, {"bytes", amount},
                                       {"n_ranks", count},  {"nodes", count},       {"gpus_per_node", count}};
    out.id = text("id");
    out.source = text("source_key");
    if (auto why = unread(in_.table, in_.row, fields)) return why;
    const std::string_view op = text("op");
    const auto* kind = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return k.first == op; });
    if (kind == std::end(kinds)) return fmt::format("{} has no model", op);
    const std::optional<std::string> chip = chips_.find(text("chip"));
    if (!chip || !chips_.has_sweeps(*chip))
      return fmt::format("no chip {} with a network of its own", in_quotes(text("chip")));
    out.chip = *chip;
    out.kind = kind->second;
    out.measured = number("time_us") * 1_us;
    if (!(out.measured > Seconds(0)) && number("algbw_gbps") > 0.0)
      out.measured = Bytes(number("bytes")) / (number("algbw_gbps") * 1_GB_per_s);
    if (!(out.measured > Seconds(0))) return "no time is given";
    if (kernels_.contains(text("algorithm"))) out.kernel = text("algorithm");
    if (text("algorithm").starts_with("Ring")) out.algorithm = collective::CollectiveAlgorithm::ring;
    if (auto why = read_links(out)) return why;
    const double n = number("n_ranks");
    // The tables give one device's buffer for an exchange.
    out.bytes = Bytes(number("bytes") * (out.kind == program::Collective::all_to_all ? n : 1.0));
    if (out.kind == program::Collective::ragged_all_to_all) {
      const std::int64_t tokens = noted(text("extra"), "tokens/rank="), width = noted(text("extra"), "hidden="),
                         picks = noted(text("extra"), "topk=");
      if (out.kernel.empty() || !(tokens > 0 && width > 0 && picks > 0)) return "the tokens are not given";
      out.tokens = fmt::format("{}[{},{}]", text("dtype"), exact_number(n * static_cast<double>(tokens)), width);
      out.picks = fmt::format("{}", picks);
    }
    out.shape = fmt::format("{} over {} of {}", op, text("n_ranks"), text("bytes"));
    out.group = fmt::format("{}, {}, {} over {}{}", out.source, text("chip"),
                            out.kernel.empty() ? program::name(out.kind) : std::string_view(out.kernel),
                            text("n_ranks"), out.across ? fmt::format(" in {} nodes", text("nodes")) : "");
    out.fold = chips_.fold(text("chip"), out.shape, text("split"));
    return std::nullopt;
  }

 private:
  std::string_view text(std::string_view column) const { return in_.text(column); }
  double number(std::string_view column, double missing = 0) const { return in_.number(column, missing); }

  Why read_links(CollectiveRow& out) {
    const std::string_view interconnect = text("interconnect");
    if (const MeasuredSlice* slice = chips_.slice(out.chip)) {
      out.cluster = slice->cluster;
      out.axes = slice->axis;
    } else if (auto why = read_nodes(interconnect, out)) {
      return why;
    }
    const auto cluster = hardware::parse_cluster(out.cluster, catalogue_, "chip", out.changes);
    if (!cluster) return cluster.error().what;
    const auto group = collective::make_group(
        *cluster, out.axes.empty() ? std::vector<std::string>() : std::vector{out.axes}, 1.0, "chip");
    if (!group) return group.error().what;
    out.links = *group;
    const auto& beyond = cluster->chip.network.scale_out;
    out.fabric = hardware::fabric_of(beyond && beyond->technology ? *beyond->technology : "");
    return std::nullopt;
  }

  /// Chips behind switches: how many in how many nodes, and the network between these.
  Why read_nodes(std::string_view interconnect, CollectiveRow& out) {
    const hardware::Chip* chip = chips_.chip(out.chip);
    if (!chip) return fmt::format("the file of {} has a fault", out.chip);
    if (!hardware::scale_up_egress(*chip)) return "the chip has no links of its own";
    const double ranks = number("n_ranks"), nodes = std::max(1.0, number("nodes", 1));
    out.cluster = fmt::format("{}:{}", out.chip, ranks);
    // A collective treats the trays of one NVLink domain as one node.
    const auto& domain = chip->network.scale_up->domain;
    const bool one_domain = domain && ranks <= static_cast<double>(domain->value);
    out.across = nodes > 1.0 && !(one_domain && interconnect.find("same domain") != std::string_view::npos);
    const double members = out.across ? ranks / nodes : ranks;
    if (domain && (one_domain ? out.across : members != static_cast<double>(domain->value)))
      out.changes.push_back({"network.scale_up.domain", exact_number(members)});
    if (!out.across) return std::nullopt;
    const auto network = node_network(interconnect);
    const BytesPerSecond share =
        network ? *network / number("gpus_per_node", members) : chips_.network(interconnect).bandwidth;
    if (!(share > BytesPerSecond(0))) return "the network between the nodes is not stated";
    out.changes.push_back({"network.scale_out.bandwidth", exact_number(share.in(1_GB_per_s)) + "GB/s"});
    if (network) {
      const std::string_view fabric = interconnect.substr(interconnect.rfind("G ") + 2);
      out.changes.push_back({"network.scale_out.technology", std::string(fabric.substr(0, fabric.find(' ')))});
    }
    out.changes.push_back({"network.scale_out.in_network_reduction", "false"});
    return std::nullopt;
  }

  const TableLine& in_;
  const hardware::Catalogue& catalogue_;
  KnownChips& chips_;
  const Kernels& kernels_;
};

}  // namespace

Result<CollectiveRows> read_collectives(const CsvTable& given, const hardware::Catalogue& catalogue) {
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  ASSAY_TRY(protocols, hardware::collective_protocols_of(catalogue));
  CollectiveTableRow::Kernels kernels{"one-shot"};
  for (const hardware::ExchangeKernel& kernel : protocols.exchanges) kernels.insert(kernel.name);
  return rows_after_readings<CollectiveRows>(given, catalogue, [&](const TableLine& in, CollectiveRow& row) {
    return CollectiveTableRow(in, catalogue, chips, kernels).read(row);
  });
}

Question question_of(const CollectiveRow& row) {
  Question question{{"collective", std::string(program::name(row.kind)), "--bytes",
                     row.tokens.empty() ? exact_number(row.bytes.in(1_B)) + "B" : row.tokens, "--on", row.cluster},
                    {}};
  // What a table's all-reduces start with is not part of its sends.
  if (row.kernel.empty() && !program::is_one_to_one(row.kind)) question.own_way = {"--measured", row.source};
  if (!row.kernel.empty()) question.words.insert(question.words.end(), {"--kernel", row.kernel});
  if (!row.picks.empty()) question.words.insert(question.words.end(), {"--picks", row.picks});
  if (!row.axes.empty()) question.words.insert(question.words.end(), {"--axes", row.axes});
  for (const hardware::Override& change : row.changes)
    question.words.insert(question.words.end(), {"--set", change.path + "=" + change.value});
  if (row.algorithm == collective::CollectiveAlgorithm::ring)
    question.words.insert(question.words.end(), {"--algorithm", "ring"});
  return question;
}

Seconds predict(const CollectiveRow& row, const hardware::CollectiveCalibration& calibration,
                const kernel::Harness& harness) {
  return harness.launch[static_cast<std::size_t>(kernel::KernelKind::collective)] +
         collective::collective_estimate(calibration, row.kind, row.bytes, row.links, row.fabric, row.algorithm);
}

}  // namespace assay::validate
