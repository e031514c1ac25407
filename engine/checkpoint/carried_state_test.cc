// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/carried_state.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/testing/checkpoints.h"

namespace phalanx {
namespace {

using testing::Rank;
using testing::run_ranks;

// Returns a part with one value. `from` returns the number of the saved rank whose value this rank loads.
CheckpointPart part_of_value(double& value, const std::string& name, bool every_rank, int from) {
  return {.name = name,
          .save = [&value] { return NamedTensors{{"value", at::full({1}, value, at::kDouble)}}; },
          .load = [&value, from](const SavedRanks& saved) { value = saved.of(from).at(0).second.item<double>(); },
          .every_rank = every_rank};
}

TEST(CarriedState, ComesFromTheFurthestRankExceptForWhatBelongsToEachRank) {
  constexpr int kRanks = 3;
  for (int furthest = 0; furthest < kRanks; ++furthest) {
    run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
      const bool ahead = world->rank() == furthest;
      Rank rank(*world);
      double own = 10 + world->rank(), common = ahead ? 7 : 5, read = ahead ? 8 : 6;
      rank.state.parts = {part_of_value(own, "own", /*every_rank=*/true, world->rank()),
                          part_of_value(common, "common", /*every_rank=*/false, 0)};
      rank.state.parts.push_back({.name = "read",
                                  .save = [&] { return NamedTensors{{"value", at::full({1}, read, at::kDouble)}}; },
                                  .load =
                                      [&](const SavedRanks& saved) {
                                        const at::Tensor into = at::full({1}, 0.0, at::kDouble);
                                        EXPECT_TRUE(saved.read("value", nullptr, into));
                                        read = into.item<double>();
                                      }});
      rank.fill(ahead ? 3.0F : 2.0F);
      const std::int64_t step = ahead ? 6 : 5;
      const auto carried =
          carry(rank.state, {.position = {.step = step, .epoch = 1}, .updates = step}, StepStage::kDone);
      own = common = read = 0;
      rank.fill(99);

      const auto position = restore_carried(carried, rank.state, *world);
      EXPECT_EQ(position.manifest.position.step, 6);
      EXPECT_EQ(own, 10 + world->rank()) << "furthest: " << furthest;
      EXPECT_EQ(common, 7) << "furthest: " << furthest;
      EXPECT_EQ(read, 8) << "furthest: " << furthest;
      EXPECT_EQ(rank.scalar.item<float>(), -3) << "furthest: " << furthest;
    });
  }
}

TEST(Recovery, CountsRepeatedTrainingOnceIfTheRunGoesBackSeveralTimes) {
  Recovery recovery;
  recovery.add_repeated(2);
  recovery.add_repeated(3);  // to an older copy, since the newer one was lost as well
  recovery.add_repeated(3);
  recovery.add_repeated(-1);  // to a copy that was taken after the run had gone back
  EXPECT_EQ(recovery.repeated_seconds, 3);
  EXPECT_EQ(recovery.lost_seconds, 0) << "training does not go on yet";
}

}  // namespace
}  // namespace phalanx
