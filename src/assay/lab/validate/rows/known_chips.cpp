#include "assay/lab/validate/rows/known_chips.h"

#include <algorithm>
#include <cctype>

#include "assay/base/assign.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/lab/validate/validation.h"

namespace assay::validate {
namespace {

/// The letters and digits of a name, and whether a word ends before each of them.
struct Letters {
  std::string text;
  std::vector<char> ends;

  explicit Letters(std::string_view name) {
    bool ended = true;
    for (const char c : name) {
      if (!std::isalnum(static_cast<unsigned char>(c))) {
        ended = true;
        continue;
      }
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      ends.push_back(ended ? 1 : 0);
      ended = false;
    }
    ends.push_back(1);
  }
  /// Starts with the whole words of `other`; only the unit of a size may follow directly: "A100-SXM-80GB".
  bool begins_with(const Letters& other) const {
    if (!text.starts_with(other.text)) return false;
    const std::size_t n = other.text.size();
    return ends[n] || (text.compare(n, 2, "gb") == 0 && ends[n + 2]);
  }
};

void read_accelerator(NamedAccelerator& out, RecordReader& reader) {
  reader.text("name", out.name);
  reader.text("chip", out.chip);
  if (reader.has("table")) reader.text("table", out.table);
  reader.number("power", out.power);
  reader.each_key("changes", [&](const std::string& path, RecordReader& inner) {
    hardware::Override& change = out.changes.emplace_back();
    change.path = path;
    inner.text(path, change.value);
  });
}

void read_network(NamedNetwork& out, RecordReader& reader) {
  reader.text("text", out.text);
  if (reader.has("bandwidth")) reader.number("bandwidth", out.bandwidth);
  if (reader.has("reached")) reader.number("reached", out.reached);
}

void read_interface(NamedInterface& out, RecordReader& reader) {
  reader.text("name", out.name);
  reader.number("bandwidth", out.bandwidth);
}

void read_slice(MeasuredSlice& out, RecordReader& reader) {
  reader.text("chip", out.chip);
  reader.text("cluster", out.cluster);
  reader.text("axis", out.axis);
}

}  // namespace

Result<KnownChips> KnownChips::make(const hardware::Catalogue& catalogue) {
  KnownChips known(catalogue);
  ASSAY_SET(known.families_, numbers::families_of(catalogue));
  ASSAY_SET(known.names_, hardware::ClusterNames::read(catalogue));
  for (const auto& [path, text] : catalogue.files("validation/accelerators.toml")) {
    RecordFile shared{.name = path};
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      reader.items("accelerator", known.accelerators_, read_accelerator);
      reader.items("network", known.networks_, read_network);
      reader.items("interface", known.interfaces_, read_interface);
      reader.items("slice", known.slices_, read_slice);
      reader.table("collectives", [&](RecordReader& sweeps) { sweeps.texts("chips", known.swept_); });
      reader.table("asides", [&](RecordReader& asides) { asides.texts("words", known.asides_); });
      reader.table("unseen", [&](RecordReader& unseen) { unseen.texts("chips", known.unseen_); });
    }));
  }
  return known;
}

const NamedAccelerator* KnownChips::named(std::string_view accelerator, std::string_view table) const {
  for (const NamedAccelerator& known : accelerators_)
    if ((known.table.empty() || known.table == table) && plain_name(known.name) == plain_name(accelerator))
      return &known;
  return nullptr;
}

/// "AMD Instinct MI300X (CDNA3)" is "MI300X".
std::string KnownChips::without_asides(std::string_view name) const {
  std::string text(name);
  for (char& c : text)
    if (c == '(' || c == ')' || c == '-' || c == '_') c = ' ';
  std::string out;
  for (const std::string& word : split(text, ' ')) {
    const auto is_word = [&](const std::string& aside) { return plain_name(aside) == plain_name(word); };
    if (word.empty() || std::any_of(asides_.begin(), asides_.end(), is_word)) continue;
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

std::optional<std::string> KnownChips::find(std::string_view whole, std::string_view table) const {
  if (const NamedAccelerator* known = named(whole, table)) return known->chip;
  const std::string accelerator = without_asides(whole);
  // What is left in brackets says that the part differs in some way.
  if (const std::size_t open = whole.find('('); open != std::string_view::npos)
    if (accelerator != without_asides(whole.substr(0, open))) return std::nullopt;
  for (const std::string_view name : {whole, std::string_view(accelerator)})
    if (const auto known = names_.find(name); known && known->chips == 0) return known->chip;
  const Letters asked(accelerator);
  std::string longest, only;
  std::size_t extended = 0;  // GB200: gb200-nvl72
  for (const std::string& id : catalogue_->chip_ids()) {
    const Letters known(id);
    if (asked.begins_with(known) && id.size() > longest.size()) longest = id;
    if (!known.begins_with(asked)) continue;
    only = id;
    ++extended;
  }
  if (!longest.empty()) return longest;
  return extended == 1 ? std::optional(only) : std::nullopt;
}

std::size_t KnownChips::fold(std::string_view accelerator, std::string_view of, std::string_view split) const {
  const std::optional<std::string> id = find(accelerator);
  if (id && std::find(unseen_.begin(), unseen_.end(), *id) != unseen_.end()) return held_out;
  return fold_of(of, split);
}

std::optional<BytesPerSecond> KnownChips::node_bandwidth(std::string_view interconnect) const {
  // Of a list of several networks, none is said to be the one between the chips.
  if (contains(interconnect, "|")) return std::nullopt;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = interconnect.find('x'); at != std::string_view::npos; at = interconnect.find('x', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && digit(interconnect[begin - 1])) --begin;
    if (begin == at || (begin > 0 && interconnect[begin - 1] != ' ')) continue;
    const double count = parse_number(interconnect.substr(begin, at - begin)).value_or(0.0);
    const std::string_view rest = trim(interconnect.substr(at + 1));
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (end > 0 && end < rest.size() && rest[end] == 'G')
      return count * parse_number(rest.substr(0, end)).value_or(0.0) * 1_Gbit_per_s;
    for (const NamedInterface& known : interfaces_)
      if (rest.starts_with(known.name) || rest.starts_with("IB " + known.name)) return count * known.bandwidth;
  }
  return std::nullopt;
}

NamedNetwork KnownChips::network(std::string_view text, double chips) const {
  NamedNetwork out;
  for (const NamedNetwork& known : networks_) {
    if (!contains(text, known.text)) continue;
    out.reached = std::min(out.reached, known.reached);
    if (known.bandwidth > BytesPerSecond(0)) out.bandwidth = known.bandwidth;
  }
  if (const auto whole = node_bandwidth(text); whole && chips > 0.0 && out.bandwidth == BytesPerSecond(0))
    out.bandwidth = *whole / chips;
  return out;
}

const MeasuredSlice* KnownChips::slice(std::string_view chip) const {
  for (const MeasuredSlice& known : slices_)
    if (known.chip == chip) return &known;
  return nullptr;
}

bool KnownChips::has_sweeps(std::string_view chip) const {
  return std::find(swept_.begin(), swept_.end(), chip) != swept_.end();
}

const hardware::Chip* KnownChips::chip(const std::string& id) {
  const auto [known, fresh] = read_.try_emplace(id);
  if (fresh)
    if (auto read = catalogue_->chip(id, "chip")) known->second = std::move(*read);
  return known->second ? &*known->second : nullptr;
}

const numbers::Family* KnownChips::family(const std::string& id) {
  const hardware::Chip* known = chip(id);
  return known ? numbers::family_of(families_, *known) : nullptr;
}

bool KnownChips::compiled_whole(const std::string& id) {
  const numbers::Family* known = family(id);
  return known && known->compiled_whole;
}

}  // namespace assay::validate
