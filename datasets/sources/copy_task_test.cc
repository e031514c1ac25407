// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"

namespace phalanx {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

TEST(CopyTask, PredictsTheSymbolsASecondTime) {
  const char* const section = "{name: copy_task, symbols: 5, length: 7, train_samples: 40, test_samples: 30}";
  const auto splits = config::load_as<Datasets::Choice>("dataset", section, "test.yaml").make();
  ASSERT_EQ(splits.train->size(), 40);
  ASSERT_EQ(splits.test->size(), 30);
  EXPECT_EQ(splits.train->spec().inputs[0].classes, 6);
  Batch batch, again;
  splits.train->gather(std::vector<std::int64_t>{3, 9}, 0, batch);
  splits.train->gather(std::vector<std::int64_t>{9}, 1, again);
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto symbols = testing::row_of(batch.inputs[0], i, 0, 7);
    EXPECT_THAT(symbols, Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(5))));
    EXPECT_EQ(testing::row_of(batch.inputs[0], i, 7, 1)[0], 5) << "the separator";
    EXPECT_THAT(testing::row_of(batch.inputs[0], i, 8, 6), ElementsAreArray(symbols.data(), 6));
    EXPECT_THAT(testing::row_of(batch.targets[0], i, 0, 7), Each(kIgnored));
    EXPECT_THAT(testing::row_of(batch.targets[0], i, 7, 7), ElementsAreArray(symbols));
  }
  EXPECT_EQ(testing::row_of(batch.inputs[0], 1, 0, 14), testing::row_of(again.inputs[0], 0, 0, 14))
      << "whenever it is read";
  EXPECT_NE(testing::row_of(batch.inputs[0], 0, 0, 14), testing::row_of(batch.inputs[0], 1, 0, 14));
  Batch other;
  splits.test->gather(std::vector<std::int64_t>{3}, 0, other);
  EXPECT_NE(testing::row_of(batch.inputs[0], 0, 0, 14), testing::row_of(other.inputs[0], 0, 0, 14))
      << "test samples are other sequences";
}

}  // namespace
}  // namespace phalanx
