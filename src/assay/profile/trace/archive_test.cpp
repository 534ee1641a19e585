#include "assay/profile/trace/archive.h"
#include "assay/profile/trace/bytes.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace assay::trace {
namespace {

namespace fs = std::filesystem;

/// A folder that goes with the test.
struct Folder {
  fs::path path = fs::temp_directory_path() /
                  ("assay_archive_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
  Folder() { fs::create_directories(path / "inner"); }
  ~Folder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
};

std::string tar_member(const std::string& name, const std::string& bytes, char kind = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char size[12];
  std::snprintf(size, sizeof size, "%011zo", bytes.size());
  header.replace(124, 11, size);
  header[156] = kind;
  header.replace(257, 5, "ustar");
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}
const std::string tar_end(1024, '\0');

TEST(Archive, PatternsHaveStarsAndQuestionMarks) {
  EXPECT_TRUE(fits_pattern("rank12.json.gz", "rank*.json*"));
  EXPECT_TRUE(fits_pattern("rank1.json", "rank?.json"));
  EXPECT_FALSE(fits_pattern("rank12.json", "rank?.json"));
  EXPECT_FALSE(fits_pattern("rank.txt", "rank*.json"));
}

TEST(Archive, FoldersGiveTheProfilesInThem) {
  const Folder folder;
  folder.write("b.json", "{}");
  folder.write("inner/a.json.gz", "x");
  folder.write("notes.txt", "x");
  const auto listed = listed_profiles(folder.path.string(), "FILE");
  ASSERT_TRUE(listed && *listed);
  ASSERT_EQ((*listed)->size(), 2u);
  EXPECT_EQ((**listed)[0].name, "b.json");
  EXPECT_EQ(*part_bytes((**listed)[0]), "{}");
  const auto some = listed_profiles((folder.path / "b*").string(), "FILE");
  ASSERT_TRUE(some && *some);
  EXPECT_EQ((*some)->size(), 1u);
  EXPECT_FALSE(listed_profiles((folder.path / "z*").string(), "FILE"));
  EXPECT_FALSE(*listed_profiles((folder.path / "b.json").string(), "FILE"));  // one file
}

TEST(Archive, TarFilesGiveTheirMembersInPlace) {
  const Folder folder;
  const std::string long_name = "very/" + std::string(120, 'n') + ".json";
  const std::string path = folder.write(
      "all.tar", tar_member("./r/", "", '5') + tar_member("r/rank0.json", "zero") + tar_member("r/README", "no") +
                     tar_member("././@LongLink", long_name + '\0', 'L') + tar_member("very/nnn", "long") + tar_end);
  const auto listed = listed_profiles(path, "FILE");
  ASSERT_TRUE(listed && *listed);
  ASSERT_EQ((*listed)->size(), 2u);
  EXPECT_EQ((**listed)[0].name, "rank0.json");
  EXPECT_EQ(*part_bytes((**listed)[0]), "zero");
  EXPECT_EQ((**listed)[1].name, long_name.substr(5));
  EXPECT_EQ(*part_bytes((**listed)[1]), "long");
}

TEST(Archive, CompressedTarFilesAreInflatedOutsideOfMemory) {
  const Folder folder;
  const std::string whole = tar_member("rank0.json", "zero") + tar_member("rank1.json", "one") + tar_end;
  const std::string path = (folder.path / "all.tar.gz").string();
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, whole.data(), static_cast<unsigned>(whole.size()));
  gzclose(file);
  const auto listed = listed_profiles(path, "FILE");
  ASSERT_TRUE(listed && *listed);
  ASSERT_EQ((*listed)->size(), 2u);
  EXPECT_EQ((**listed)[1].name, "rank1.json");
  EXPECT_EQ(*part_bytes((**listed)[1]), "one");
  folder.write("cut.tar.gz", std::string(*file_bytes(path, "FILE")).substr(0, 40));
  EXPECT_FALSE(listed_profiles((folder.path / "cut.tar.gz").string(), "FILE"));
}

TEST(Archive, TarFilesThatWereCutOffAreRefusedWithThePlace) {
  const Folder folder;
  const std::string whole = tar_member("rank0.json", std::string(600, 'x')) + tar_member("rank1.json", "one") + tar_end;
  for (const std::size_t size : {std::size_t{700}, std::size_t{1536 + 512 + 512}}) {
    const auto cut = listed_profiles(folder.write("cut.tar", whole.substr(0, size)), "FILE");
    ASSERT_FALSE(cut);
    EXPECT_NE(cut.error().where.find("byte"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::trace
