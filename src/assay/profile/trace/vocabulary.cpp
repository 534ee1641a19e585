#include "assay/profile/trace/vocabulary.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::trace {
namespace {

void read_lower_case(RecordReader& reader, std::string_view key, std::vector<std::string>& out) {
  if (!reader.has(key)) return;
  reader.texts(key, out);
  for (std::string& text : out) text = lower_case(text);
}

/// The place of an input, counted from 0; record files count from 1 up.
void read_place(RecordReader& reader, std::string_view key, std::int64_t& place) {
  if (!reader.has(key)) return;
  reader.count(key, place);
  --place;
}

void read_rule(NameRule& out, RecordReader& reader) {
  read_lower_case(reader, "any", out.any);
  read_lower_case(reader, "without", out.without);
  if (reader.has("kind")) reader.text("kind", out.kind);
  if (out.any.empty()) reader.fault("any", "a rule has parts of names");
}

void read_category(Category& out, RecordReader& reader) {
  constexpr std::pair<std::string_view, WorkClass> classes[] = {
      {"computation", WorkClass::computation}, {"communication", WorkClass::communication}, {"copy", WorkClass::copy}};
  reader.text("id", out.id);
  reader.text("name", out.name);
  reader.check_id(out.id);
  reader.word("class", classes, out.work_class);
  reader.count("order", out.order);
  reader.flag("fills", out.fills);
  read_lower_case(reader, "without", out.without);
  reader.flag("optimizer", out.optimizer);
  reader.items("rule", out.rules, read_rule);
}

void read_operation(OperationForm& out, RecordReader& reader) {
  constexpr std::pair<std::string_view, Form> forms[] = {{"product", Form::product},
                                                         {"attention", Form::attention},
                                                         {"attention gradient", Form::attention_gradient},
                                                         {"convolution", Form::convolution},
                                                         {"convolution gradient", Form::convolution_gradient},
                                                         {"element-wise", Form::element_wise}};
  reader.texts("names", out.names);
  reader.word("form", forms, out.form);
  for (const auto& [key, place] :
       std::initializer_list<std::pair<const char*, std::int64_t*>>{{"a", &out.a},
                                                                    {"b", &out.b},
                                                                    {"bias", &out.bias},
                                                                    {"query", &out.query},
                                                                    {"key", &out.key},
                                                                    {"value", &out.value},
                                                                    {"causal", &out.causal},
                                                                    {"stride", &out.stride},
                                                                    {"padding", &out.padding},
                                                                    {"dilation", &out.dilation},
                                                                    {"turned", &out.turned}})
    read_place(reader, key, *place);
  reader.flag("transposed", out.transposed);
  reader.flag("sequence_first", out.sequence_first);
  reader.flag("windows", out.windows);
  if (reader.has("kernel")) reader.text("kernel", out.kernel);
}

void read_mark(Mark& out, RecordReader& reader) {
  constexpr std::pair<std::string_view, MarkRole> roles[] = {{"step", MarkRole::step},
                                                             {"optimizer", MarkRole::optimizer},
                                                             {"recompute", MarkRole::recompute},
                                                             {"backward", MarkRole::backward},
                                                             {"compiled", MarkRole::compiled}};
  reader.word("role", roles, out.role);
  reader.texts("all", out.all);
}

void read_line(DeviceLine& out, RecordReader& reader) {
  constexpr std::pair<std::string_view, LineRole> roles[] = {
      {"work", LineRole::work}, {"nested work", LineRole::nested_work}, {"steps", LineRole::steps}};
  reader.word("role", roles, out.role);
  if (reader.has("names")) reader.texts("names", out.names);
  if (reader.has("prefixes")) reader.texts("prefixes", out.prefixes);
}

void read_step(StepSigns& out, RecordReader& reader) {
  reader.texts("names", out.steps);
  read_lower_case(reader, "signs", out.signs);
  read_lower_case(reader, "also", out.also);
  read_lower_case(reader, "without", out.without);
  reader.flag("exact", out.exact);
}

void read_remedy(RemedyText& out, RecordReader& reader) {
  reader.text("id", out.id);
  reader.text("change", out.change);
  if (reader.has("lines")) reader.text("lines", out.lines);
  if (reader.has("compiled")) reader.text("compiled", out.compiled);
  if (reader.has("set")) reader.texts("set", out.set);
  if (reader.has("leaves")) reader.texts("leaves", out.leaves);
  read_lower_case(reader, "kernels", out.kernels);
  read_lower_case(reader, "without", out.without);
}

void read_group(GroupNames& out, RecordReader& reader) {
  using program::Role;
  constexpr std::pair<std::string_view, Role> roles[] = {{"dp", Role::data},   {"fsdp", Role::fsdp},
                                                         {"ep", Role::expert}, {"cp", Role::context},
                                                         {"tp", Role::tensor}, {"pp", Role::pipeline}};
  reader.word("role", roles, out.role);
  read_lower_case(reader, "names", out.names);
}

void read_profiler(Vocabulary& out, RecordReader& reader) {
  std::string id, name;
  reader.text("id", id);
  reader.text("name", name);
  reader.check_id(id);
  reader.items("operation", out.operations, read_operation);
  reader.items("mark", out.marks, read_mark);
  reader.items("line", out.lines, read_line);
  reader.items("step", out.steps, read_step);
  reader.items("remedy", out.remedies, read_remedy);
  reader.items("group", out.groups, read_group);
  reader.optional_table("host", [&](RecordReader& inner) {
    inner.count("ahead", out.host.ahead);
    inner.number("pause", out.host.pause);
    inner.number("latency", out.host.latency);
    inner.number("between", out.host.between);
  });
  reader.optional_table("update", [&](RecordReader& inner) {
    inner.text("name", out.update.name);
    inner.count("weights", out.update.weights);
  });
  reader.optional_table("clock", [&](RecordReader& inner) { inner.number("settles", out.clock.settles); });
  reader.each_key("devices", [&](const std::string& device, RecordReader& inner) {
    auto& [text, chip] = out.devices.emplace_back(device, "");
    inner.text(text, chip);
  });
  reader.each_key("types", [&](const std::string& type, RecordReader& inner) {
    std::string format;
    inner.text(type, format);
    if (const auto dtype = parse_dtype(format, type))
      out.types.emplace_back(type, *dtype);
    else
      inner.fault(type, dtype.error().what, dtype.error().hint);
  });
}

}  // namespace

bool NameRule::holds(std::string_view name) const { return contains_any(name, any) && !contains_any(name, without); }

Vocabulary::Found Vocabulary::category(std::string_view name) const {
  const std::string lower = lower_case(name);
  for (std::size_t i = 0; i < categories.size(); ++i) {
    if (contains_any(lower, categories[i].without)) continue;
    for (const NameRule& rule : categories[i].rules)
      if (rule.holds(lower)) return {i, rule.kind};
  }
  return {categories.size() - 1, {}};
}

const OperationForm* Vocabulary::operation(std::string_view name) const {
  for (const OperationForm& form : operations)
    if (std::find(form.names.begin(), form.names.end(), name) != form.names.end()) return &form;
  return nullptr;
}

std::optional<MarkRole> Vocabulary::role(std::string_view mark) const {
  for (const Mark& known : marks)
    if (std::all_of(known.all.begin(), known.all.end(), [&](const std::string& part) { return contains(mark, part); }))
      return known.role;
  return std::nullopt;
}

std::optional<LineRole> Vocabulary::line_role(std::string_view line) const {
  for (const DeviceLine& known : lines) {
    const bool starts = std::any_of(known.prefixes.begin(), known.prefixes.end(),
                                    [&](const std::string& prefix) { return line.starts_with(prefix); });
    if (starts || std::find(known.names.begin(), known.names.end(), line) != known.names.end()) return known.role;
  }
  return std::nullopt;
}

std::optional<std::string_view> Vocabulary::chip(std::string_view device) const {
  const std::string wanted = plain_name(device);
  for (const auto& [name, id] : devices)
    if (plain_name(name) == wanted) return id;
  return std::nullopt;
}

std::optional<Dtype> Vocabulary::dtype(std::string_view type) const {
  for (const auto& [name, format] : types)
    if (name == type) return format;
  return std::nullopt;
}

std::size_t Vocabulary::optimizer_category() const {
  const auto found =
      std::find_if(categories.begin(), categories.end(), [](const Category& category) { return category.optimizer; });
  return static_cast<std::size_t>(found - categories.begin());
}

const StepSigns* Vocabulary::step_signs(std::string_view step) const {
  for (const StepSigns& one : steps)
    if (std::find(one.steps.begin(), one.steps.end(), step) != one.steps.end()) return &one;
  return nullptr;
}

const RemedyText* Vocabulary::remedy(std::string_view id) const {
  const auto found =
      std::find_if(remedies.begin(), remedies.end(), [&](const RemedyText& one) { return one.id == id; });
  return found == remedies.end() ? nullptr : &*found;
}

Result<const Vocabulary*> vocabulary_of(const hardware::Catalogue& catalogue) {
  return catalogue.kept<Vocabulary>("trace vocabulary", [&]() -> Result<Vocabulary> {
    Vocabulary out;
    for (const auto& [path, text] : catalogue.files("kernels/")) {
      RecordFile file{.name = path, .sourced_tables = false};
      ASSAY_CHECK(
          read_record(text, file, [&](RecordReader& root) { read_category(out.categories.emplace_back(), root); }));
    }
    for (const auto& [path, text] : catalogue.files("profilers/")) {
      RecordFile file{.name = path, .sourced_tables = false};
      ASSAY_CHECK(read_record(text, file, [&](RecordReader& root) { read_profiler(out, root); }));
    }
    std::stable_sort(out.categories.begin(), out.categories.end(),
                     [](const Category& a, const Category& b) { return a.order < b.order; });
    return out;
  });
}

}  // namespace assay::trace
