// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "engine/checkpoint/run_state.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

TEST(RangeWriters, ReplicatedParametersAreSpreadEvenly) {
  const std::vector<ParameterRange> all{{0, 0, 10}, {1, 0, 6}, {2, 0, 4}};
  EXPECT_THAT(assign_writers({all, all}, {10, 6, 4}),
              ElementsAre(Pair(ParameterRange{0, 0, 10}, 0), Pair(ParameterRange{1, 0, 6}, 1),
                          Pair(ParameterRange{2, 0, 4}, 1)));
}

TEST(RangeWriters, ShardsStayWhereTheyAre) {
  EXPECT_THAT(assign_writers({{{0, 0, 7}}, {{0, 7, 3}, {1, 0, 5}}}, {10, 5}),
              ElementsAre(Pair(ParameterRange{0, 0, 7}, 0), Pair(ParameterRange{0, 7, 3}, 1),
                          Pair(ParameterRange{1, 0, 5}, 1)));
}

TEST(RangeWriters, ShardsThatSeveralHostsHoldAreWrittenOnce) {
  const std::vector<ParameterRange> first{{0, 0, 5}}, second{{0, 5, 5}};
  EXPECT_THAT(assign_writers({first, second, first, second}, {10}),
              ElementsAre(Pair(ParameterRange{0, 0, 5}, 0), Pair(ParameterRange{0, 5, 5}, 1)));
}

TEST(RangeWriters, ParametersWithoutElementsArePiecesToo) {
  EXPECT_THAT(assign_writers({{{0, 0, 0}}}, {0}), ElementsAre(Pair(ParameterRange{0, 0, 0}, 0)));
  EXPECT_TRUE(assign_writers({{}}, {0}).empty()) << "and may be omitted";
}

TEST(RangeWriters, RefusesGapsAndOverlaps) {
  EXPECT_THAT([] { assign_writers({{{0, 0, 4}}, {{0, 5, 5}}}, {10}); },
              ThrowsMessage<Error>(HasSubstr("at its element 4")));
  EXPECT_THAT([] { assign_writers({{{0, 0, 6}}, {{0, 5, 5}}}, {10}); },
              ThrowsMessage<Error>(HasSubstr("at its element 6")));
  EXPECT_THAT([] { assign_writers({{{0, 0, 9}}}, {10}); }, ThrowsMessage<Error>(HasSubstr("9 of the 10 elements")));
}

}  // namespace
}  // namespace phalanx
