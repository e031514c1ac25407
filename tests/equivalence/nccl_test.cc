// SPDX-License-Identifier: Apache-2.0
// Compares training with a device per rank and NCCL with training in one process on the CPU. Devices and NCCL are fake
// (framework/testing/fake_cuda), but the plug-in's code is the one that runs on a GPU.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "framework/comm/device_kind.h"
#include "framework/testing/fake_device/streams.h"
#include "tests/equivalence/mesh_runs.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::Streams;

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

}  // namespace
}  // namespace phalanx
