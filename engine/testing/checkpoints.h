// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/choose.h"
#include "engine/checkpoint/restore.h"
#include "framework/base/config/config.h"
#include "framework/partition/slice.h"
#include "framework/testing/worlds.h"

// Helpers for tests of checkpoints: ranks with a small model and its optimizer, which are saved and restored.
namespace phalanx::testing {

/// The parameters that a rank updates: all, its own part of each bucket, or its own rows of each parameter.
enum class Sharing { kReplicas, kShards, kRows };

/// Returns a slice in its own memory, with these segments.
inline Slice slice_of(std::vector<Segment> segments) {
  const std::int64_t size = segments.empty() ? 0 : segments.back().end();
  return {at::zeros({size}), at::zeros({size}), std::move(segments)};
}

/// A model of three parameters and a buffer, with an optimizer, on one rank.
struct Rank {
  explicit Rank(Communicator& world, Sharing sharing = Sharing::kReplicas, std::int64_t width = 3,
                const std::string& optimizer_yaml = "{name: sgd, momentum: 0.9}")
      : weight(at::zeros({5, width})), bias(at::zeros({7})), scalar(at::zeros({})), buffer(at::zeros({2})) {
    flat = std::make_unique<FlatParameters>(NamedTensors{{"a.weight", weight}, {"a.bias", bias}, {"scale", scalar}},
                                            world, 48);
    optimizer = config::load_as<Optimizers::Choice>("optimizer", optimizer_yaml, "test.yaml").make({});
    for (const auto& bucket : flat->buckets()) {
      if (sharing == Sharing::kRows) {
        state.slices.push_back(slice_of(row_shards(bucket.segments, world.rank(), world.size())));
        continue;
      }
      const auto size = bucket.values.numel();
      const auto begin = sharing == Sharing::kShards ? size * world.rank() / world.size() : 0;
      const auto end = sharing == Sharing::kShards ? size * (world.rank() + 1) / world.size() : size;
      state.slices.push_back(part(whole(bucket), begin, end - begin));
    }
    optimizer->attach(state.slices);
    state.parameters = flat.get();
    state.optimizer = optimizer.get();
    state.buffers = {{"running", buffer}};
    state.owns_buffers = world.rank() == 0;
  }

  /// Sets values that depend only on parameter and element, not on how parameters are sharded.
  void fill(float shift) {
    weight.copy_(at::arange(weight.numel(), at::kFloat).view(weight.sizes()) + shift);
    bias.copy_(at::arange(7, at::kFloat) * 2 + shift);
    scalar.fill_(-shift);
    buffer.fill_(shift / 2);
    for (auto& remembered : optimizer->state()) {
      for (const auto& segment : state.slices[remembered.slice].segments) {
        const float first = 100 * static_cast<float>(segment.name.size()) + shift;
        remembered.values.narrow(0, segment.begin, segment.count)
            .copy_(at::arange(segment.count, at::kFloat) + static_cast<float>(segment.offset) + first);
      }
    }
  }

  at::Tensor weight, bias, scalar, buffer;
  std::unique_ptr<FlatParameters> flat;
  std::unique_ptr<Optimizer> optimizer;
  RunState state;
};

/// Restores each rank's own replica if the number of ranks is the same.
inline void restore_own(const Checkpoint& checkpoint, Rank& rank, const Communicator& world) {
  restore(checkpoint, rank.state, checkpoint.manifest.ranks == world.size() ? world.rank() : 0);
}

/// Saves and restores in a folder of the test, on ranks that are threads.
class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() { std::filesystem::remove_all(folder_.path()); }

  static Manifest at_step(std::int64_t step) {
    return {.position = {step, 1, 2}, .updates = step, .identity = {{"seed", "1"}}};
  }

  /// Saves on ranks that divide the momentum according to `sharing`, with values from fill(shift).
  void save(int ranks, Sharing sharing, std::int64_t step, float shift = 0.5f) {
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world, sharing);
      rank.fill(shift);
      Checkpointer checkpointer(folder_, {}, world, rank.state);
      checkpointer.save(at_step(step), true);
      rank.fill(99);  // training goes on
      checkpointer.settle();
      EXPECT_EQ(checkpointer.failure(), "");
      EXPECT_EQ(checkpointer.written(), 1);
    });
  }

  Choice choose_here(const std::string& resume, Rank& rank, Communicator& world, const std::string& seed = "1") {
    return choose(resume, folder_, {{"seed", seed}}, rank.state, world);
  }

  /// Expects that the newest checkpoint can be restored on `ranks` ranks, with the saved values.
  void expect_loads(int ranks, Sharing sharing, float shift = 0.5f) {
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world, sharing), expected(*world, sharing);
      expected.fill(shift);
      const auto choice = choose_here("auto", rank, *world);
      ASSERT_TRUE(choice.checkpoint);
      restore_own(*choice.checkpoint, rank, *world);
      EXPECT_TRUE(at::equal(rank.weight, expected.weight));
      EXPECT_TRUE(at::equal(rank.bias, expected.bias));
      EXPECT_TRUE(at::equal(rank.scalar, expected.scalar));
      const auto state = rank.optimizer->state(), wanted = expected.optimizer->state();
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(state[i].values, wanted[i].values));
      EXPECT_EQ(rank.optimizer->updates(), choice.checkpoint->manifest.updates);
    });
  }

  const CheckpointFolder folder_{::testing::TempDir() + "/run/checkpoints"};
};

}  // namespace phalanx::testing
