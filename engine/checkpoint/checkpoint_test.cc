// SPDX-License-Identifier: Apache-2.0
// Saves on P ranks and restores on Q, with different divisions of the update.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/random_part.h"
#include "engine/testing/checkpoints.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::Checkpoints;
using testing::Rank;
using testing::restore_own;
using testing::run_ranks;
using testing::Sharing;

TEST_F(Checkpoints, LoadOnAnyNumberOfRanks) {
  for (const auto saved : {Sharing::kReplicas, Sharing::kShards, Sharing::kRows}) {
    for (const int savers : {1, 2, 3, 4, 7}) {
      fs::remove_all(folder_.path());
      save(savers, saved, 10);
      for (const auto loaded : {Sharing::kReplicas, Sharing::kShards, Sharing::kRows}) {
        for (const int loaders : {1, 2, 4, 5}) expect_loads(loaders, loaded);
      }
    }
  }
}

TEST_F(Checkpoints, EveryElementIsWrittenOnce) {
  for (const auto sharing : {Sharing::kReplicas, Sharing::kShards, Sharing::kRows}) {
    fs::remove_all(folder_.path());
    save(3, sharing, 1);
    std::int64_t weights = 0, momentum = 0;
    for (const auto& entry : fs::directory_iterator(folder_.final_path(1))) {
      if (entry.path().extension() != ".safetensors") continue;
      for (const auto& [name, tensor] : load_safetensors(entry.path())) {
        (name.starts_with("optimizer/momentum/") ? momentum : weights) += tensor.numel();
      }
    }
    EXPECT_EQ(weights, 15 + 7 + 1 + 2);
    EXPECT_EQ(momentum, 15 + 7 + 1);
  }
}

TEST_F(Checkpoints, WeightsHaveTheirNamesAndShapes) {
  save(1, Sharing::kReplicas, 1);
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : load_safetensors(folder_.final_path(1) + "/weights-00001-of-00001.safetensors")) {
    shapes[name] = tensor.sizes().vec();
  }
  EXPECT_THAT(shapes, ::testing::ElementsAre(::testing::Pair("a.bias", std::vector<std::int64_t>{7}),
                                             ::testing::Pair("a.weight", std::vector<std::int64_t>{5, 3}),
                                             ::testing::Pair("running", std::vector<std::int64_t>{2}),
                                             ::testing::Pair("scale", std::vector<std::int64_t>{})));
}

TEST_F(Checkpoints, AreWrittenDuringTraining) {
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {.keep_last = 100}, world, rank.state);
    for (std::int64_t step = 1; step <= 60; ++step) {
      rank.fill(static_cast<float>(step));
      checkpointer.advance();
      if (step % 20 == 0) checkpointer.save(at_step(step), true);
    }
    checkpointer.settle();
    EXPECT_EQ(checkpointer.written(), 3);
    EXPECT_EQ(checkpointer.failed(), 0);
  });
  expect_loads(2, Sharing::kReplicas, 60);
}

TEST_F(Checkpoints, EachRankGetsItsPartsBack) {
  const auto load = [](double& value, const SavedRanks& saved) {
    value = 0;
    for (int rank = 0; rank < saved.ranks; ++rank) {
      for (const auto& [name, tensor] : saved.of(rank)) value = 10 * value + tensor.item<double>();
    }
  };
  const auto part = [&](double& value, bool every_rank) {
    return CheckpointPart{.name = every_rank ? "own" : "common",
                          .save = [&value] { return NamedTensors{{"value", at::full({1}, value, at::kDouble)}}; },
                          .load = [&value, &load](const SavedRanks& saved) { load(value, saved); },
                          .every_rank = every_rank};
  };
  const auto run = [&](int ranks, bool loads, double expected_own, double expected_common) {
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world);
      double own = 1 + world->rank(), common = 5;
      rank.state.parts = {part(own, true), part(common, false)};
      if (loads) {
        restore_own(read_checkpoint(folder_.final_path(1)), rank, *world);
        EXPECT_EQ(own, expected_own);
        EXPECT_EQ(common, expected_common);
      } else {
        Checkpointer checkpointer(folder_, {}, world, rank.state);
        checkpointer.save(at_step(1), true);
        checkpointer.settle();
      }
    });
  };
  run(3, false, 0, 0);
  run(2, true, 123, 5);  // only rank 0 has saved the common part
}

TEST_F(Checkpoints, DifferentReplicasReturnToTheirRanks) {
  const auto shift = [](int rank) { return static_cast<float>(1 + rank); };
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.fill(shift(world->rank()));
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    checkpointer.save(at_step(1), /*replicas_equal=*/false);
    checkpointer.settle();
  });
  for (const int ranks : {2, 3}) {
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world), expected(*world);
      restore_own(read_checkpoint(folder_.final_path(1)), rank, *world);
      expected.fill(shift(ranks == 2 ? world->rank() : 0));
      EXPECT_TRUE(at::equal(rank.weight, expected.weight));
      EXPECT_TRUE(at::equal(rank.optimizer->state().at(0).values, expected.optimizer->state().at(0).values));
    });
  }
}

TEST_F(Checkpoints, RandomNumbersContinue) {
  at::Tensor expected;
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.state.parts = {random_part(0)};
    at::randn({100});
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    checkpointer.save(at_step(1), true);
    expected = at::randn({100});
    checkpointer.settle();
    at::randn({77});
    restore(read_checkpoint(folder_.final_path(1)), rank.state, 0);
    EXPECT_TRUE(at::equal(at::randn({100}), expected));
  });
}

TEST_F(Checkpoints, NewRanksDrawOtherRandomNumbersThanSavedOnes) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.state.parts = {random_part(0)};
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    checkpointer.save(at_step(1), true);
    checkpointer.settle();
    const auto drawn_by = [&](int number) {
      rank.state.parts = {random_part(number)};
      restore(read_checkpoint(folder_.final_path(1)), rank.state, 0);
      return at::randn({100});
    };
    const at::Tensor first = drawn_by(0), second = drawn_by(1), third = drawn_by(2);
    EXPECT_FALSE(at::equal(second, first));
    EXPECT_FALSE(at::equal(third, first));
    EXPECT_FALSE(at::equal(third, second));
    EXPECT_TRUE(at::equal(drawn_by(2), third)) << "the same each time";
  });
}

}  // namespace
}  // namespace phalanx
