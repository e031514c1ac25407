// SPDX-License-Identifier: Apache-2.0
// Device memory that ranks can access in each other: operations on memory allocated by the group work in place. Ranks
// have their own fake devices or share one.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <tuple>

#include "framework/comm/device_kind.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

// Parameters: number of ranks, number of devices.
class PeerGroups : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  struct Rank {
    CommunicatorPtr group, host;
    c10::Device device;

    at::Tensor allocate(at::IntArrayRef sizes, at::ScalarType dtype) const {
      return group->allocate(sizes, at::device(device).dtype(dtype));
    }
  };

  static void run(const std::function<void(const Rank&)>& body) {
    const auto [ranks, devices] = GetParam();
    run_ranks("inproc", ranks, [&, devices = devices](const CommunicatorPtr& world) {
      const auto kind = DeviceKinds::Choice("fake").make();
      const c10::Device device(kind->type(), static_cast<c10::DeviceIndex>(world->rank() % devices));
      const auto host = world->split(0, world->rank());
      body({kind->connect(host, device, Seconds(20)), world, device});
    });
  }

  // Returns the input of one rank: small integers, so no dtype rounds their sums.
  static at::Tensor values(int rank, std::int64_t count, at::ScalarType dtype) {
    return at::arange(count, at::kLong).add_(3 * rank).remainder_(7).to(dtype);
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, PeerGroups,
                         ::testing::Values(std::tuple(2, 1), std::tuple(2, 2), std::tuple(3, 1), std::tuple(4, 2)));

TEST_P(PeerGroups, ReduceTheirOwnMemoryInPlace) {
  run([](const Rank& rank) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt}) {
      const at::Tensor memory = rank.allocate({5000}, dtype);
      EXPECT_EQ(memory.device(), rank.device);
      for (const auto kind : {Reduction::kSum, Reduction::kMax, Reduction::kMin, Reduction::kMean}) {
        const at::Tensor expected = values(rank.host->rank(), 5000, dtype);
        memory.copy_(expected);
        rank.group->all_reduce(memory, kind).wait();
        rank.host->all_reduce(expected, kind).wait();
        EXPECT_TRUE(at::equal(memory.to(at::kCPU), expected)) << to_string(kind) << ' ' << c10::toString(dtype);
      }
    }
  });
}

TEST_P(PeerGroups, WorkOnPartsOfTheirMemory) {
  run([](const Rank& rank) {
    const at::Tensor memory = rank.allocate({3, 1001}, at::kFloat);
    const at::Tensor part = memory[1].narrow(0, 5, 700);
    part.copy_(values(rank.host->rank(), 700, at::kFloat));
    rank.group->broadcast(part, rank.host->size() - 1).wait();
    EXPECT_TRUE(at::equal(part.to(at::kCPU), values(rank.host->size() - 1, 700, at::kFloat)));
    part.fill_(rank.host->rank() + 1);
    rank.group->reduce(part, Reduction::kSum, 0).wait();
    const auto n = rank.host->size();
    if (rank.host->rank() == 0) {
      EXPECT_TRUE(at::equal(part.to(at::kCPU), at::full({700}, n * (n + 1) / 2.0F)));
    }
    EXPECT_TRUE(at::equal(memory[0].to(at::kCPU), at::zeros({1001})));
    EXPECT_TRUE(at::equal(memory[2].to(at::kCPU), at::zeros({1001})));
  });
}

// If a rank uses other memory, or memory of another allocation, all ranks use windows.
TEST_P(PeerGroups, UseWindowsIfTheirMemoryDiffers) {
  run([](const Rank& rank) {
    const at::Tensor first = rank.allocate({2000}, at::kFloat), second = rank.allocate({2000}, at::kFloat);
    const at::Tensor other = at::zeros({2000}, at::device(rank.device));
    const at::Tensor odd = rank.host->rank() == 1 ? other : first, even = rank.host->rank() == 1 ? first : second;
    for (const at::Tensor& tensor : {odd, even, other}) {
      tensor.fill_(rank.host->rank() + 1);
      rank.group->all_reduce(tensor, Reduction::kSum).wait();
      const auto n = rank.host->size();
      EXPECT_TRUE(at::equal(tensor.to(at::kCPU), at::full({2000}, n * (n + 1) / 2.0F)));
    }
  });
}

TEST_P(PeerGroups, CanBeSplit) {
  run([](const Rank& rank) {
    const auto half = rank.group->split(rank.host->rank() % 2, rank.host->rank());
    const at::Tensor memory = half->allocate({100}, at::device(rank.device).dtype(at::kFloat));
    memory.fill_(1);
    half->all_reduce(memory, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(memory.to(at::kCPU), at::full({100}, static_cast<float>(half->size()))));
    memory.fill_(1);
    rank.group->all_reduce(memory, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(memory.to(at::kCPU), at::full({100}, static_cast<float>(rank.host->size()))));
  });
}

}  // namespace
}  // namespace phalanx
