#include "assay/schedule/step_effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/base/toml.h"

namespace assay {
namespace {

constexpr std::string_view file = "steps/training.toml";

/// Reads numbers of one table after the other; the first fault stays.
class Reader {
 public:
  explicit Reader(const Toml& root) : root_(root) {}

  void enter(std::string_view table) {
    table_ = root_.find(table);
    name_ = table;
    if (!table_ || table_->kind != Toml::Kind::table) return fault(root_, "", "this table is required");
    const Toml* source = table_->find("source");
    const Toml* sources = root_.find("source");
    if (!source || source->kind != Toml::Kind::text || !sources || !sources->find(source->text))
      fault(*table_, "source", "numbers name a [source.KEY] table of the file");
  }
  double number(std::string_view key) { return number_in(table_, key, ""); }
  /// One of several by key: software or a family; `otherwise` is the key taken where that one is missing.
  double choice(std::string_view key, std::string_view which, std::string_view otherwise) {
    const Toml* inner = table_ ? table_->find(key) : nullptr;
    if (!inner || inner->kind != Toml::Kind::table) return fault(*root_or_table(), key, "a table is wanted"), 0.0;
    return number_in(inner, inner->find(which) ? which : otherwise, key);
  }
  template <class Q>
  Q quantity(std::string_view key) {
    const Toml* node = table_ ? table_->find(key) : nullptr;
    if (!node || node->kind != Toml::Kind::text)
      return fault(node ? *node : *root_or_table(), key, "text with a unit is wanted"), Q(0);
    const auto parsed = parse_quantity(node->text, Q::dim, "");
    if (!parsed || !(parsed->value >= 0.0)) return fault(*node, key, "a quantity from 0 up is wanted"), Q(0);
    return Q(parsed->value);
  }
  template <class Q>
  Q quantity_choice(std::string_view key, std::string_view which, std::string_view otherwise) {
    const Toml* outer = table_;
    table_ = outer ? outer->find(key) : nullptr;
    const Q value = quantity<Q>(table_ && table_->find(which) ? which : otherwise);
    table_ = outer;
    return value;
  }
  const std::optional<Error>& fault() const { return fault_; }

 private:
  const Toml* root_or_table() const { return table_ ? table_ : &root_; }
  double number_in(const Toml* table, std::string_view key, std::string_view above) {
    const Toml* node = table ? table->find(key) : nullptr;
    if (!node || (node->kind != Toml::Kind::number && node->kind != Toml::Kind::integer))
      return fault(node ? *node : *root_or_table(), fmt::format("{}{}{}", above, above.empty() ? "" : ".", key),
                   "a number is wanted"),
             0.0;
    if (!(node->number >= 0.0 && node->number <= 100.0)) fault(*node, key, "a number from 0 to 100 is wanted");
    return node->number;
  }
  void fault(const Toml& node, std::string_view key, std::string what) {
    if (fault_) return;
    fault_ = Error{Error::Kind::input, fmt::format("{}:{}:{}: {}.{}", file, node.line, node.column, name_, key),
                   std::move(what), "docs/validation.md lists the keys", {}};
  }

  const Toml& root_;
  const Toml* table_ = nullptr;
  std::string name_;
  std::optional<Error> fault_;
};

}  // namespace

Result<StepEffects> step_effects(const Chip& chip, const StepSoftware& software, const Catalogue& catalogue) {
  StepEffects effects;
  for (const auto& [path, text] : catalogue.files(file)) {
    ASSAY_TRY(root, parse_toml(text, path));
    const std::string_view fusion = fusion_names[static_cast<std::size_t>(software.fusion)];
    // Families are written in lower case and without spaces: a key of its own for each architecture.
    std::string family = chip.architecture;
    std::transform(family.begin(), family.end(), family.begin(),
                   [](char c) { return c == ' ' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    if (family.starts_with("tpu") || family == "trillium" || family == "ironwood") family = "tpu";
    if (family.starts_with("blackwell")) family = "blackwell";
    Reader in(root);
    in.enter("products");
    effects.product = in.choice("slowdown", family, "other");
    effects.expert_product = in.number("experts");
    in.enter("attention");
    effects.attention = in.choice("slowdown", family, "other");
    in.enter("pointwise");
    effects.pointwise = in.choice("traffic", family == "tpu" ? "tpu" : fusion, "fused");
    effects.loss = in.choice("loss", family == "tpu" ? "tpu" : fusion, "fused");
    effects.expert_traffic = in.number("experts");
    in.enter("collectives");
    effects.tensor_waited = software.tensor_overlap ? in.choice("tensor_overlapped", family, "other") : 1.0;
    effects.expert_waited = in.number("experts");
    effects.contention = in.number("contention");
    effects.gradients_waited = in.number("gradients");
    in.enter("step");
    effects.straggler = in.number("straggler");
    effects.fixed = in.quantity<Seconds>("fixed");
    effects.launch = in.quantity_choice<Seconds>("launch", family == "tpu" ? "tpu" : fusion, "fused");
    in.enter("memory");
    effects.allocator = in.number("allocator");
    effects.context = in.quantity<Bytes>("context");
    if (in.fault()) return tl::unexpected<Error>(*in.fault());
  }
  return effects;
}

}  // namespace assay
