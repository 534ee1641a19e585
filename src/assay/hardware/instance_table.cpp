#include "assay/hardware/instance_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "assay/base/text.h"
#include "assay/hardware/catalogue.h"
#include "assay/hardware/cluster_names.h"

namespace assay::hardware {
namespace {

constexpr std::string_view offer_columns[] = {"cloud", "instance",           "accelerator",
                                              "count", "ondemand_min_usd_h", "spot_min_usd_h"};
enum OfferColumn { cloud_column, name_column, accelerator_column, count_column, demand_column, spot_column };

/// The first date of a comment: 2026-08-22.
std::string date_in(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  for (std::size_t at = 0; at + form.size() <= text.size(); ++at) {
    const auto fits = [&](std::size_t i) { return form[i] == 'd' ? is_digit(text[at + i]) : text[at + i] == '-'; };
    std::size_t i = 0;
    while (i < form.size() && fits(i)) ++i;
    if (i == form.size()) return std::string(text.substr(at, form.size()));
  }
  return {};
}

class OfferReader {
 public:
  OfferReader(InstanceTable& table, const ClusterNames& names) : table_(table), names_(names) {}

  void line(std::size_t number, std::string_view text) {
    number_ = number;
    if (text.starts_with('#')) {
      if (table_.date.empty()) table_.date = date_in(text);
      return;
    }
    const std::vector<std::string_view> cells = csv_cells(text);
    if (width_ == 0) return header(cells);
    if (!is_table_) return;
    if (cells.size() != width_)
      return fault(fmt::format("the line has {} values and the header {}", cells.size(), width_),
                   "complete the line, or take it out");
    InstanceOffer offer;
    offer.line = number;
    offer.cloud = cells[places_[cloud_column]];
    offer.name = cells[places_[name_column]];
    offer.accelerator = cells[places_[accelerator_column]];
    const auto count = parse_number(cells[places_[count_column]]);
    if (!count || !(*count >= 0.0) || *count > 1e6)
      return fault(fmt::format("count: {} is no number of accelerators", in_quotes(cells[places_[count_column]])),
                   "a whole number, e.g. 8; 0 for a share of one");
    // A share of a card is no chip that one can reckon with.
    offer.chips = *count >= 1.0 ? static_cast<std::int64_t>(*count) : 0;
    if (!price(cells, demand_column, offer.on_demand) || !price(cells, spot_column, offer.spot)) return;
    if (!offer.on_demand && !offer.spot) return fault("the instance has no price", "fill one in, or take the line out");
    name_chip(offer);
    table_.offers.push_back(std::move(offer));
  }

  Result<void> end() {
    if (width_ == 0) fault("the table is empty", "its header: " + header_text());
    return joined(std::move(faults_));
  }

 private:
  static std::string header_text() {
    return join(std::vector<std::string>(std::begin(offer_columns), std::end(offer_columns)), ",");
  }
  void fault(std::string what, std::string hint) {
    constexpr std::size_t most = 20;
    if (faults_.size() < most)
      faults_.push_back({Error::Kind::input,
                         fmt::format("{}:{}", table_.file, std::max<std::size_t>(number_, 1)),
                         std::move(what),
                         std::move(hint),
                         {}});
  }

  void header(const std::vector<std::string_view>& cells) {
    width_ = cells.size();
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < std::size(offer_columns); ++i) {
      const auto found = std::find(cells.begin(), cells.end(), offer_columns[i]);
      places_[i] = static_cast<std::size_t>(found - cells.begin());
      if (found == cells.end() && i != spot_column) missing.emplace_back(offer_columns[i]);
    }
    is_table_ = missing.empty();
    if (!is_table_) fault("the header does not name " + join(missing, ", "), "it has columns " + header_text());
  }

  /// An empty cell is no price; false where it is no number.
  bool price(const std::vector<std::string_view>& cells, OfferColumn column, std::optional<DollarsPerSecond>& out) {
    if (places_[column] >= cells.size() || cells[places_[column]].empty()) return true;
    const auto hourly = parse_number(cells[places_[column]]);
    if (!hourly || !(*hourly > 0.0) || *hourly > 1e6) {
      fault(fmt::format("{}: {} is no price above 0 and at most 1,000,000 USD an hour", offer_columns[column],
                        in_quotes(cells[places_[column]])),
            "USD for an hour of the whole instance, e.g. 55.04; nothing where it is not offered");
      return false;
    }
    out = *hourly * 1_USD / 1_h;
    return true;
  }

  /// A machine that the catalogue knows says more than the name of its accelerators.
  void name_chip(InstanceOffer& offer) const {
    if (offer.chips == 0) return;
    if (const auto machine = names_.find(offer.name); machine && machine->chips == offer.chips && !machine->slice) {
      offer.chip = machine->chip;
    } else if (const auto meant = names_.find_listed(offer.accelerator)) {
      offer.chip = meant->chip;
      offer.chips *= std::max<std::int64_t>(1, meant->chips);
    }
  }

  InstanceTable& table_;
  const ClusterNames& names_;
  std::vector<Error> faults_;
  std::array<std::size_t, std::size(offer_columns)> places_{};
  std::size_t width_ = 0, number_ = 0;
  bool is_table_ = false;
};

}  // namespace

Result<InstanceTable> read_instance_table(std::string_view text, const std::string& file, const Catalogue& catalogue) {
  ASSAY_TRY(names, catalogue.kept<ClusterNames>("cluster names", [&] { return ClusterNames::read(catalogue); }));
  InstanceTable table;
  table.file = file;
  OfferReader reader(table, *names);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.empty()) reader.line(number, line);
  }
  ASSAY_CHECK(reader.end());
  return table;
}

std::optional<std::int64_t> instances_for(std::int64_t chips, std::int64_t replicas, std::int64_t of_replica,
                                          std::int64_t node) {
  if (chips >= of_replica) {
    const std::int64_t each = chips / of_replica;
    return (replicas + each - 1) / each;
  }
  if (chips < node || of_replica % chips != 0) return std::nullopt;
  return replicas * (of_replica / chips);
}

}  // namespace assay::hardware
