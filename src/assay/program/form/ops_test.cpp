#include "assay/program/form/ops.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace assay::program {
namespace {

TEST(Ops, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const OpFacts& row : ops::table) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

TEST(Ops, AGradientIsNamedAfterItsOperationAndPricedAlike) {
  for (const OpFacts& row : ops::table) {
    if (!row.gradient.op || *row.gradient.op == row.op || row.op == Op::loss_sums) continue;
    const OpFacts& gradient = facts(*row.gradient.op);
    EXPECT_EQ(gradient.name, std::string(row.name) + " grad");
    EXPECT_EQ(gradient.cost, row.cost) << row.name;
    EXPECT_EQ(gradient.gradient.rule, GradientRule::none) << row.name;
  }
}

TEST(Ops, APerInputGradientNamesItsOperation) {
  for (const OpFacts& row : ops::table)
    if (row.gradient.rule == GradientRule::per_input) EXPECT_TRUE(row.gradient.op.has_value()) << row.name;
}

TEST(Ops, MovementsAreFreeOrCollectives) {
  for (const OpFacts& row : ops::table) {
    if (row.op == Op::view || row.op == Op::view_grad) continue;  // only rename
    EXPECT_EQ(is_movement(row.op), row.cost == CostClass::free || row.cost == CostClass::collective) << row.name;
  }
}

}  // namespace
}  // namespace assay::program
