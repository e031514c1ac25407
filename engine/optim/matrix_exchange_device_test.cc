// SPDX-License-Identifier: Apache-2.0
// Tests MatrixExchange on (pretended) devices.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/optim/matrix_exchange.h"
#include "framework/comm/device_kind.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

TEST(MatrixExchangeOfDevices, GathersAndComputesOnTheDevice) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto kind = DeviceKinds::Choice("pretend").make();
    const c10::Device device(kind->type(), static_cast<c10::DeviceIndex>(world->rank()));
    const auto group = kind->connect(world, device, Seconds(20));
    const Placement placement{.shape = {6, 4}, .dim = 0, .ranges = {nearly_equal_part(6, world->rank(), 2)}};
    MatrixExchange exchange(group, {{"weight", placement}}, at::device(device).dtype(at::kDouble));
    exchange.attach({"weight"});
    const at::Tensor whole = at::arange(24, at::kDouble).view({6, 4});
    const std::vector<at::Tensor> parts{placement.take(whole).to(device)};
    exchange.update(parts, [&](const at::Tensor& gathered) {
      EXPECT_EQ(gathered.device(), device);
      return gathered * gathered.sum();
    });
    EXPECT_TRUE(at::equal(parts[0].to(at::kCPU), placement.take(whole * whole.sum())));
  });
}

}  // namespace
}  // namespace phalanx
