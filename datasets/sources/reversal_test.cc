// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

TEST(Reversal, PredictsTheReversedSource) {
  const auto splits =
      testing::load_splits("{name: reversal, symbols: 5, length: 7, shortest: 3, train_samples: 40, test_samples: 30}");
  const auto& train = *splits.train;
  ASSERT_EQ(train.size(), 40);
  ASSERT_EQ(splits.test->size(), 30);
  std::vector<std::int64_t> all(40);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  Batch batch;
  train.gather(all, 0, batch);
  std::set<std::int64_t> lengths;
  for (const auto i : all) {
    const auto length = train.length(i);
    lengths.insert(length);
    auto symbols = testing::row_of(batch.inputs[0], i, 0, length);
    EXPECT_THAT(symbols, Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(5))));
    std::ranges::reverse(symbols);
    EXPECT_THAT(testing::row_of(batch.targets[0], i, 0, length), ElementsAreArray(symbols));
    EXPECT_EQ(testing::row_of(batch.inputs[1], i, 0, 1)[0], 5) << "the beginning";
    EXPECT_THAT(testing::row_of(batch.inputs[1], i, 1, length - 1),
                ElementsAreArray(symbols.data(), symbols.size() - 1));
    for (const auto& input : batch.inputs) EXPECT_THAT(testing::row_of(input, i, length, 7 - length), Each(6));
    EXPECT_THAT(testing::row_of(batch.targets[0], i, length, 7 - length), Each(kIgnored));
  }
  EXPECT_EQ(lengths, (std::set<std::int64_t>{3, 4, 5, 6, 7}));
  Batch one;
  train.gather(std::vector<std::int64_t>{9}, 1, one);
  EXPECT_EQ(testing::row_of(one.inputs[0], 0, 0, 7), testing::row_of(batch.inputs[0], 9, 0, 7))
      << "whenever it is read";
  Batch other;
  splits.test->gather(std::vector<std::int64_t>{9}, 0, other);
  EXPECT_NE(testing::row_of(other.inputs[0], 0, 0, 7), testing::row_of(batch.inputs[0], 9, 0, 7))
      << "test samples are other sequences";
}

TEST(Reversal, RefusesAShortestLengthAboveTheLongest) {
  EXPECT_THROW(testing::load_splits("{name: reversal, length: 4, shortest: 5}"), ConfigError);
}

}  // namespace
}  // namespace phalanx
