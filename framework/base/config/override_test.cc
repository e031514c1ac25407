// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/override.h"

#include <gtest/gtest.h>

#include "framework/base/testing/schema.h"

namespace phalanx::config {
namespace {

using config::testing::loaded;
using config::testing::problems_of;

TEST(Override, WinsOverTheFileAndTheLastOneWins) {
  EXPECT_EQ(loaded("seed: 2", {"seed=3", "seed=4"}).seed, 4);
  EXPECT_EQ(loaded("", {"optimizer.lr=1e-3"}).optimizer.lr, 1e-3);
}

TEST(Override, LeavesItsNeighboursAlone) {
  const auto root = loaded("launch: {ranks: 2, with: mpi}", {"launch.ranks=3"});
  EXPECT_EQ(root.launch.ranks, 3);
  EXPECT_EQ(root.launch.with, "mpi");
}

TEST(Override, OfASectionReplacesAllOfIt) {
  const auto root = loaded("launch: {ranks: 2, with: mpi}", {"launch={ranks: 3}"});
  EXPECT_EQ(root.launch.ranks, 3);
  EXPECT_EQ(root.launch.with, "auto");
}

TEST(Override, TakesAnyYamlAsTheValue) {
  EXPECT_EQ(loaded("", {"sizes=[4, 5]"}).sizes, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(loaded("", {"name=a=b"}).name, "a=b");
  EXPECT_EQ(loaded("", {"name=\"\""}).name, "");
  EXPECT_EQ(loaded("name: x\nlaunch:\n", {"launch.ranks=2"}).launch.ranks, 2);
}

TEST(Override, ReplacesAWrongValueInTheFile) { EXPECT_EQ(problems_of("seed: one", {"seed=1"}), ""); }

TEST(Override, OfANameKeepsTheKeysThatBothHave) {
  EXPECT_EQ(loaded("model: {hidden: 3}", {"model.name=mlp"}).model.make(), "mlp 3");
  EXPECT_EQ(loaded("model: lenet", {"model.channels=4"}).model.make(), "lenet 4");
}

TEST(Override, OfANameRefusesTheKeysThatOnlyTheOldOneHad) {
  const std::string text = "model:\n  name: mlp\n  hidden: 3\n";
  EXPECT_EQ(problems_of(text, {"model.name=lenet"}),
            "t.yaml:3:3: model.hidden: unknown key: a field of mlp, not of lenet, which --set model.name=lenet selects "
            "(--set model=lenet drops the file's other keys)");
  EXPECT_EQ(loaded(text, {"model=lenet"}).model.make(), "lenet 6");
}

TEST(Override, OfANameDoesNotBlameTheFileForOtherFlags) {
  EXPECT_EQ(problems_of("", {"model.name=mlp", "model.channels=3"}),
            "--set model.channels=3: model.channels: unknown key: a field of lenet, not of mlp");
}

TEST(Override, RefusesWhatIsNotAnAssignment) {
  for (const std::string text : {"seed", "", "=3", ".seed=3", "launch.=3", "launch..ranks=3"}) {
    EXPECT_EQ(problems_of("", {text}), "--set " + text + ": expected key.path=value");
  }
}

TEST(Override, ReportsItsProblemsWithItsFlagAsOrigin) {
  EXPECT_EQ(problems_of("", {"launch={ranks: 1, ranks: 2}"}),
            "--set launch={ranks: 1, ranks: 2}: ranks: duplicate key");
  EXPECT_EQ(problems_of("", {"sizes=[1"}), "--set sizes=[1: YAML syntax: end of sequence flow not found");
  EXPECT_EQ(problems_of("", {"seed="}), "--set seed=: seed: expected an integer, got nothing");
  EXPECT_EQ(problems_of("seed: 2", {"seed.x=3"}), "--set seed.x=3: seed: expected an integer, got a section");
  EXPECT_EQ(problems_of("sizes: [2]", {"sizes.0=3"}),
            "--set sizes.0=3: sizes: expected a list (integer), got a section");
}

}  // namespace
}  // namespace phalanx::config
