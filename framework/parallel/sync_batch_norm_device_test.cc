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

#include <cstdint>
#include <functional>

#include "framework/comm/device_kind.h"
#include "framework/parallel/sync_batch_norm.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/streams.h"
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

// The ranks of a group on devices, each of which has a device of its own and a stream.
struct RankOnDevice {
  CommunicatorPtr group, host;
  c10::Device device;
};

void run_on_devices(int ranks, const std::function<void(const RankOnDevice&)>& body) {
  testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(world->rank()));
    const c10::impl::VirtualGuardImpl devices(c10::kCUDA);
    devices.setDevice(device);
    const c10::StreamGuard stream(devices.getStreamFromGlobalPool(device));
    const auto host = world->split(0, world->rank());
    body({DeviceKinds::Choice("fake").make()->connect(host, device, Seconds(30)), world, device});
  });
}

// Returns how often the hosts of all ranks wait for a device in `body`. Collective.
std::int64_t waits_of_all(const RankOnDevice& rank, const std::function<void()>& body) {
  rank.host->barrier().wait();
  const auto before = testing::Streams::global().host_waits();
  rank.host->barrier().wait();
  body();
  rank.host->barrier().wait();
  const auto after = testing::Streams::global().host_waits();
  rank.host->barrier().wait();
  return after - before;
}

// On the fake device, the collectives themselves make the hosts wait.
TEST(SyncBatchNormOnDevices, OfSeveralRanksWaitsForNothingButTheCollectives) {
  constexpr std::int64_t kSamples = 4, kChannels = 3;
  for (const int ranks : {2, 3}) {
    const at::Tensor all = at::randn({ranks * kSamples, kChannels, 5});
    run_on_devices(ranks, [&](const RankOnDevice& rank) {
      const auto here = at::device(rank.device);
      const auto numbers = here.dtype(at::kDouble);
      const at::Tensor moments = at::zeros({ranks, 1 + 2 * kChannels}, numbers),
                       sums = at::zeros({2 * kChannels}, numbers);
      const auto communicate = [&] {
        rank.group->all_gather(moments, at::zeros({1 + 2 * kChannels}, numbers)).wait();
        rank.group->all_reduce(sums, Reduction::kSum).wait();
      };
      communicate();  // opens what the ranks use from then on
      const auto expected = waits_of_all(rank, communicate);

      const at::Tensor own = all.narrow(0, kSamples * rank.host->rank(), kSamples),
                       input = own.to(rank.device).requires_grad_(), weight = at::ones({kChannels}, here),
                       bias = at::zeros({kChannels}, here);
      const RunningStatistics running{at::zeros({kChannels}, here), at::ones({kChannels}, here), 0.1};
      at::Tensor output;
      const auto waits = waits_of_all(rank, [&] {
        output = sync_batch_norm(input, weight, bias, running, 1e-5, {rank.group, kSamples});
        output.square().sum().backward();
      });
      EXPECT_EQ(waits, expected);
      const at::Tensor whole =
          at::batch_norm(all, at::ones({kChannels}), at::zeros({kChannels}), {}, {}, true, 0.1, 1e-5, false);
      EXPECT_TRUE(
          at::allclose(output.to(at::kCPU), whole.narrow(0, kSamples * rank.host->rank(), kSamples), 1e-4, 1e-5));
    });
  }
}

}  // namespace
}  // namespace phalanx
