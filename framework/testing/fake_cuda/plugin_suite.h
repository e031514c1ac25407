// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/full.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "framework/base/error.h"
#include "framework/comm/device_kind.h"
#include "framework/testing/device_ranks.h"
#include "framework/testing/fake_cuda/nccl_faults.h"
#include "framework/testing/fake_cuda/runtime.h"
#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {

/// A rank with a device of its own and a stream, as in a run.
struct Rank {
  CommunicatorPtr host, group;
  c10::Device device;

  at::Tensor full(std::int64_t elements, double value) const {
    return at::full({elements}, value, at::device(device).dtype(at::kFloat));
  }
  void synchronize_device() const { c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeDevice(device.index()); }
};

/// Tests of the plug-in's groups on fakes. Afterwards nothing is broken, and no communicator may be left.
class Plugin : public ::testing::Test {
 protected:
  ~Plugin() override {
    for (int rank = 0; rank < 4; ++rank) break_nccl(rank, ncclSuccess);
    break_cuda(cudaSuccess);
    hold_nccl_aborts(false);
    share_devices(0);
    refuse_ipc(false);
    limit_fake_memory(0);
    EXPECT_EQ(nccl_communicators(), 0) << "a communicator was left behind";
  }

  static void run(int ranks, Seconds timeout, const std::function<void(const Rank&)>& body) {
    run_with_devices(ranks, [&](const CommunicatorPtr& world, c10::Device device) {
      const auto kind = DeviceKinds::Choice("cuda").make();
      body({world, kind->connect(world->split(0, world->rank()), device, timeout), device});
    });
  }
};

/// Returns the error of the body.
inline std::optional<CommError> error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommError& error) {
    return error;
  }
  return {};
}

}  // namespace phalanx::testing
