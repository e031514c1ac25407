// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/meant.h"

#include <gtest/gtest.h>

#include "framework/base/config/keys.h"
#include "framework/base/testing/schema.h"

namespace phalanx::config {
namespace {

TEST(MeantBy, KnowsTheNamesOfOtherFrameworks) {
  EXPECT_EQ(meant_by("learning_rate", {"momentum", "lr"}), "lr");
  EXPECT_EQ(meant_by("bfloat16", {"fp32", "bf16", "fp16"}), "bf16");
  EXPECT_EQ(meant_by("Float32", {"fp32", "bf16", "fp16"}), "fp32");
  EXPECT_EQ(meant_by("world-size", {"ranks"}), "ranks");
  EXPECT_EQ(meant_by("bfloat16", {"a", "b"}), "") << "not one of the candidates";
}

TEST(MeantBy, IsOtherwiseTheNearestInSpelling) {
  EXPECT_EQ(meant_by("Auto", {"local", "auto"}), "auto");
  EXPECT_EQ(meant_by("batch_size", {"epochs", "global_batch_size"}), "global_batch_size");
}

TEST(PathMeantBy, IsTheShortestThatEndsInTheKey) {
  const std::vector<std::string> paths = {"train", "train.deep.seed", "seed", "optimizer.lr"};
  EXPECT_EQ(path_meant_by("lr", paths), "optimizer.lr");
  EXPECT_EQ(path_meant_by("learning_rate", paths), "optimizer.lr");
  EXPECT_EQ(path_meant_by("seed", paths), "seed");
  EXPECT_EQ(path_meant_by("sead", paths), "seed");
  EXPECT_EQ(path_meant_by("train.deep.seed", paths), "train.deep.seed");
  EXPECT_EQ(path_meant_by("zzz", paths), "");
}

TEST(PathsOf, CoverEveryKeyAndTheFieldsOfSelections) {
  testing::Root root;
  EXPECT_EQ(paths_of([&](Visitor& visitor) { root.visit(visitor); }),
            (std::vector<std::string>{"name", "amp", "seed", "sizes", "rates", "tags", "launch", "launch.ranks",
                                      "launch.with", "optimizer", "optimizer.lr", "optimizer.momentum", "model",
                                      "model.channels"}));
}

}  // namespace
}  // namespace phalanx::config
