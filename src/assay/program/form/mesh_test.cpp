#include "assay/program/form/mesh.h"

#include <gtest/gtest.h>

namespace assay::program {
namespace {

TEST(Mesh, IsReadAndPrintedInOrder) {
  const auto mesh = parse_mesh("X=4, Y=2", "--mesh");
  ASSERT_TRUE(mesh);
  EXPECT_EQ(mesh->devices(), 8);
  EXPECT_EQ(mesh->find("Y"), 1);
  EXPECT_FALSE(mesh->find("Z"));
  EXPECT_EQ(mesh_text(*mesh), "X=4,Y=2");
}

TEST(Mesh, AnAxisOfARoleHasItsName) {
  const Mesh mesh{{axis_of(Role::fsdp, 4), axis_of(Role::tensor, 2)}};
  EXPECT_EQ(mesh_text(mesh), "fsdp=4,tp=2");
  EXPECT_EQ(mesh.find(name(Role::tensor)), 1);
  EXPECT_EQ(mesh.axes[1].role, Role::tensor);
  EXPECT_EQ(parse_mesh("tp=2", "")->axes[0].role, std::nullopt);  // a person's axis has no role
}

TEST(Mesh, BadTextNamesTheRule) {
  for (const char* text : {"", "X", "X=", "=4", "X=0", "X=-1", "X=4,X=2", "1=4", "X=1e9", "X=4,,Y=2"}) {
    const auto mesh = parse_mesh(text, "--mesh");
    ASSERT_FALSE(mesh) << text;
    EXPECT_EQ(mesh.error().where, "--mesh");
    EXPECT_FALSE(mesh.error().what.empty());
  }
}

TEST(Mesh, HasAtMostEightAxes) {
  EXPECT_TRUE(parse_mesh("A=2,B=2,C=2,D=2,E=2,F=2,G=2,H=2", ""));
  EXPECT_FALSE(parse_mesh("A=2,B=2,C=2,D=2,E=2,F=2,G=2,H=2,I=2", ""));
}

}  // namespace
}  // namespace assay::program
