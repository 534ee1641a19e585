#include "assay/hardware/prices.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"
#include "assay/testing/catalogue.h"

namespace assay::hardware {
namespace {

using testing::catalogue;

double hourly(const Price& price) { return (price.value.value * 1_h).value(); }

PriceChoice own(std::string_view text) {
  PriceChoice choice;
  const auto added = add_own_price(choice, text, catalogue(), "--price");
  if (!added) throw std::runtime_error(added.error().what);
  return choice;
}

TEST(Prices, AUsersOwnCounts) {
  for (const char* text : {"h100-sxm=2.50", "H100=2.50", "h100-sxm=$2.50", "h100-sxm = 2.50 USD/h"}) {
    Catalogue priced = catalogue();
    priced.choose_prices(own(text));
    const Chip chip = *priced.chip("h100-sxm", "test");
    EXPECT_NEAR(hourly(*newest_price(chip)), 2.5, 1e-12) << text;
    EXPECT_EQ(newest_price(chip)->value.source, "--price");
  }
}

TEST(Prices, AProviderIsFoundByTheStartOfItsName) {
  EXPECT_EQ(*find_provider("google", catalogue(), "--prices"), "Google Cloud");
  EXPECT_EQ(*find_provider("aws", catalogue(), "--prices"), "AWS");
  const auto unknown = find_provider("lamda", catalogue(), "--prices");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("did you mean Lambda?"), std::string::npos);
  EXPECT_NE(unknown.error().hint.find("CoreWeave"), std::string::npos);
}

TEST(Prices, OnlyTheProvidersCount) {
  Catalogue priced = catalogue();
  priced.choose_prices({{}, "CoreWeave"});
  EXPECT_EQ(newest_price(*priced.chip("h100-sxm", "test"))->provider, "CoreWeave");
  EXPECT_EQ(newest_price(*priced.chip("tpu-v5p", "test")), nullptr);
}

TEST(Prices, WrongOnesAreRefused) {
  PriceChoice choice;
  for (const char* text : {"h100-sxm", "=3", "h100-sxm=", "h100-sxm=0", "h100-sxm=-1", "h100-sxm=2 GB", "h100-sxm=1e9",
                           "h999=2", "p5.48xlarge=55"})
    EXPECT_FALSE(add_own_price(choice, text, catalogue(), "--price")) << text;
  EXPECT_TRUE(choice.own.empty());
  EXPECT_TRUE(add_own_price(choice, "h100-sxm=2", catalogue(), "--price"));
  EXPECT_FALSE(add_own_price(choice, "H100=3", catalogue(), "--price"));
}

TEST(Prices, EachHasADateAndASource) {
  for (const std::string& id : catalogue().chip_ids()) {
    const Chip chip = *catalogue().chip(id, "test");
    for (const Price& price : chip.prices) {
      EXPECT_EQ(price.date.size(), 10U) << id;
      EXPECT_NE(price_source(chip, price), price.value.source) << id << ": the title of its source";
    }
  }
}

}  // namespace
}  // namespace assay::hardware
