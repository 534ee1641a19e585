#include "assay/ask/verbs/design/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/model_shape.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"

namespace assay::verbs::design_verb {
namespace {

struct KnownField {
  ShapeField field;
  std::vector<std::string> keys;
};

Result<const std::vector<KnownField>*> known_fields(const hardware::Catalogue& catalogue) {
  return catalogue.kept<std::vector<KnownField>>("fields of shapes", [&]() -> Result<std::vector<KnownField>> {
    std::vector<KnownField> out;
    for (const auto& [path, text] : catalogue.files("technology/shapes.toml")) {
      RecordFile file{.name = path, .keys_hint = "docs/design.md describes the keys", .sourced_tables = false};
      ASSAY_CHECK(read_record(text, file, [&](RecordReader& in) {
        in.each_table("field", [&](const std::string& name, RecordReader& one) {
          KnownField& known = out.emplace_back();
          known.field.name = name;
          one.texts("keys", known.keys);
          one.text("plan", known.field.plan);
          double step = 1.0;
          one.number("step", step);
          known.field.step = static_cast<std::int64_t>(step);
          one.flag("usual", known.field.usual);
          one.flag("scales", known.field.scales);
        });
      }));
    }
    return out;
  });
}

std::optional<std::int64_t> value_of(const launch::Settings& shape, const std::string& plan) {
  const auto found = shape.find(plan);
  if (found == shape.end()) return std::nullopt;
  const auto number = parse_number(found->second);
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

std::string written(const std::string& model, const std::string& key, std::int64_t value) {
  return fmt::format(R"({{"base": "{}", "{}": {}}})", model, key, value);
}

}  // namespace

Result<ShapeSpace> ShapeSpace::make(const std::string& model, const std::vector<std::string>& varied,
                                    std::int64_t sequence, const hardware::Catalogue& catalogue) {
  ShapeSpace out(catalogue);
  out.sequence_ = sequence;
  ASSAY_TRY(base, model::catalogue_model(model, catalogue, "--model-shape"));
  out.model_ = base.imported.model.id;
  ASSAY_TRY(known, known_fields(catalogue));
  const launch::Settings shape = model_shape(base.imported.model);
  std::vector<std::string> names;
  for (const KnownField& one : *known) {
    const auto value = value_of(shape, one.field.plan);
    if (!value) continue;
    // The key of this configuration is the one whose value shows in the model.
    for (const std::string& key : one.keys) {
      const std::int64_t other = *value + (one.field.step > 1 ? one.field.step : *value);
      const auto changed = model::load_model(written(out.model_, key, other), catalogue, "--model-shape");
      if (!changed || value_of(model_shape(changed->model), one.field.plan) != other) continue;
      ShapeField& field = out.fields_.emplace_back(one.field);
      field.key = key;
      field.base = *value;
      names.push_back(field.name);
      break;
    }
  }
  for (const std::string& name : varied)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return fail("--fields", fmt::format("{} has no {} that its configuration states", out.model_, in_quotes(name)),
                  "one of " + join(names, ", "));
  if (!varied.empty())
    for (ShapeField& field : out.fields_)
      field.usual = std::find(varied.begin(), varied.end(), field.name) != varied.end();
  return out;
}

Shape ShapeSpace::base() const {
  Shape out;
  for (const ShapeField& field : fields_) out.push_back(field.base);
  return out;
}

std::string ShapeSpace::model_text(const Shape& shape) const {
  std::string out = fmt::format(R"({{"base": "{}")", model_);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != fields_[i].base) out += fmt::format(R"(, "{}": {})", fields_[i].key, shape[i]);
  // Heads keep their size where the configuration derives it from the width.
  const auto is = [&](const char* name) {
    return std::find_if(fields_.begin(), fields_.end(), [&](const ShapeField& field) { return field.name == name; });
  };
  if (const auto size = is("head-size"); size != fields_.end())
    if (shape[static_cast<std::size_t>(size - fields_.begin())] == size->base)
      out += fmt::format(R"(, "{}": {})", size->key, size->base);
  return out + "}";
}

std::string ShapeSpace::text(const Shape& shape) const {
  std::string out;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != fields_[i].base)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", fields_[i].name, human_count(shape[i]));
  return out.empty() ? "as it is" : out;
}

std::optional<Counted> ShapeSpace::count(const Shape& shape) const {
  for (const std::int64_t value : shape)
    if (value < 1) return std::nullopt;
  const auto model = model::load_model(model_text(shape), *catalogue_, "--model-shape");
  if (!model) return std::nullopt;
  Counted out{model::parameter_counts(model->model), {}, model::most_expert_load(model->model)};
  out.training_flops = model::token_flops(Plain{}, model->model, sequence_).train;
  return out;
}

Shape ShapeSpace::scaled(double factor) const {
  Shape out;
  for (const ShapeField& field : fields_) {
    const auto step = static_cast<double>(field.step);
    out.push_back(field.scales ? std::max<std::int64_t>(
                                     field.step, field.step * static_cast<std::int64_t>(std::llround(
                                                                  factor * static_cast<double>(field.base) / step)))
                               : field.base);
  }
  // As many queries for each head of keys as before, or nearly so.
  const auto index = [&](const char* name) {
    const auto found =
        std::find_if(fields_.begin(), fields_.end(), [&](const ShapeField& f) { return f.name == name; });
    return found == fields_.end() ? fields_.size() : static_cast<std::size_t>(found - fields_.begin());
  };
  const std::size_t heads = index("heads"), kv = index("kv-heads");
  if (heads < out.size() && kv < out.size()) {
    const std::int64_t group = std::max<std::int64_t>(1, std::min(out[heads], out[kv]));
    out[heads] = std::max<std::int64_t>(group, (out[heads] + group / 2) / group * group);
    out[kv] = group;
  }
  return out;
}

}  // namespace assay::verbs::design_verb
