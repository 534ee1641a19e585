#include "assay/schedule/step_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "assay/base/text.h"
#include "assay/base/toml.h"

namespace assay {
namespace {

constexpr std::string_view way_names[] = {"fused", "compiled", "eager", "tpu"};

/// Every number with its table and key, once for reading and writing.
template <class C, class V>
void visit_steps(C& c, V& v) {
  v.table("products");
  v.numbers("slowdown", step_family_names, c.product);
  v.number("experts", c.expert_product);
  v.table("attention");
  v.numbers("slowdown", step_family_names, c.attention);
  v.table("pointwise");
  v.numbers("traffic", way_names, c.pointwise);
  v.numbers("loss", way_names, c.loss);
  v.number("experts", c.expert_traffic);
  v.table("collectives");
  v.numbers("tensor_overlapped", step_family_names, c.tensor_overlapped);
  v.number("experts", c.expert_waited);
  v.number("contention", c.contention);
  v.number("gradients", c.gradients_waited);
  v.table("step");
  v.number("straggler", c.straggler);
  v.time("fixed", c.fixed);
  v.times("launch", way_names, c.launch);
  v.table("memory");
  v.numbers("activations", way_names, c.activations);
  v.numbers("logits", way_names, c.logits);
}

class Reader {
 public:
  Reader(const Toml& root, std::string_view file) : root_(root), file_(file) {}

  void table(std::string_view name) {
    name_ = name;
    table_ = root_.find(name);
    if (!table_ || table_->kind != Toml::Kind::table) {
      table_ = nullptr;
      return fault(root_, "", "this table is required");
    }
    const Toml *source = table_->find("source"), *sources = root_.find("source");
    if (!source || source->kind != Toml::Kind::text || !sources || !sources->find(source->text))
      fault(*table_, "source", "numbers name a [source.KEY] table of the file");
  }
  void number(std::string_view key, double& value) { read_number(table_, key, value); }
  void time(std::string_view key, Seconds& value) { read_time(table_, key, value); }
  template <std::size_t N, class Names>
  void numbers(std::string_view key, const Names& names, std::array<double, N>& values) {
    const Toml* inner = table_ ? table_->find(key) : nullptr;
    for (std::size_t i = 0; i < N; ++i) read_number(inner, names[i], values[i]);
  }
  template <std::size_t N, class Names>
  void times(std::string_view key, const Names& names, std::array<Seconds, N>& values) {
    const Toml* inner = table_ ? table_->find(key) : nullptr;
    for (std::size_t i = 0; i < N; ++i) read_time(inner, names[i], values[i]);
  }
  const std::optional<Error>& first_fault() const { return fault_; }

 private:
  void read_number(const Toml* table, std::string_view key, double& value) {
    const Toml* node = table ? table->find(key) : nullptr;
    if (!node || (node->kind != Toml::Kind::number && node->kind != Toml::Kind::integer))
      return fault(node ? *node : root_, key, "a number is wanted");
    if (!(node->number >= 0.0 && node->number <= 100.0)) return fault(*node, key, "a number from 0 to 100 is wanted");
    value = node->number;
  }
  void read_time(const Toml* table, std::string_view key, Seconds& value) {
    const Toml* node = table ? table->find(key) : nullptr;
    if (!node || node->kind != Toml::Kind::text)
      return fault(node ? *node : root_, key, "a time with its unit is wanted");
    const auto parsed = parse_quantity(node->text, Seconds::dim, "");
    if (!parsed || !(parsed->value >= 0.0 && parsed->value <= 10.0))
      return fault(*node, key, "a time from 0 to 10 s is wanted");
    value = Seconds(parsed->value);
  }
  void fault(const Toml& node, std::string_view key, std::string what) {
    if (fault_) return;
    fault_ = Error{Error::Kind::input,
                   fmt::format("{}:{}:{}: {}.{}", file_, node.line, node.column, name_, key),
                   std::move(what),
                   "docs/validation.md lists the keys",
                   {}};
  }

  const Toml& root_;
  std::string file_, name_;
  const Toml* table_ = nullptr;
  std::optional<Error> fault_;
};

class Writer {
 public:
  explicit Writer(std::string_view source) : source_(source) {}

  void table(std::string_view name) { text_ += fmt::format("\n[{}]\nsource = \"{}\"\n", name, source_); }
  void number(std::string_view key, double value) { text_ += fmt::format("{} = {:.4g}\n", key, value); }
  void time(std::string_view key, Seconds value) { text_ += fmt::format("{} = {}\n", key, in_text(value)); }
  template <std::size_t N, class Names>
  void numbers(std::string_view key, const Names& names, const std::array<double, N>& values) {
    list(key, names, N, [&](std::size_t i) { return fmt::format("{:.4g}", values[i]); });
  }
  template <std::size_t N, class Names>
  void times(std::string_view key, const Names& names, const std::array<Seconds, N>& values) {
    list(key, names, N, [&](std::size_t i) { return in_text(values[i]); });
  }
  std::string take() { return std::move(text_); }

 private:
  static std::string in_text(Seconds value) { return fmt::format("\"{:.4g} us\"", value.in(1_us)); }
  template <class Names, class F>
  void list(std::string_view key, const Names& names, std::size_t n, F value) {
    text_ += fmt::format("{} = {{ ", key);
    for (std::size_t i = 0; i < n; ++i) text_ += fmt::format("{}{} = {}", i ? ", " : "", names[i], value(i));
    text_ += " }\n";
  }

  std::string source_, text_;
};

}  // namespace

StepFamily step_family(const Chip& chip) {
  const std::string& name = chip.architecture;
  if (name == "Ampere") return StepFamily::ampere;
  if (name == "Hopper") return StepFamily::hopper;
  if (name.starts_with("Blackwell")) return StepFamily::blackwell;
  if (name.starts_with("TPU") || name == "Trillium" || name == "Ironwood") return StepFamily::tpu;
  return StepFamily::other;
}

StepEffects StepCalibration::effects(const Chip& chip, const StepSoftware& software) const {
  const auto family = static_cast<std::size_t>(step_family(chip));
  const std::size_t way = step_family(chip) == StepFamily::tpu ? ways - 1 : static_cast<std::size_t>(software.fusion);
  StepEffects out;
  out.product = product[family], out.attention = attention[family];
  out.pointwise = pointwise[way], out.loss = loss[way], out.launch = software.captured ? Seconds(0) : launch[way];
  out.expert_product = expert_product, out.expert_traffic = expert_traffic, out.expert_waited = expert_waited;
  out.tensor_waited = software.tensor_overlap ? tensor_overlapped[family] : 1.0;
  out.contention = contention, out.gradients_waited = gradients_waited;
  out.activations = activations[way], out.logits = logits[way];
  out.frees_gradients = software.fusion != Fusion::fused;
  out.straggler = straggler, out.fixed = fixed;
  return out;
}

Result<StepCalibration> read_steps(std::string_view document, std::string_view file) {
  ASSAY_TRY(root, parse_toml(document, file));
  StepCalibration steps;
  Reader reader(root, file);
  visit_steps(steps, reader);
  if (reader.first_fault()) return tl::unexpected<Error>(*reader.first_fault());
  return steps;
}

Result<StepCalibration> steps_of(const Catalogue& catalogue) {
  for (const auto& [path, text] : catalogue.files("steps/training.toml")) return read_steps(text, path);
  return StepCalibration{};
}

std::string steps_text(const StepCalibration& steps, std::string_view source) {
  Writer writer(source);
  visit_steps(steps, writer);
  return writer.take();
}

}  // namespace assay
