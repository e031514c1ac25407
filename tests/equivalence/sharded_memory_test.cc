// SPDX-License-Identifier: Apache-2.0
// Measures the memory of training with a counting allocator. With stage 3 of strategy `sharded`, one of four ranks
// holds little more than a quarter of the states (values, gradients, optimizer state) of a model of equal blocks.
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/experiment/experiment.h"
#include "engine/run_folder.h"
#include "framework/comm/decorator.h"
#include "framework/testing/counting_allocator.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::CpuBytes;

// Counts the memory that communicators allocate: the memory that ranks communicate fastest comes from their backend.
class CountingCommunicator final : public Decorator {
 public:
  using Decorator::Decorator;

  at::Tensor do_allocate(const Allocation& allocation) override {
    const at::Tensor memory = Decorator::do_allocate(allocation);
    const auto bytes = static_cast<std::int64_t>(memory.nbytes());
    CpuBytes::add(bytes);
    return at::from_blob(
        memory.mutable_data_ptr(), memory.sizes(), [memory, bytes](void*) { CpuBytes::subtract(bytes); },
        memory.options());
  }

 private:
  CommunicatorPtr wrap(CommunicatorPtr child) override {
    return std::make_shared<CountingCommunicator>(std::move(child));
  }
};

constexpr int kLayers = 48, kWidth = 256;  // as many as pixels

// Returns the bytes per rank after the last step, outside of forward and backward.
double bytes_between_steps(int ranks, const std::string& strategy) {
  std::string hidden = std::to_string(kWidth);
  for (int i = 1; i < kLayers; ++i) hidden += ", " + std::to_string(kWidth);
  const auto config = testing::training_config(
      {"model={name: mlp, hidden: [" + hidden + "]}", "strategy=" + strategy, "optimizer=adam", "train.max_steps=3",
       "train.global_batch_size=8", "framework.bucket_bytes=256KB", "checkpoint.final_weights=false",
       "dataset={name: digits, train_samples: 40, test_samples: 8, side: 16}"});
  const std::string path = ::testing::TempDir() + "/memory";
  std::filesystem::remove_all(path);
  RunFolder::create(path);
  double bytes = 0;
  testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& ranks_of_all) {
    const auto world = std::make_shared<CountingCommunicator>(ranks_of_all);
    at::set_num_threads(1);
    world->barrier().wait();
    const std::int64_t before = CpuBytes::live();
    world->barrier().wait();
    const auto look = [&](Engine& engine) {
      engine.on(Event::kUpdate, [&](State& state) {
        if (state.step != 3) return;
        world->barrier().wait();
        if (world->rank() == 0) bytes = static_cast<double>(CpuBytes::live() - before) / ranks;
        world->barrier().wait();
      });
    };
    (void)run_experiment(
        config, {.world = world, .splits = config.dataset.make(), .folder = RunFolder(path), .add_hooks = look});
  });
  return bytes;
}

TEST(ShardedMemory, IsLittleMoreThanAQuarterOnFourRanksBetweenSteps) {
  CpuBytes::count();
  const double whole = bytes_between_steps(1, "single");
  const double states = 4.0 * sizeof(float) * kLayers * kWidth * kWidth;
  EXPECT_GT(whole, states) << "values, gradients and two moments are counted";
  EXPECT_LT(whole, 1.1 * states) << "and little else";
  const double stage1 = bytes_between_steps(4, "sharded") / whole,
               stage2 = bytes_between_steps(4, "{sharded: {stage: 2}}") / whole,
               stage3 = bytes_between_steps(4, "{sharded: {stage: 3}}") / whole;
  std::printf("of the states of one process: stage 1 %.3f, stage 2 %.3f, stage 3 %.3f\n", stage1, stage2, stage3);
  EXPECT_NEAR(stage1, 2.5 / 4, 0.04);
  EXPECT_NEAR(stage2, 1.75 / 4, 0.04);
  EXPECT_LT(stage3, 0.30);
  EXPECT_GT(stage3, 0.25) << "all ranks together have the whole state";
}

}  // namespace
}  // namespace phalanx
