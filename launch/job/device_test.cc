// SPDX-License-Identifier: Apache-2.0
// Devices of ranks, which are fake, as is NCCL.
#include "launch/job/device.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "framework/backends/device/device_communicator.h"
#include "framework/testing/fake_cuda/nccl_faults.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::nccl_calls;
using testing::run_ranks;

ExperimentConfig config_with(const std::string& backend) {
  ExperimentConfig config;
  config.device = "cuda";
  config.backend = backend;
  return config;
}

// A group that performs operations on device memory itself, like a CUDA-aware MPI, and counts them.
CommunicatorPtr cuda_aware(CommunicatorPtr world, std::shared_ptr<std::atomic<int>> asked) {
  return std::make_shared<DeviceCommunicator>(std::move(world), c10::kCUDA,
                                              DeviceCommunicator::Paths{.direct = [asked](const Operation&) {
                                                ++*asked;
                                                return false;
                                              }});
}

TEST(Devices, AreConnectedByNcclEvenIfTheBackendTakesTheirTensors) {
  const long before = nccl_calls("ncclAllReduce");
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto asked = std::make_shared<std::atomic<int>>(0);
    const auto assigned = choose_devices(config_with("inproc"), cuda_aware(world, asked));
    EXPECT_EQ(assigned.device.index(), world->rank());
    const at::Tensor tensor = at::full({3}, 1.0, at::device(assigned.device));
    assigned.world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), 2);
    EXPECT_EQ(asked->load(), 0);
    const at::Tensor bits = at::full({3}, 1, at::device(assigned.device).dtype(at::kShort));
    assigned.world->all_reduce(bits, Reduction::kSum).wait();
    EXPECT_EQ(bits[0].item<int>(), 2);
    EXPECT_EQ(asked->load(), 1) << "what NCCL lacks is passed on";
  });
  EXPECT_EQ(nccl_calls("ncclAllReduce"), before + 2);
}

TEST(Devices, AreConnectedForASingleRankOfBackendNccl) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const auto assigned = choose_devices(config_with("nccl"), world);
    EXPECT_TRUE(assigned.world->takes(c10::kCUDA));
    EXPECT_TRUE(assigned.world->allocate({3}, at::device(assigned.device)).is_cuda());
  });
}

}  // namespace
}  // namespace phalanx
