// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/suite/suite.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "framework/base/files.h"
#include "launch/temporary_folder.h"
#include "tools/regress/suite/planned_case.h"
#include "tools/regress/suite/quarantine.h"
#include "tools/regress/suite/shard.h"

namespace phalanx::regress {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;
using namespace std::chrono_literals;

class SuiteTest : public ::testing::Test {
 protected:
  SuiteTest() {
    std::filesystem::create_directory(folder_.path() + "/suites");
    config("plain", "");
    config("other", "optimizer: {name: adamw}\n");
  }

  void config(const std::string& name, const std::string& more) {
    write_atomically(folder_.path() + "/" + name + ".yaml",
                     "model: {name: mlp, hidden: [8]}\ndataset: spirals\nlaunch: {ranks: 2}\n" + more);
  }

  Suite load(const std::string& text) {
    write_atomically(path_, text);
    return load_suite(path_);
  }

  std::vector<PlannedCase> plan(const std::string& text, const std::vector<std::string>& overrides = {}) {
    return plan_cases(load(text), overrides);
  }

  static std::vector<std::string> names(const std::vector<PlannedCase>& cases) {
    std::vector<std::string> all;
    for (const auto& one : cases) all.push_back(one.name);
    return all;
  }

  void expect_refused(const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { plan(text); }, ThrowsMessage<ConfigError>(HasSubstr(message))) << text;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/suites/mine.yaml";
};

TEST_F(SuiteTest, IsCalledLikeItsFileAndFindsConfigsByPattern) {
  const auto suite = load("cases: [{configs: [\"*.yaml\", plain.yaml]}]");
  EXPECT_EQ(suite.name, "mine");
  EXPECT_THAT(suite.files, ElementsAre(ElementsAre(folder_.path() + "/other.yaml", folder_.path() + "/plain.yaml")));
}

TEST_F(SuiteTest, OverridesApplyInTheOrderOfEntryMatrixAndCommandLine) {
  const auto cases = plan(
      "time_limit: 9\ncases: [{configs: [plain.yaml], set: {seed: 3, train.epochs: 2}, "
      "matrix: {ranks: [2, 4], meshes: [{data: 0}]}, time_limit: 5, alone: true}]",
      {"seed=7"});
  EXPECT_THAT(names(cases), ElementsAre("plain-ranks=2-mesh=data0", "plain-ranks=4-mesh=data0"));
  EXPECT_THAT(cases[1].overrides,
              ElementsAre("seed=3", "train.epochs=2", "launch.ranks=4", "mesh={data: 0}", "seed=7"));
  EXPECT_EQ(cases[1].ranks, 4);
  EXPECT_EQ(cases[1].time_limit, 5);
  EXPECT_TRUE(cases[1].alone);
}

TEST_F(SuiteTest, ErrorsNameFileLineAndKey) {
  expect_refused("cases:\n  - configs: [plian.yaml]\n", path_ + ":2:15: cases[0].configs: there is no config ");
  expect_refused("cases:\n  - configs: [plian.yaml]\n", "(did you mean \"plain.yaml\"?)");
  expect_refused("cases:\n  - {configs: [plain.yaml], matrx: {}}\n", path_ + ":2:29: cases[0].matrx: unknown key");
  expect_refused("cases:\n  - {configs: [plain.yaml], matrix: {ranks: 2}}\n",
                 path_ + ":2:45: cases[0].matrix.ranks: expected a list of values, got ");
  expect_refused("cases: [{configs: [plain.yaml], exclude: [{ranks: 2}]}]", "the matrix has no key \"ranks\"");
  expect_refused("cases: []", "the suite has no cases");
  expect_refused("cases: [{}]", "the entry names no configs");
}

TEST_F(SuiteTest, AKeyThatNoConfigHasIsOneErrorAtItsPlace) {
  EXPECT_THAT([&] { plan("cases:\n  - configs: [plain.yaml, other.yaml]\n    matrix: {optimizer.lrr: [1, 2]}\n"); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr(path_ + ":3:14: cases[0].matrix.optimizer.lrr: no config of this entry has this key"),
                        HasSubstr("did you mean"), Not(HasSubstr("\n")))));
}

TEST_F(SuiteTest, AKeyWithinASettingThatNoConfigHasIsNamed) {
  expect_refused("cases: [{configs: [plain.yaml], set: {optimizer: {name: sgd, lrr: 1}}}]",
                 "cases[0].set.optimizer: no config of this entry has a key optimizer.lrr (did you mean \"lr\"?)");
}

TEST_F(SuiteTest, AKeyThatSomeConfigHasIsOnlyRefusedForTheOthers) {
  const std::string entry = "configs: [plain.yaml, other.yaml], matrix: {optimizer.momentum: [0.5]}";
  expect_refused("cases: [{" + entry + "}]", "other-optimizer.momentum=0.5 is refused");
  const auto cases = plan("cases: [{" + entry + ", refused: skip}]");
  EXPECT_THAT(cases[0].refused, HasSubstr("optimizer.momentum"));
  EXPECT_THAT(cases[1].refused, IsEmpty());
}

TEST_F(SuiteTest, AnEntryOfWhichEverythingIsRefusedIsAnError) {
  expect_refused("cases: [{configs: [plain.yaml], matrix: {strategies: [single]}, refused: skip}]",
                 "every combination is refused");
}

TEST_F(SuiteTest, CommandsAreCasesToo) {
  const auto cases = plan(
      "root: ..\ntime_limit: 9\ncases: [{commands: [{name: one, run: \"echo 1\"}, {name: two, run: \"false\"}], alone: "
      "true}, {configs: [plain.yaml]}]");
  EXPECT_THAT(names(cases), ElementsAre("one", "two", "plain"));
  EXPECT_EQ(cases[0].command, "echo 1");
  EXPECT_THAT(cases[0].config, IsEmpty());
  EXPECT_TRUE(std::filesystem::equivalent(cases[0].folder, folder_.path()));
  EXPECT_EQ(cases[0].time_limit, 9);
  EXPECT_TRUE(cases[0].alone);
  EXPECT_THAT(cases[2].command, IsEmpty());
}

TEST_F(SuiteTest, AnEntryHasConfigsOrCommands) {
  expect_refused("cases: [{configs: [plain.yaml], commands: [{name: a, run: b}]}]",
                 "an entry has either commands, or ");
  expect_refused("cases: [{commands: [{name: a, run: b}], set: {seed: 1}}]", "an entry has either commands, or ");
  expect_refused("cases: [{commands: [{name: a}]}]", "a command needs a name, and something to run");
  expect_refused("cases: [{commands: [{name: a, run: b}, {name: a, run: c}]}]", "two cases are called a");
}

TEST_F(SuiteTest, TwoCasesOfOneNameNeedALabel) {
  expect_refused("cases: [{configs: [plain.yaml]}, {configs: [plain.yaml]}]", "two cases are called plain");
  EXPECT_THAT(names(plan("cases: [{configs: [plain.yaml]}, {configs: [plain.yaml], label: again}]")),
              ElementsAre("plain", "plain-again"));
}

TEST_F(SuiteTest, RanksMustDivideEvenlyAmongHosts) {
  expect_refused("cases: [{configs: [plain.yaml], matrix: {hosts: [3]}}]",
                 "2 ranks cannot be spread evenly over 3 hosts");
}

TEST_F(SuiteTest, ExpectationsThatTakeOtherRunsAreRead) {
  config("related", "expect: {same_as: {config: plain.yaml}, resume_at: 0.5, scaling: {min: 0.7}}\n");
  const auto relations =
      plan("cases: [{configs: [related.yaml], set: {seed: 5, backend: shm, strategy: sharded}}]")[0].relations;
  ASSERT_TRUE(relations.same_as);
  EXPECT_EQ(relations.same_as->config, folder_.path() + "/plain.yaml");
  EXPECT_THAT(relations.same_as->overrides, ElementsAre("seed=5"));
  EXPECT_EQ(relations.same_as->ranks, 2);
  config("disturbed", "checkpoint: {every_steps: 2}\nseed: 7\nexpect: {faults: {injected: 20, survived: 19}}\n");
  const auto faults = plan("cases: [{configs: [disturbed.yaml]}]")[0].relations.faults;
  ASSERT_TRUE(faults);
  EXPECT_EQ(faults->injected, 20);
  EXPECT_EQ(faults->survived, 19);
  EXPECT_EQ(faults->seed, 7);
  EXPECT_FALSE(relations.faults);
  config("alone", "expect: {same_as: {config: plain.yaml, ranks: 1}}\n");
  const auto alone = plan("cases: [{configs: [alone.yaml]}]")[0].relations.same_as;
  EXPECT_EQ(alone->ranks, 1);
  EXPECT_THAT(alone->overrides, ElementsAre("launch.ranks=1"));
  EXPECT_EQ(relations.resume_at, 0.5);
  EXPECT_EQ(relations.scaling, 0.7);
  EXPECT_FALSE(relations.of_median);
}

TEST(Placement, IsLeftOutOfTheOverridesOfAReference) {
  EXPECT_THAT(
      without_placement({"launch.ranks=2", "seed=1", "strategy={name: sharded}", "strategy.stage=3", "model=mlp"}),
      ElementsAre("seed=1", "model=mlp"));
}

class QuarantineTest : public ::testing::Test {
 protected:
  Quarantine load(const std::string& text) {
    write_atomically(path_, text);
    return load_quarantine(path_, 2027y / 1 / 15);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/quarantine.yaml";
};

TEST_F(QuarantineTest, MatchesNamesUntilAndIncludingItsLastDay) {
  const auto quarantine = load("quarantine: [{cases: \"a-ranks=*\", until: 2027-01-15, reason: \"known\"}]");
  ASSERT_NE(quarantine.find("a-ranks=2"), nullptr);
  EXPECT_EQ(quarantine.find("a-ranks=2")->reason, "known");
  EXPECT_EQ(quarantine.find("b"), nullptr);
}

TEST_F(QuarantineTest, AnEntryThatHasEndedIsAnErrorThatNamesIt) {
  EXPECT_THAT([&] { load("quarantine:\n  - {cases: a, until: 2027-01-14, reason: b}\n"); },
              ThrowsMessage<ConfigError>(
                  HasSubstr(path_ + ":2:16: quarantine[0].until: the quarantine of a ended on 2027-01-14")));
}

TEST_F(QuarantineTest, AnEntryNeedsADateAndAReason) {
  for (const char* until : {"soon", "2027-02-30", "2027-02-01x", ""}) {
    EXPECT_THAT([&] { load(std::string("quarantine: [{cases: a, reason: b, until: \"") + until + "\"}]"); },
                ThrowsMessage<ConfigError>(HasSubstr("expected a date")))
        << until;
  }
  EXPECT_THAT([&] { load("quarantine: [{cases: a, until: 2027-02-01}]"); },
              ThrowsMessage<ConfigError>(HasSubstr("say why a may fail")));
}

TEST_F(QuarantineTest, WithoutAFileThereIsNone) {
  EXPECT_EQ(load_quarantine(path_ + ".none", 2027y / 1 / 15).find("a"), nullptr);
}

TEST(Shards, HaveEachCaseOnce) {
  std::vector<int> counts(10);
  for (const char* text : {"1/3", "2/3", "3/3"}) {
    const Shard shard = parse_shard(text);
    EXPECT_EQ(shard.text(), text);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += shard.has(i) ? 1 : 0;
  }
  EXPECT_THAT(counts, ::testing::Each(1));
}

TEST(Shards, AreRefusedIfThereIsNoSuchShard) {
  for (const char* text : {"0/2", "3/2", "1", "1/2x", "a/b", "-1/2", ""})
    EXPECT_THROW(parse_shard(text), ConfigError) << text;
}

}  // namespace
}  // namespace phalanx::regress
