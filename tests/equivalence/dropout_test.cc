// SPDX-License-Identifier: Apache-2.0
// Tests dropout on ranks that are processes: each rank draws its own numbers, draws the same in every run, and
// continues with them after a resume.
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/testing/worlds.h"
#include "tests/equivalence/dropout_model.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::dropped;
using testing::run_ranks;
using testing::train;
using testing::training_config;

// Trains 12 steps, or from the checkpoint until it is stopped; 2 and 4 divide the 76 samples. Returns what this rank
// drops.
at::Tensor drop(const CommunicatorPtr& world, const std::string& run, std::vector<std::string> changes = {},
                int stop_after = -1) {
  changes.insert(changes.end(), {"model=dropout_under_test", "train.global_batch_size=76", "train.max_steps=12",
                                 "dataset.train_samples=456"});
  int steps = 0;
  train(training_config(changes), world, run, [&] { return ++steps == stop_after; });
  return at::concat(std::exchange(dropped(), {})).flatten();
}

TEST(Dropout, RanksDropDifferentValues) {
  run_ranks("shm", 4, [](const CommunicatorPtr& world) {
    const at::Tensor own = drop(world, "own"), all = at::zeros({world->size(), own.numel()});
    world->all_gather(all, own).wait();
    for (int rank = 1; rank < world->size(); ++rank) {
      for (int other = 0; other < rank; ++other) EXPECT_FALSE(at::equal(all[rank], all[other])) << rank << other;
    }
  });
}

TEST(Dropout, TheSameConfigDropsTheSameValues) {
  run_ranks("shm", 2, [](const CommunicatorPtr& world) {
    EXPECT_TRUE(at::equal(drop(world, "first"), drop(world, "second"))) << "rank " << world->rank();
    EXPECT_FALSE(at::equal(drop(world, "again"), drop(world, "other", {"seed=2"}))) << "rank " << world->rank();
  });
}

TEST(Dropout, EachRankResumesItsOwnRandomNumbers) {
  run_ranks("shm", 2, [](const CommunicatorPtr& world) {
    const at::Tensor whole = drop(world, "whole"), before = drop(world, "stopped", {}, 5);
    world->barrier().wait();
    const at::Tensor after = drop(world, "stopped", {"checkpoint.resume=auto"});
    EXPECT_TRUE(at::equal(at::concat({before, after}), whole)) << "rank " << world->rank();
  });
}

}  // namespace
}  // namespace phalanx
