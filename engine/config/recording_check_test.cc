// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::complaint;

TEST(Check, OnlyWhatComesByOperationsCanBeRecorded) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, framework: {record: r}"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2}, framework: {record: r}, strategy: {sharded: {stage: 3}}"), "");
  EXPECT_EQ(
      complaint("launch: {ranks: 2}, framework: {record: r}, strategy: hogwild"),
      "config: framework.record: strategy hogwild lets ranks write into each other's memory outside of operations,"
      " which a recording cannot see; use another strategy, or remove framework.record");
  EXPECT_THAT(complaint("launch: {ranks: 2}, framework: {record: r}, strategy: {sharded: {one_copy: true}}"),
              ::testing::HasSubstr("framework.record: strategy sharded with one_copy lets ranks write"));
  EXPECT_EQ(complaint("launch: {ranks: 3}, roles: {server: 1}, framework: {record: r}, strategy: ssp"), "");
  EXPECT_THAT(complaint("framework: {record: r, tune: auto}"),
              ::testing::HasSubstr("framework.record: framework.tune"));
  EXPECT_THAT(complaint("framework: {record: r}, launch: {restarts: 1}"),
              ::testing::HasSubstr("framework.record: launch.restarts"));
}

TEST(Check, TheLastStepsOfARecordingBeginAtACheckpoint) {
  EXPECT_EQ(complaint("framework: {record: r, record_last: 4}, checkpoint: {every_steps: 2, keep_last: 5}"), "");
  EXPECT_EQ(complaint("framework: {record: r, record_last: 3}, checkpoint: {every_steps: 2, keep_last: 5}"),
            "config: framework.record_last: the recording begins at a checkpoint, so 3 must be a multiple of"
            " checkpoint.every_steps, which is 2");
  EXPECT_THAT(complaint("framework: {record: r, record_last: 4}, checkpoint: {every_steps: 2, keep_last: 4}"),
              ::testing::HasSubstr("checkpoint.keep_last: must be at least 5"));
  EXPECT_EQ(complaint("framework: {record_last: 4}"),
            "config: framework.record_last: needs framework.record: the folder");
  EXPECT_EQ(complaint("framework: {record_ranks: [0]}"),
            "config: framework.record_ranks: need framework.record: the folder");
}

}  // namespace
}  // namespace phalanx
