#include "assay/predict/numbers/rows.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::numbers {
namespace {

/// The lines of docs/calibration.md that describe the numbers of a list, up to the columns of what each is worth.
class DocumentedRows {
 public:
  template <class F>
  void table(std::string_view name, F visit) {
    table_ = name;
    visit(*this);
  }
  template <class T>
  void number(std::string_view key, const Given<T>&, std::string_view meaning) {
    add<T>(key, "", meaning);
  }
  template <class T, std::size_t n>
  void by_name(std::string_view key, Names names, const std::array<Given<T>, n>&, std::string_view meaning) {
    EXPECT_EQ(names.size(), n) << key;
    add<T>(key, ", by software", meaning);
  }
  template <class T>
  void by_family(std::string_view key, const std::vector<Given<T>>&, std::string_view meaning) {
    add<T>(key, ", by family", meaning);
  }
  std::vector<std::string> lines;

 private:
  template <class T>
  void add(std::string_view key, std::string_view by, std::string_view meaning) {
    const char* unit = std::is_same_v<T, double> ? "number" : std::is_same_v<T, Seconds> ? "us" : "GiB";
    lines.push_back(fmt::format("| `{}.{}` | {}{} | {} |", table_, key, unit, by, meaning));
  }
  std::string_view table_;
};

template <class C, class Visit>
void expect_documented(const std::string& documents, Visit visit) {
  const C numbers;
  DocumentedRows rows;
  visit(numbers, rows);
  EXPECT_GT(rows.lines.size(), 10u);
  for (const std::string& line : rows.lines)
    EXPECT_NE(documents.find("\n" + line), std::string::npos) << "docs/calibration.md lacks\n" << line;
}

TEST(Rows, DocumentsDescribeEveryNumberAsItsRowDoes) {
  std::ifstream file("docs/calibration.md");
  if (!file) GTEST_SKIP() << "docs are not here";
  std::stringstream text;
  text << file.rdbuf();
  expect_documented<StepCalibration>(text.str(), [](auto& numbers, auto& rows) { visit_training(numbers, rows); });
  expect_documented<ServingCalibration>(text.str(), [](auto& numbers, auto& rows) { visit_serving(numbers, rows); });
}

/// The paths of a list's numbers that all families have in common.
template <class C, class Visit>
std::set<std::string> paths_of(Visit visit) {
  C numbers(*families_of(hardware::Catalogue::builtin()));
  std::set<std::string> paths;
  EachNumber each(numbers, [&](const std::string& path, auto&, std::string_view meaning, const Family* family) {
    EXPECT_FALSE(meaning.empty()) << path;
    if (!family) EXPECT_TRUE(paths.insert(path).second) << path;
  });
  visit(numbers, each);
  return paths;
}

TEST(Rows, EveryPathIsThatOfOneNumber) {
  const auto training = paths_of<StepCalibration>([](auto& numbers, auto& each) { visit_training(numbers, each); });
  EXPECT_TRUE(training.contains("step.launch.fused"));
  EXPECT_FALSE(training.contains("step.launch.xla"));
  const auto serving = paths_of<ServingCalibration>([](auto& numbers, auto& each) { visit_serving(numbers, each); });
  EXPECT_TRUE(serving.contains("step.host.python"));
}

TEST(Rows, NumbersOfAFileKnowTheirLines) {
  const StepCalibration steps = *steps_of(hardware::Catalogue::builtin());
  EXPECT_TRUE(steps.straggler.source.starts_with("steps/training.toml:"));
  EXPECT_TRUE(steps.straggler.source.ends_with("(fit)"));
  EXPECT_TRUE(steps.fixed.source.starts_with("steps/kinds.toml:"));
  hardware::Chip chip = *hardware::Catalogue::builtin().chip("h100-sxm", "test");
  EXPECT_TRUE(steps.effects(chip, {}).product.source.starts_with("steps/training.toml:"));
  chip.architecture = "unknown";
  EXPECT_EQ(steps.effects(chip, {}).product.source, "1: no steps were measured on unknown chips");
}

}  // namespace
}  // namespace assay::numbers
