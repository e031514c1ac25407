// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/evaluation_loop.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(EvaluatedVersion, IsNotNamedIfThereIsOnlyOne) {
  EvaluatedVersion version;
  version.begin(true);
  EXPECT_EQ(version.text(false), "");
  EXPECT_EQ(version.text(true), "moving average");
  version.end_training();
  version.begin(true);
  EXPECT_EQ(version.text(false), "");
}

TEST(EvaluatedVersion, DistinguishesTheFinalModelFromEachRanksOwn) {
  EvaluatedVersion version;
  version.begin(false);
  EXPECT_TRUE(version.own());
  EXPECT_EQ(version.text(false), "each rank's own model");
  EXPECT_EQ(version.text(true), "each rank's own moving average");
  version.end_training();
  version.begin(false);
  EXPECT_FALSE(version.own()) << "replicas are equal after training";
  EXPECT_EQ(version.text(false), "final model");
  EXPECT_EQ(version.text(true), "final moving average");
}

}  // namespace
}  // namespace phalanx
