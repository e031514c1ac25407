// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "framework/base/config/config.h"
#include "framework/base/testing/schema.h"

namespace phalanx::config {
namespace {

using config::testing::loaded;
using config::testing::Models;
using config::testing::problems_of;
using config::testing::Root;
using config::testing::Stages;

TEST(Load, FillsEveryKindOfField) {
  const auto root = loaded(R"(
name: first light
amp: true
seed: -7
sizes: [3, 5]
rates: [0.5, 1e-3, 2]
tags:
  - a
  - "b c"
launch:
  ranks: 4
  with: mpi
optimizer: {lr: 0.05, momentum: 0}
model:
  name: mlp
  hidden: 64
)");
  EXPECT_EQ(root.name, "first light");
  EXPECT_TRUE(root.amp);
  EXPECT_EQ(root.seed, -7);
  EXPECT_EQ(root.sizes, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(root.rates, (std::vector<double>{0.5, 1e-3, 2}));
  EXPECT_EQ(root.tags, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(root.launch.ranks, 4);
  EXPECT_EQ(root.launch.with, "mpi");
  EXPECT_EQ(root.optimizer.lr, 0.05);
  EXPECT_EQ(root.optimizer.momentum, 0);
  EXPECT_EQ(root.model.make(), "mlp 64");
}

TEST(Load, KeepsTheDefaultsOfWhatIsNotWritten) {
  for (const char* text : {"", "# nothing but a comment\n", "---\n", "launch:\n  # ranks: 3\n", "launch: {}"}) {
    EXPECT_EQ(problems_of(text), "") << text;
    EXPECT_EQ(loaded(text).launch.ranks, 1) << text;
    EXPECT_EQ(loaded(text).model.make(), "lenet 6") << text;
  }
}

// A typo must never train something else than was meant. All typos are reported at once, each with its place.
TEST(Load, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(problems_of(R"(name: [a]
sede: 3
amp: yes
sizes: [1, two, 300]
launch:
  ranks: 0
  with: lokal
  ranks: 2
optimizer:
  lr: 1e-3
  momentun: 0.5
  momentum: 1.5
model:
  name: lenett
  channels: 3
  hiden: 4
momentum: 1
)",
                        {"launch.ranks=two", "seed", "optimiser.lr=1"}),
            R"(t.yaml:1:7: name: expected a string, got a list
t.yaml:2:1: sede: unknown key (did you mean "seed"?)
t.yaml:3:6: amp: expected true or false, got "yes" (did you mean "true"?)
t.yaml:4:12: sizes[1]: expected an integer, got "two"
t.yaml:4:17: sizes[2]: must be between 1 and 100, got 300
t.yaml:7:9: launch.with: must be auto, local or mpi, got "lokal" (did you mean "local"?)
t.yaml:8:3: launch.ranks: duplicate key, first written in line 6
t.yaml:11:3: optimizer.momentun: unknown key (did you mean "momentum"?)
t.yaml:12:13: optimizer.momentum: must be between 0 and 1, got 1.5
t.yaml:14:9: model.name: unknown name "lenett"; known: lenet, mlp, stack (did you mean "lenet"?)
t.yaml:17:1: momentum: unknown key (did you mean "optimizer.momentum"?)
--set launch.ranks=two: launch.ranks: expected an integer, got "two"
--set seed: expected key.path=value
--set optimiser.lr=1: optimiser: unknown key (did you mean "optimizer"?))");
}

TEST(Load, OffersTheProblemsAsValuesToo) {
  try {
    loaded("optimizer:\n  lrr: 1\n");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1);
    const ConfigProblem& problem = error.problems()[0];
    EXPECT_EQ(problem.origin, "t.yaml");
    EXPECT_EQ(problem.line, 2);
    EXPECT_EQ(problem.column, 3);
    EXPECT_EQ(problem.key, "optimizer.lrr");
    EXPECT_EQ(problem.suggestion, "lr");
  }
}

TEST(Load, RefusesWhatIsNotASection) {
  EXPECT_EQ(problems_of("launch: 3"), "t.yaml:1:9: launch: expected a section, got \"3\"");
  EXPECT_EQ(problems_of("launch: [3]"), "t.yaml:1:9: launch: expected a section, got a list");
  EXPECT_EQ(problems_of("- name"), "t.yaml:1:1: expected lines of the form \"key: value\", got a list");
  EXPECT_EQ(problems_of("name"), "t.yaml:1:1: expected lines of the form \"key: value\", got \"name\"");
}

TEST(Load, RefusesAMissingValue) {
  EXPECT_EQ(problems_of("seed:\n"), "t.yaml:1:1: seed: expected an integer, got nothing");
  EXPECT_EQ(problems_of("name: ~"),
            "t.yaml:1:1: name: expected a string, got nothing (an empty string is written \"\")");
  EXPECT_EQ(problems_of("sizes:\n"), "t.yaml:1:1: sizes: expected a list (integer), got nothing");
}

TEST(Load, SuggestsAListForASingleValue) {
  EXPECT_EQ(problems_of("sizes: 3"), "t.yaml:1:8: sizes: expected a list (integer), got \"3\" (did you mean \"[3]\"?)");
}

TEST(Load, ARefusedListLeavesTheOldOneUnchanged) {
  Root root;
  EXPECT_THROW(load_text(root, "sizes: [7, x]", "t.yaml"), ConfigError);
  EXPECT_EQ(root.sizes, (std::vector<std::int64_t>{1, 2}));
}

TEST(Load, NamesTheFileThatCannotBeRead) {
  Root root;
  try {
    load(root, "no/such.yaml");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "cannot read the config: no/such.yaml: No such file or directory");
  }
}

TEST(Load, ReadsAFile) {
  const std::string path = ::testing::TempDir() + "/load_test.yaml";
  std::ofstream(path) << "\xEF\xBB\xBFseed: 5\r\nlaunch:\r\n  rank: 1\r\n";  // as some editors on Windows write it
  Root root;
  try {
    load(root, path, {"seed=6"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), path + ":3:3: launch.rank: unknown key (did you mean \"ranks\"?)");
  }
  EXPECT_EQ(root.seed, 6);
}

// Reading a FIFO or /dev/zero would never end.
TEST(Load, RefusesSpecialAndTooLargeFiles) {
  const auto refused = [](const std::string& path) {
    Root root;
    try {
      load(root, path);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string folder = ::testing::TempDir(), fifo = folder + "/load_test.fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(refused(fifo), "cannot read the config: " + fifo + ": is not a regular file; write the config to one");
  EXPECT_EQ(refused("/dev/zero"), "cannot read the config: /dev/zero: is not a regular file; write the config to one");
  const std::string large = folder + "/load_test_large.yaml";
  std::ofstream(large) << "name: run\n";
  std::filesystem::resize_file(large, 5 << 20);
  EXPECT_EQ(refused(large), "cannot read the config: " + large + ": has 5 MB; a config has at most 4 MB");
  std::filesystem::resize_file(large, std::string("name: run\n").size());
  EXPECT_EQ(refused(large), "accepted");
  std::filesystem::remove(fifo);
}

TEST(Load, SuggestsTheKeyOfAnotherSectionThatIsSpelledAlmostTheSame) {
  EXPECT_EQ(problems_of("rank: 3"), "t.yaml:1:1: rank: unknown key (did you mean \"launch.ranks\"?)");
  EXPECT_EQ(problems_of("learning_rate: 3"), "t.yaml:1:1: learning_rate: unknown key (did you mean \"optimizer.lr\"?)");
}

TEST(Load, NamesAnEmptyKey) {
  EXPECT_NE(problems_of("\"\": 3").find("t.yaml:1:1: \"\": unknown key"), std::string::npos);
}

TEST(Load, MakesSuggestionsForTheFirstHundredUnknownKeysOnly) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "unknown_" + std::to_string(i) + ": 1\n";
  const std::string misspelled = "sede: 1\n";
  EXPECT_NE(problems_of(misspelled + text).find("\"seed\""), std::string::npos);
  const auto last = problems_of(text + misspelled);
  EXPECT_NE(last.find("sede: unknown key"), std::string::npos);
  EXPECT_EQ(last.find("\"seed\""), std::string::npos);
}

TEST(LoadSelection, TheShortFormIsTheNameAlone) {
  EXPECT_EQ(loaded("model: mlp").model.make(), "mlp 128");
  EXPECT_EQ(problems_of("model: mpl"),
            "t.yaml:1:8: model: unknown name \"mpl\"; known: lenet, mlp, stack (did you mean \"mlp\"?)");
}

TEST(LoadSelection, TheNameMayBeTheKeyOfTheFields) {
  EXPECT_EQ(loaded("model: {mlp: {hidden: 9}}").model.make(), "mlp 9");
  EXPECT_EQ(loaded("model:\n  mlp:\n").model.make(), "mlp 128");
  EXPECT_EQ(problems_of("model: {mlp: {hiden: 9}}"),
            "t.yaml:1:15: model.hiden: unknown key (did you mean \"hidden\"?)");
  EXPECT_EQ(problems_of("model: {mpl: {hidden: 9}}"), "t.yaml:1:9: model.mpl: unknown key (did you mean \"mlp\"?)");
}

TEST(LoadSelection, AKeyMayImplyTheName) {
  EXPECT_EQ(loaded("model: {layers: 5}").model.make(), "stack 5");
  EXPECT_EQ(problems_of("model: {layers: 4, hidden: 3}"),
            "t.yaml:1:20: model.hidden: unknown key: a field of mlp, not of stack");
}

TEST(LoadSelection, WithoutANameTheDefaultStays) { EXPECT_EQ(loaded("model: {channels: 9}").model.make(), "lenet 9"); }

TEST(LoadSelection, SaysWhichSelectionAnUnknownKeyBelongsTo) {
  EXPECT_EQ(problems_of("model: {hidden: 3}"), "t.yaml:1:9: model.hidden: unknown key: a field of mlp, not of lenet");
}

TEST(LoadSelection, OfAnUnknownNameOnlyTheNameIsReported) {
  EXPECT_EQ(problems_of("model: {name: vgg, depth: 3}"),
            "t.yaml:1:15: model.name: unknown name \"vgg\"; known: lenet, mlp, stack");
}

TEST(LoadSelection, RefusesWhatIsNotAName) {
  EXPECT_EQ(problems_of("model:\n"), "t.yaml:1:1: model: expected a name, got nothing; known: lenet, mlp, stack");
  EXPECT_EQ(problems_of("model: [mlp]"), "t.yaml:1:8: model: expected a name, got a list; known: lenet, mlp, stack");
  EXPECT_EQ(problems_of("model: {name: {}}"),
            "t.yaml:1:15: model.name: expected a name, got a section; known: lenet, mlp, stack");
}

TEST(LoadSectionList, FillsEverySectionOverItsDefaults) {
  for (const char* text : {"stages: [{lr: 0.5, steps: 3}, {shape: linear}]",
                           "stages:\n  - lr: 0.5\n    steps: 3\n  - {shape: linear}\n"}) {
    const auto root = loaded<Stages>(text);
    ASSERT_EQ(root.stages.size(), 2u) << text;
    EXPECT_EQ(root.stages[0].lr, 0.5);
    EXPECT_EQ(root.stages[0].steps, 3);
    EXPECT_EQ(root.stages[1].lr, 0.1);
    EXPECT_EQ(root.stages[1].shape, "linear");
  }
  EXPECT_TRUE(loaded<Stages>("stages: []").stages.empty());
}

TEST(LoadSectionList, AnOverrideReplacesTheWholeList) {
  const auto root = loaded<Stages>("stages: [{lr: 0.5}, {lr: 0.6}]", {"stages=[{steps: 7}]"});
  ASSERT_EQ(root.stages.size(), 1u);
  EXPECT_EQ(root.stages[0].lr, 0.1);
  EXPECT_EQ(root.stages[0].steps, 7);
}

TEST(LoadSectionList, ReportsEveryProblemWithItsPlaceInTheList) {
  EXPECT_EQ(problems_of<Stages>("stages:\n- {lr: 0, step: 3}\n- 5\n- {shape: linar}\n"),
            R"(t.yaml:2:8: stages[0].lr: must be above 0, got 0
t.yaml:2:11: stages[0].step: unknown key (did you mean "steps"?)
t.yaml:3:3: stages[1]: expected a section, got "5"
t.yaml:4:11: stages[2].shape: must be flat or linear, got "linar" (did you mean "linear"?))");
  EXPECT_EQ(problems_of<Stages>("stages: {lr: 0.5}"),
            "t.yaml:1:9: stages: expected a list of sections, [{...}], got a section");
}

struct Required {
  Models::Choice model;
  template <class V>
  void visit(V& v) {
    v("model", model, "the network to train");
  }
};

TEST(LoadSelection, WithoutADefaultANameIsRequired) {
  EXPECT_EQ(problems_of<Required>(""), "t.yaml: model: missing; known: lenet, mlp, stack");
  EXPECT_EQ(problems_of<Required>("model: {hidden: 3}"), "t.yaml:1:8: model.name: missing; known: lenet, mlp, stack");
  EXPECT_EQ(loaded<Required>("model: lenet").model.make(), "lenet 6");
}

struct OwnDefaults : Required {
  OwnDefaults() {
    model.select("mlp");
    load_text(*this, "model: {hidden: 7}", "defaults");
  }
};

TEST(LoadSelection, NamingTheSelectedOneKeepsItsDefaults) {
  EXPECT_EQ(loaded<OwnDefaults>("model: mlp").model.make(), "mlp 7");
  EXPECT_EQ(loaded<OwnDefaults>("model: {name: mlp, dropout: 0.5}").model.make(), "mlp 7");
}

}  // namespace
}  // namespace phalanx::config
