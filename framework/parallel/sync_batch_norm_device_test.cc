// SPDX-License-Identifier: Apache-2.0
// Batch norm over all ranks on devices, which are fake: it waits for nothing, so a graph can record it.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "framework/comm/device_kind.h"
#include "framework/parallel/sync_batch_norm.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

TEST(SyncBatchNormOnDevices, DoesNotMakeTheHostWait) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const c10::Device device(c10::kCUDA, 0);
    const c10::StreamGuard stream(c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(device));
    const auto group = DeviceKinds::Choice("fake").make()->connect(world, device, Seconds(30));
    const at::Tensor here = at::randn({4, 3, 5});
    const at::Tensor input = here.to(device).requires_grad_(), weight = at::ones({3}, at::device(device)),
                     bias = at::zeros({3}, at::device(device));
    const RunningStatistics running{at::zeros({3}, at::device(device)), at::ones({3}, at::device(device)), 0.1};
    testing::FakeGraph graph;
    graph.capture_begin();
    const at::Tensor output = sync_batch_norm(input, weight, bias, running, 1e-5, {group, 4});
    output.square().sum().backward();
    graph.capture_end();
    graph.replay();
    EXPECT_TRUE(at::allclose(output.to(at::kCPU),
                             at::batch_norm(here, at::ones({3}), at::zeros({3}), {}, {}, true, 0.1, 1e-5, false), 1e-4,
                             1e-5));
  });
}

}  // namespace
}  // namespace phalanx
