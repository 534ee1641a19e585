#include "assay/ask/verbs/validate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/base/text.h"
#include "assay/base/toml.h"
#include "assay/lab/validate/validation.h"

namespace assay::verbs::validate_verb {
namespace {

constexpr const char* neutral_file = "fits/neutral.toml";
constexpr std::string_view calibrations = "calibration/";

/// The one file of the catalogue.
Result<std::pair<std::string_view, Toml>> parsed(const hardware::Catalogue& catalogue, const std::string& path) {
  for (const auto& [name, text] : catalogue.files(path)) {
    if (name != path) continue;
    ASSAY_TRY(read, parse_toml(text, path));
    return std::pair(text, std::move(read));
  }
  return fail(path, "the catalogue has no such file", "", Error::Kind::missing);
}

/// Where a value is written, from its first to behind its last character; its place is that of its key.
std::pair<std::size_t, std::size_t> written_at(std::string_view text, const Toml& value) {
  std::size_t at = 0;
  for (int line = 1; line < value.line; ++line) at = text.find('\n', at) + 1;
  at = text.find_first_not_of(' ', text.find('=', at + static_cast<std::size_t>(value.column - 1)) + 1);
  const std::size_t end = value.kind == Toml::Kind::text ? text.find('"', at + 1) + 1 : text.find_first_of(",} \n", at);
  return {at, std::min(end, text.size())};
}

bool is_number(const Toml& value) {
  if (value.kind == Toml::Kind::text) return parse_quantity(value.text, "").has_value();
  return value.kind == Toml::Kind::number || value.kind == Toml::Kind::integer;
}

class NumberLister {
 public:
  NumberLister(std::string_view text, const std::map<std::string, std::string>& neutral)
      : text_(text), neutral_(neutral) {}

  void add(const std::string& name, const Toml& value) {
    if (value.kind == Toml::Kind::table) {
      for (const auto& [key, inner] : value.members)
        if (key != "source") add(name + "." + key, inner);
      return;
    }
    if (!is_number(value)) return;
    const auto [first, end] = written_at(text_, value);
    const bool has_unit = value.kind == Toml::Kind::text;
    FittedNumber number{name, has_unit ? value.text : std::string(text_.substr(first, end - first)), "1", {}};
    if (has_unit) number.without = "0" + value.text.substr(std::min(value.text.find(' '), value.text.size()));
    if (const auto known = neutral_.find(name); known != neutral_.end()) number.without = known->second;
    const std::string in_quotes = has_unit ? "\"" + number.without + "\"" : number.without;
    number.text = std::string(text_.substr(0, first)) + in_quotes + std::string(text_.substr(end));
    if (number.value != number.without) numbers.push_back(std::move(number));
  }

  std::vector<FittedNumber> numbers;

 private:
  std::string_view text_;
  const std::map<std::string, std::string>& neutral_;
};

/// The error of the rows that fits use, groups alike.
Result<double> mean_of_groups(const validate::ValidationSet& set, const Request& request, const Context& context) {
  const validate::ValidationInput input(context.catalogue, request.value("data"), true, asking(context));
  ASSAY_TRY(result, set.run(input));
  std::vector<validate::ValidationCase> cases;
  for (validate::ValidationCase& one : result.cases)
    if (one.fitted) cases.push_back(std::move(one));
  for (validate::ValidationCase& one : cases) one.fitted = false;  // what is shown is summarised
  if (cases.empty()) return fail("--without-each", "no row of the set is used in a fit", "name another set");
  return validate::summarise_groups(cases).back().mape;
}

}  // namespace

Result<std::vector<FittedNumber>> fitted_numbers(const hardware::Catalogue& catalogue, const std::string& path) {
  ASSAY_TRY(neutral, parsed(catalogue, neutral_file));
  std::map<std::string, std::string> without;
  const std::string file_name = path.substr(path.rfind('/') + 1, path.rfind('.') - path.rfind('/') - 1);
  if (const Toml* of_file = neutral.second.find(path.starts_with(calibrations) ? "calibration" : file_name))
    for (const auto& [name, value] : of_file->members) without[name] = value.text;
  ASSAY_TRY(file, parsed(catalogue, path));
  NumberLister lister(file.first, without);
  for (const auto& [section, content] : file.second.members)
    if (section != "source" && section != "spread" && !section.ends_with("interval")) lister.add(section, content);
  return std::move(lister.numbers);
}

namespace {

/// A number of one name in all files that have it, and these files without its effect.
struct LeftOutNumber {
  std::string name, value, without;
  std::vector<std::pair<std::string, std::string>> files;
};

/// What a set shows: numbers of whole steps, of collectives, or of other kernels.
Result<std::vector<LeftOutNumber>> numbers_of(const hardware::Catalogue& catalogue, const std::string& set) {
  const bool trains = set.find("train") != std::string::npos, serves = set.find("infer") != std::string::npos;
  const std::string path(trains ? "steps/training.toml" : serves ? "steps/serving.toml" : calibrations);
  std::vector<LeftOutNumber> out;
  for (const auto& [file, text] : catalogue.files(path)) {
    ASSAY_TRY(numbers, fitted_numbers(catalogue, file));
    for (FittedNumber& number : numbers) {
      if (path == calibrations && number.name.starts_with("collective.") != (set == "collectives")) continue;
      auto known = std::find_if(out.begin(), out.end(), [&](const auto& one) { return one.name == number.name; });
      if (known == out.end()) known = out.insert(out.end(), {number.name, "", number.without, {}});
      known->value += (known->value.empty() ? "" : ", ") + number.value;
      known->files.emplace_back(file, std::move(number.text));
    }
  }
  return out;
}

}  // namespace

Result<report::Response> answer_without_each(const Request& request, const Context& context) {
  const std::string name = request.arguments().empty() ? "kernels" : request.arguments().front();
  ASSAY_TRY(set, validate::validation_set(name, "validate"));
  ASSAY_TRY(numbers, numbers_of(context.catalogue, name));
  ASSAY_TRY(with_all, mean_of_groups(*set, request, context));
  std::vector<std::pair<double, report::Members>> rows;
  for (const LeftOutNumber& number : numbers) {
    hardware::Catalogue changed = context.catalogue;
    for (const auto& [path, text] : number.files) changed.put(path, text);
    const Context without{changed, context.surroundings, context.within};
    ASSAY_TRY(error, mean_of_groups(*set, request, without));
    rows.emplace_back(error, report::Members{{"number", number.name},
                                             {"value", number.value},
                                             {"without", number.without},
                                             {"mean_of_groups", error},
                                             {"change", error - with_all}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  report::Items items;
  for (auto& [error, row] : rows) items.emplace_back(std::move(row));
  report::Response response;
  response.headline = fmt::format("{}: mean error of groups {:.2f} %, and without each of {} numbers", name,
                                  100.0 * with_all, rows.size());
  response.results.emplace_back("mean_of_groups", with_all);
  response.results.emplace_back("without_each", std::move(items));
  response.table_key = "without_each";
  response.notes.emplace_back("all other numbers stay as they are: a fit without the number would move them");
  return response;
}

}  // namespace assay::verbs::validate_verb
