#include "assay/ask/launch/job.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/launch/document.h"
#include "assay/ask/launch/shell_syntax.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::launch {
namespace {

using model::Json;

/// A member by a path with dots; names may hold dots themselves.
const Json* member(const Json& node, std::string_view path) {
  if (const Json* found = node.find(path)) return found;
  const std::size_t dot = path.find('.');
  const Json* inner = dot == std::string_view::npos ? nullptr : node.find(path.substr(0, dot));
  return inner ? member(*inner, path.substr(dot + 1)) : nullptr;
}

/// Walks documents down to containers, with what the parts above them say.
class Walk {
 public:
  Walk(const Jobs& jobs, Containers& out) : jobs_(jobs), out_(out) {}

  void at(const Json& node, Job above, double copies) {
    // Pods of one set are counted by its size, whichever of them starts the program.
    if (std::any_of(jobs_.sets.begin(), jobs_.sets.end(), [&](const std::string& key) { return member(node, key); }))
      above.fields["set"] = exact_number(++sets_);
    for (const Json& item : node.items) at(item, above, copies);
    if (node.kind != Json::Kind::object) return;
    for (const std::string& key : jobs_.copies)
      if (const Json* count = member(node, key))
        if (const auto number = parse_number(scalar_of(*count)); number && *number >= 1.0) copies *= *number;
    for (const auto& [key, field] : jobs_.facts)
      if (const Json* found = member(node, key); found && found->members.empty())
        above.fields[field] = scalar_of(*found);
    for (const std::string& key : jobs_.environment)
      if (const Json* found = node.find(key)) add_variables(*found, above.environment);
    for (const std::string& key : jobs_.resources)
      if (const Json* found = node.find(key))
        if (const auto chips = chips_in(*found)) above.fields["container_chips"] = exact_number(*chips);
    for (const std::string& key : jobs_.files)
      if (const Json* found = node.find(key))
        for (const auto& [name, content] : found->members)
          if (content.kind == Json::Kind::text) out_.files[name] = content.text;
    std::vector<std::string> words;
    for (const std::string& key : jobs_.commands)
      if (const Json* found = node.find(key)) {
        if (found->kind == Json::Kind::text) words.push_back(found->text);
        for (const Json& item : found->items) words.push_back(shell_quoted(scalar_of(item)));
      }
    if (!words.empty()) {
      Job& job = out_.jobs.emplace_back(above);
      job.script = join(words, " ");
      if (const auto chips = job.fields.find("container_chips"); chips != job.fields.end())
        job.fields["chips"] = exact_number(parse_number(chips->second).value_or(1.0) * copies);
    }
    for (const auto& [key, inner] : node.members) at(inner, above, copies);
  }

 private:
  static void add_variables(const Json& node, Variables& out) {
    for (const auto& [name, value] : node.members)
      if (value.members.empty() && value.items.empty()) out[name] = scalar_of(value);
    for (const Json& item : node.items) {
      const Json *name = item.find("name"), *value = item.find("value");
      if (name && value) out[scalar_of(*name)] = scalar_of(*value);
      if (const std::size_t equals = item.text.find('='); equals != std::string::npos)
        out[item.text.substr(0, equals)] = item.text.substr(equals + 1);
    }
  }

  std::optional<double> chips_in(const Json& node) const {
    for (const std::string& key : jobs_.chips)
      if (const Json* found = node.find(key))
        if (const auto number = parse_number(scalar_of(*found))) return number;
    for (const auto& [key, inner] : node.members)
      if (const auto number = chips_in(inner)) return number;
    for (const Json& item : node.items)
      if (const auto number = chips_in(item)) return number;
    return std::nullopt;
  }

  const Jobs& jobs_;
  Containers& out_;
  double sets_ = 0;
};

}  // namespace

Result<const Jobs*> jobs_of(const hardware::Catalogue& catalogue) {
  return catalogue.kept<Jobs>("jobs", [&]() -> Result<Jobs> {
    Jobs out;
    for (const auto& [path, text] : catalogue.files("jobs/")) {
      RecordFile shared{.name = path, .sourced_tables = false};
      ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
        std::string id;
        reader.sources();
        reader.text("id", id);
        reader.check_id(id);
        for (const auto& [key, list] :
             {std::pair{"starters", &out.starters}, std::pair{"script_options", &out.script_options},
              std::pair{"directives", &out.directives}, std::pair{"commands", &out.commands},
              std::pair{"environment", &out.environment}, std::pair{"resources", &out.resources},
              std::pair{"chips", &out.chips}, std::pair{"copies", &out.copies}, std::pair{"files", &out.files},
              std::pair{"sets", &out.sets}})
          if (reader.has(key)) {
            std::string words;
            reader.text(key, words);
            *list = words_of(words);
          }
        reader.pairs("options", out.options);
        reader.pairs("directive_options", out.directive_options);
        reader.pairs("directive_variables", out.directive_variables);
        reader.pairs("facts", out.facts);
      }));
    }
    return out;
  });
}

Job batch_job(const Jobs& jobs, std::string_view script) {
  Job out{std::string(script), {}, {}};
  Pairs said;
  for (const std::string& line : split(script, '\n'))
    for (const std::string& start : jobs.directives) {
      if (!line.starts_with(start + " ")) continue;
      const auto words = shell_list(line.substr(start.size()), start);
      for (std::size_t i = 0; words && i < words->size(); ++i) {
        const std::string& word = (*words)[i];
        const std::size_t equals = word.find('=');
        if (equals != std::string::npos)
          said.emplace_back(word.substr(0, equals), word.substr(equals + 1));
        else if (i + 1 < words->size() && word.starts_with('-'))
          said.emplace_back(word, (*words)[i + 1]);
      }
    }
  for (const auto& [option, field] : jobs.directive_options)
    for (const auto& [name, value] : said) {
      // A kind may stand before the number: gpu:8, gpu:h100:8.
      const auto number = parse_number(value.substr(value.rfind(':') + 1));
      if (name == option && number && *number >= 1.0) out.fields.emplace(field, exact_number(*number));
    }
  for (const auto& [variable, field] : jobs.directive_variables)
    if (const auto found = out.fields.find(field); found != out.fields.end()) out.environment[variable] = found->second;
  return out;
}

Containers containers_in(const Jobs& jobs, const std::vector<Json>& trees) {
  Containers out;
  Walk walk(jobs, out);
  for (const Json& tree : trees) walk.at(tree, {}, 1.0);
  return out;
}

std::vector<std::string> scripts_in(std::string_view text) {
  std::vector<std::string> out;
  bool inside = false, any = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (trim(line).starts_with("```")) {
      inside = !inside;
      any = true;
      if (inside) out.emplace_back();
    } else if (inside) {
      out.back() += std::string(line) + "\n";
    }
  }
  if (!any) out = {std::string(text)};
  return out;
}

}  // namespace assay::launch
