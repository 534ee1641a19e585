#include "assay/ask/verbs/validate/validate.h"

#include <gtest/gtest.h>

#include "assay/base/toml.h"
#include "assay/hardware/calibration.h"

namespace assay::verbs::validate_verb {
namespace {

/// A value of a document by the keys of its name.
const Toml* found(const Toml& document, const std::string& name) {
  const Toml* at = &document;
  for (std::size_t start = 0; at && start <= name.size();) {
    const std::size_t end = std::min(name.find('.', start), name.size());
    at = at->find(name.substr(start, end - start));
    start = end + 1;
  }
  return at;
}

TEST(WithoutEach, ChangesOneNumberAtATime) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  for (const std::string path : {"steps/training.toml", "steps/serving.toml", "calibration/hopper.toml"}) {
    const auto numbers = fitted_numbers(catalogue, path);
    ASSERT_TRUE(numbers) << numbers.error().what;
    EXPECT_GT(numbers->size(), 20u);
    for (const FittedNumber& number : *numbers) {
      const auto changed = parse_toml(number.text, path);
      ASSERT_TRUE(changed) << number.name << ": " << changed.error().what;
      for (const FittedNumber& other : *numbers) {
        const Toml* value = found(*changed, other.name);
        ASSERT_TRUE(value) << other.name;
        const std::string& expected = &other == &number ? number.without : other.value;
        if (value->kind == Toml::Kind::text)
          EXPECT_EQ(value->text, expected) << other.name;
        else
          EXPECT_EQ(value->kind == Toml::Kind::integer ? static_cast<double>(value->integer) : value->number,
                    std::stod(expected))
              << other.name;
      }
    }
  }
}

TEST(WithoutEach, CalibrationsLoadWithoutAnyOfTheirNumbers) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  for (const auto& [path, text] : catalogue.files("calibration/")) {
    const auto numbers = fitted_numbers(catalogue, path);
    ASSERT_TRUE(numbers) << numbers.error().what;
    EXPECT_FALSE(numbers->empty());
    for (const FittedNumber& number : *numbers) {
      const auto read = hardware::read_calibration(number.text, path);
      EXPECT_TRUE(read) << number.name << ": " << read.error().where << ": " << read.error().what;
    }
  }
}

}  // namespace
}  // namespace assay::verbs::validate_verb
