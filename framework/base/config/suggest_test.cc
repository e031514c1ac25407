// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/suggest.h"

#include <gtest/gtest.h>

#include "framework/base/config/keys.h"
#include "framework/base/testing/schema.h"

namespace phalanx::config {
namespace {

TEST(Suggest, KnowsTheNamesOfOtherFrameworks) {
  EXPECT_EQ(suggest("learning_rate", {"momentum", "lr"}), "lr");
  EXPECT_EQ(suggest("bfloat16", {"fp32", "bf16", "fp16"}), "bf16");
  EXPECT_EQ(suggest("Float32", {"fp32", "bf16", "fp16"}), "fp32");
  EXPECT_EQ(suggest("world-size", {"ranks"}), "ranks");
  EXPECT_EQ(suggest("bfloat16", {"a", "b"}), "") << "not one of the candidates";
}

TEST(Suggest, IsOtherwiseTheNearestInSpelling) {
  EXPECT_EQ(suggest("Auto", {"local", "auto"}), "auto");
  EXPECT_EQ(suggest("batch_size", {"epochs", "global_batch_size"}), "global_batch_size");
}

TEST(SuggestPath, IsTheShortestThatEndsInTheKey) {
  const std::vector<std::string> paths = {"train", "train.deep.seed", "seed", "optimizer.lr"};
  EXPECT_EQ(suggest_path("lr", paths), "optimizer.lr");
  EXPECT_EQ(suggest_path("learning_rate", paths), "optimizer.lr");
  EXPECT_EQ(suggest_path("seed", paths), "seed");
  EXPECT_EQ(suggest_path("sead", paths), "seed");
  EXPECT_EQ(suggest_path("train.deep.seed", paths), "train.deep.seed");
  EXPECT_EQ(suggest_path("zzz", paths), "");
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
