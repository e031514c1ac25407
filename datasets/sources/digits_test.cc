// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "datasets/dataset.h"

namespace phalanx {
namespace {

TEST(Digits, NeedsNoFiles) {
  const auto splits = Datasets::Choice("digits").make();
  EXPECT_EQ(splits.train->size(), 8000);
  EXPECT_EQ(splits.test->size(), 2000);
  EXPECT_EQ(splits.train->spec().inputs.at(0).shape, (std::vector<std::int64_t>{1, 28, 28}));
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 10);
  Batch batch;
  splits.test->gather(std::array<std::int64_t, 2>{3, 19}, 0, batch);
  EXPECT_EQ(batch.targets[0].data_ptr<std::int64_t>()[0], 3);
  EXPECT_EQ(batch.targets[0].data_ptr<std::int64_t>()[1], 9);
}

}  // namespace
}  // namespace phalanx
