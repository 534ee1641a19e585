#include "assay/ask/launch/shell.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::launch {
namespace {

using Words = std::vector<std::string>;

RC_GTEST_PROP(Shell, QuotedWordsAreReadBackAsTheyAre, (const std::string& word)) {
  RC_PRE(word.find_first_of(std::string("\0\1\2", 3)) == std::string::npos);
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

Words last_words(std::string_view text, const ShellSurroundings& around = {}) {
  const auto script = read_shell(text, "test", around);
  EXPECT_TRUE(script) << text;
  return script && !script->commands.empty() ? script->commands.back() : Words();
}

TEST(Shell, ValuesAreWhatAShellMakesOfThem) {
  const std::pair<std::string_view, Words> cases[] = {
      {"N=4; run ${N:-1} ${M:-2} ${M:+3} ${#N} $((N * 2 + 1))", {"run", "4", "2", "1", "9"}},
      {"A=x.tar.gz; run ${A%.gz} ${A%%.*} ${A#*.} ${A/tar/zip} ${A^^}",
       {"run", "x.tar", "x", "tar.gz", "x.zip.gz", "X.TAR.GZ"}},
      {"A=('a b' c); A+=(d); run \"${A[@]}\" ${#A[@]} ${A[1]}", {"run", "a b", "c", "d", "3", "c"}},
      {"A=('--x 1' \"--y 2\"); run ${A[@]}", {"run", "--x", "1", "--y", "2"}},
      {"IFS=',' read -r A B <<< 1,2; run $A $B", {"run", "1", "2"}},
      {"read -r -d '' A <<END\n --x 1\n --y 2\nEND\nrun $A", {"run", "--x", "1", "--y", "2"}},
      {"C=\"run $(echo \"a  b\" | tr 'a' 'c')\"; eval \"$C\"", {"run", "c", "b"}},
      {"f() { run $2 $1; }; f a b", {"run", "b", "a"}},
      {"for i in 1 2; do A+=\" $i\"; done; run $A", {"run", "1", "2"}},
      {"i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; run $i", {"run", "3"}},
      {"case x86 in arm) A=1;; x*|y) A=2;; esac; run $A", {"run", "2"}},
      {"A=8; if [[ $A -gt 4 && ! -z $A ]]; then B=big; else B=small; fi; run $B", {"run", "big"}},
      {"if [ ! -f data ]; then run none; exit 1; fi; run $X \\  # a comment\n  --last", {"run", "$X", "--last"}},
      {"srun -N 2 bash -c \"run 'a b'\"", {"srun", "-N", "2", "run", "a b"}},
      {"run --to <PLACE> x", {"run", "--to", "<PLACE>", "x"}},
  };
  for (const auto& [text, words] : cases) EXPECT_EQ(last_words(text), words) << text;
}

TEST(Shell, WhatIsNotKnownStaysAsWritten) {
  EXPECT_EQ(last_words("A=$1; run \"$A\" $(date +%s) $((B + 1))"), (Words{"run", "$1", "$(date +%s)", "$((B + 1))"}));
  const auto script = read_shell("if [ \"$DEBUG\" = 1 ]; then run a; fi; source x.sh", "test");
  ASSERT_TRUE(script);
  EXPECT_TRUE(script->commands.empty());
  EXPECT_EQ(script->unset, Words{"DEBUG"});
  EXPECT_EQ(script->missing, Words{"x.sh"});
}

TEST(Shell, GivenVariablesStandAgainstTheScript) {
  ShellSurroundings around;
  around.given = {{"TP", "8"}, {"1", "fast"}};
  around.standard = {{"NODES", "4"}};
  EXPECT_EQ(last_words("TP=1; MODE=$1; run $TP $MODE ${NODES:-2}", around), (Words{"run", "8", "fast", "4"}));
}

TEST(Shell, ScriptsWithoutEndAreErrorsOrEnd) {
  EXPECT_FALSE(
      read_shell("A=aaaaaaaa\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do A=$A$A; done", "test"));
  EXPECT_TRUE(read_shell("f() { f; }; f; while true; do sleep 1; done", "test"));
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
