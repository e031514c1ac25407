// SPDX-License-Identifier: Apache-2.0
// Compares training with a device per rank and NCCL with training in one process on the CPU. Devices and NCCL are fake
// (framework/testing/fake_cuda), but the plug-in's code is the one that runs on a GPU.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "framework/base/text.h"
#include "framework/comm/device_kind.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/fake_cuda/nccl_faults.h"
#include "framework/testing/fake_device/streams.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/mesh_runs.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::Streams;
using testing::Trained;

// Model, ranks, settings of both runs, settings of the run with NCCL.
using Case = std::tuple<std::string, int, Changes, Changes>;

class Nccl : public ::testing::TestWithParam<Case> {
 protected:
  ~Nccl() override { Streams::global().set_mode(Streams::Mode::kEager); }

  static void expect_trains_as_one_rank() {
    auto [kind, ranks, both, own] = GetParam();
    own.insert(own.begin(), "device=cuda");
    testing::expect_equals_one_rank(kind, ranks, own, both);
  }
};

// Loads the plug-in before ranks are forked.
class LoadedPlugin final : public ::testing::Environment {
 public:
  void SetUp() override { ASSERT_EQ(DeviceKinds::Choice("cuda").make()->missing(), ""); }
};
const auto* const plugin_loaded = ::testing::AddGlobalTestEnvironment(new LoadedPlugin);

TEST_P(Nccl, TrainsAsTheCpu) { expect_trains_as_one_rank(); }

TEST_P(Nccl, TrainsAsTheCpuOnDeferredStreams) {
  Streams::global().set_mode(Streams::Mode::kDeferred, 1);
  expect_trains_as_one_rank();
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, Nccl,
    ::testing::Values(Case{"mlp", 2, {"train.clip_norm=0.1"}, {"strategy=all_reduce"}},
                      Case{"mlp", 3, {"train.clip_norm=0.1"}, {"strategy=overlapped"}},
                      Case{"mlp", 2, {"train.clip_norm=0.1"}, {"strategy=sharded"}},
                      Case{"mlp", 4, {"seed=1"}, {"strategy={intra: sharded, inter: all_reduce, ranks_per_group: 2}"}},
                      Case{"gpt", 2, {"train.clip_norm=0.1"}, {"strategy={sharded: {stage: 3}}"}},
                      Case{"mlp", 2, {"seed=3"}, {"train.cuda_graph=true", "strategy=all_reduce"}},
                      Case{"gpt", 2, {"seed=3"}, {"mesh.tensor=2"}}));

struct GraphRun {
  Trained trained;
  long reductions;  // that the host has launched
};

GraphRun run_graphs(const CommunicatorPtr& world, const std::string& graphs, const Changes& own) {
  Changes changes{"device=cuda", "train.precision=fp32", "train.global_batch_size=32", "framework.bucket_bytes=8KB",
                  "train.cuda_graph=" + graphs};
  changes.insert(changes.end(), own.begin(), own.end());
  const long before = testing::nccl_calls("ncclAllReduce");
  auto trained = testing::train(testing::config_of("mlp", changes), world,
                                testing::file_name(join(own, "_") + "_graphs_" + graphs));
  return {std::move(trained), testing::nccl_calls("ncclAllReduce") - before};
}

// Runs on two ranks whose graphs contain the whole step. They compute the same bits as runs that launch everything. The
// last batch of an epoch is smaller, and launches everything in either case.
class WholeStepGraphs : public ::testing::TestWithParam<Changes> {
 protected:
  ~WholeStepGraphs() override { Streams::global().set_mode(Streams::Mode::kEager); }

  static void expect_same_bits() {
    testing::run_ranks(testing::kBackend, 2, [](const CommunicatorPtr& world) {
      const GraphRun launched = run_graphs(world, "false", GetParam()),
                     recorded = run_graphs(world, "true", GetParam());
      EXPECT_TRUE(at::equal(recorded.trained.weights, launched.trained.weights));
      EXPECT_EQ(recorded.trained.update, launched.trained.update);
      EXPECT_EQ(recorded.trained.test, launched.trained.test);
      EXPECT_LT(2 * recorded.reductions, launched.reductions) << "most steps are replays";
      for (const auto& [name, value] : recorded.trained.update) {
        if (name == "skipped_updates") {
          EXPECT_GT(value, 1);
        }
      }
    });
  }
};

TEST_P(WholeStepGraphs, ComputeTheSameBits) { expect_same_bits(); }

TEST_P(WholeStepGraphs, ComputeTheSameBitsOnDeferredStreams) {
  Streams::global().set_mode(Streams::Mode::kDeferred, 2);
  expect_same_bits();
}

// With fp16, the scale grows in every step until gradients overflow.
INSTANTIATE_TEST_SUITE_P(Strategies, WholeStepGraphs,
                         ::testing::Values(Changes{"strategy=all_reduce", "schedule=cosine"},
                                           Changes{"strategy=overlapped", "schedule=cosine", "train.clip_norm=0.1",
                                                   "watch.nan_guard.every_steps=3"},
                                           Changes{"strategy=overlapped",
                                                   "optimizer={name: sgd, lr: 0.1, momentum: 0.9}"},
                                           Changes{"strategy=all_reduce", "train.precision=fp16", "train.clip_norm=1",
                                                   "train.loss_scale.growth_interval=1"}));

// The only sample of each epoch belongs to rank 0, whose batches repeat, while those of rank 1 are padding.
TEST(WholeStepGraphsOfSomeRanks, AreReplayedByNone) {
  testing::run_ranks(testing::kBackend, 2, [](const CommunicatorPtr& world) {
    const Changes one_sample{"strategy=all_reduce", "dataset.train_samples=1", "train.epochs=12"};
    const GraphRun launched = run_graphs(world, "false", one_sample), recorded = run_graphs(world, "true", one_sample);
    EXPECT_TRUE(at::equal(recorded.trained.weights, launched.trained.weights));
    EXPECT_EQ(recorded.reductions, launched.reductions);
  });
}

TEST(WholeStepGraphRefusals, NameWhatTheGraphCannotContain) {
  const auto refused = [](const std::string& strategy, const std::string& change, const char* part) {
    testing::expect_refused(
        2, "mlp", {"device=cuda", "train.precision=fp32", "train.cuda_graph=true", "strategy=" + strategy, change},
        part);
  };
  refused("overlapped", "optimizer=lion", "the optimizer takes the learning rate from the host; use all_reduce");
  refused("overlapped", "train.ema_decay=0.9", "train.ema_decay computes");
  refused("{overlapped: {compression: int8}}", "seed=4", "does more than reduce gradients on the device");
}

}  // namespace
}  // namespace phalanx
