#include "assay/ask/launch/shell.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::launch {
namespace {

using Words = std::vector<std::string>;

RC_GTEST_PROP(Shell, QuotedWordsAreReadBackAsTheyAre, (const std::string& word)) {
  RC_PRE(word.find('\0') == std::string::npos);
  const auto script = read_shell("run " + shell_quoted(word) + " end", "test");
  RC_ASSERT(script.has_value());
  RC_ASSERT(script->commands.size() == std::size_t{1});
  RC_ASSERT(script->commands.front() == (Words{"run", word, "end"}));
}

TEST(Shell, NothingInQuotedWordsIsRun) {
  EXPECT_EQ(shell_quoted("llama-3-8b"), "llama-3-8b");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("$(rm -rf ~)"), "'$(rm -rf ~)'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(Shell, CommandsEndWhereShellsEndThem) {
  const auto script = read_shell("a 1 && b 2; c 3 | d 4 > log 2>&1 &\n# comment\ne \\\n  5 # more\n", "test");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->commands, (std::vector<Words>{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}}));
}

TEST(Shell, VariablesAndListsOfTheScriptArePutIn) {
  const auto script =
      read_shell("TP=8\nARGS=(--tp $TP  # ways\n  --name 'a b')\nserve x${TP} \"${ARGS[@]}\" \"$OTHER\"", "test");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->commands.back(), (Words{"serve", "x8", "--tp", "8", "--name", "a b", "$OTHER"}));
}

TEST(Shell, BranchesAreNotTaken) {
  const auto script = read_shell("N=1\nif [ \"$X\" = 1 ]; then\n  N=2\nfi\nrun --n $N", "test");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->commands.back(), (Words{"run", "--n", "1"}));
}

TEST(Shell, HereDocumentsAreFiles) {
  const auto script =
      read_shell("N=4\ncat > a.yml <<'END'\nx: $N\nEND\ncat > b.yml << EOF\nx: $N\nEOF\nrun a.yml", "test");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->files.at("a.yml"), "x: $N\n");
  EXPECT_EQ(script->files.at("b.yml"), "x: 4\n");
  EXPECT_EQ(script->commands.back(), (Words{"run", "a.yml"}));
}

TEST(Shell, OpenQuotesAreErrors) {
  EXPECT_FALSE(read_shell("run 'a", "test"));
  EXPECT_FALSE(read_shell("run \"a", "test"));
  EXPECT_FALSE(read_shell("A=(1 2", "test"));
}

}  // namespace
}  // namespace assay::launch
