// SPDX-License-Identifier: Apache-2.0
// Tests of allocate() and allocate_shared().
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Allocating : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Allocating, ::testing::ValuesIn(world_sizes()), ranks_of);

TEST_P(Allocating, GivesZeroedMemoryOfEveryDtype) {
  run([](const CommunicatorPtr& world) {
    for (const auto dtype : all_dtypes()) {
      const at::Tensor tensor = world->allocate({3, 1000}, dtype);
      EXPECT_EQ(tensor.scalar_type(), dtype);
      EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{3, 1000}));
      EXPECT_EQ(tensor.count_nonzero().item<std::int64_t>(), 0);
      tensor.copy_(input_of(world->rank(), 3000, dtype).view({3, 1000}));
      world->barrier().wait();
      EXPECT_TRUE(at::equal(tensor.view({-1}), input_of(world->rank(), 3000, dtype))) << "every rank has its own";
    }
  });
}

TEST_P(Allocating, BeginsWithACacheLine) {
  run([](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {1, 17, 1000, 100'001}) {
      const at::Tensor tensor = world->allocate({elements}, at::kByte);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0u) << elements;
    }
  });
}

// Hosts of hybrid have two or three ranks, so a small world may lie on a single host.
bool may_refuse(int ranks) {
  const std::string backend = kBackend;
  return backend != "inproc" && backend != "shm" && backend != "staged" && ranks > 1;
}
bool must_refuse(int ranks) { return may_refuse(ranks) && (kBackend != std::string("hybrid") || ranks > 3); }

// Threads and processes of one host share memory. Other backends report that they cannot.
TEST_P(Allocating, SharesMemoryIfTheBackendCan) {
  run([](const CommunicatorPtr& world) {
    const int size = world->size();
    at::Tensor shared;
    try {
      shared = world->allocate_shared({size, 1000}, at::kFloat);
    } catch (const ConfigError&) {
      EXPECT_FALSE(world->shares_memory());
      EXPECT_TRUE(may_refuse(size));
      return world->barrier().wait();
    }
    EXPECT_TRUE(world->shares_memory());
    EXPECT_FALSE(must_refuse(size));
    EXPECT_EQ(shared.count_nonzero().item<std::int64_t>(), 0);
    world->barrier().wait();
    shared[world->rank()].fill_(world->rank() + 1);
    world->barrier().wait();
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(shared[rank].sum().item<float>(), 1000.0f * (rank + 1));
    world->barrier().wait();
    at::Tensor sum = shared[world->rank()].clone();
    world->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum[999].item<float>(), size * (size + 1) / 2.0f);
  });
}

TEST_P(Allocating, GivesAnEmptyTensorForSizeZero) {
  run([](const CommunicatorPtr& world) {
    const at::Tensor nothing = world->allocate({0}, at::kFloat);
    EXPECT_EQ(nothing.numel(), 0);
    world->all_reduce(nothing, Reduction::kSum).wait();
  });
}

TEST_P(Allocating, OutlivesItsCommunicator) {
  run([](const CommunicatorPtr& world) {
    auto half = world->split(world->rank() % 2, 0);
    at::Tensor tensor = half->allocate({4096}, at::kFloat);
    half.reset();
    tensor.fill_(3);
    EXPECT_EQ(tensor.sum().item<float>(), 3 * 4096);
  });
}

TEST_P(Allocating, ServesOtherGroupsToo) {
  run([](const CommunicatorPtr& world) {
    const auto half = world->split(world->rank() % 2, 0);
    const at::Tensor of_half = half->allocate({40'000}, at::kFloat), of_world = world->allocate({40'000}, at::kFloat);
    of_half.fill_(1);
    of_world.fill_(1);
    world->all_reduce(of_half, Reduction::kSum).wait();
    half->all_reduce(of_world, Reduction::kSum).wait();
    EXPECT_EQ(of_half[39'999].item<float>(), world->size());
    EXPECT_EQ(of_world[39'999].item<float>(), half->size());
  });
}

// Input and output of one operation are parts of the same region.
TEST_P(Allocating, PartsOfARegionAreTensorsLikeOthers) {
  run([](const CommunicatorPtr& world) {
    const at::Tensor region = world->allocate({1000 * (world->size() + 1)}, at::kInt);
    const auto input = region.narrow(0, 0, 1000), output = region.narrow(0, 1000, 1000 * world->size());
    input.copy_(input_of(world->rank(), 1000, at::kInt));
    world->all_gather(output, input).wait();
    for (int rank = 0; rank < world->size(); ++rank) {
      EXPECT_TRUE(at::equal(output.narrow(0, 1000 * rank, 1000), input_of(rank, 1000, at::kInt)));
    }
  });
}

TEST_P(Allocating, RefusesInvalidSizes) {
  run([](const CommunicatorPtr& world) {
    EXPECT_THROW((void)world->allocate({-1}, at::kFloat), std::invalid_argument);
    EXPECT_THROW((void)world->allocate({std::int64_t{1} << 40, std::int64_t{1} << 40}, at::kFloat),
                 std::invalid_argument);
    EXPECT_THROW((void)world->allocate({1}, at::device(at::kMeta)), std::invalid_argument);
    EXPECT_THROW((void)world->allocate_shared({-1}, at::kFloat), std::invalid_argument);
    world->barrier().wait();  // the ranks are still in step
  });
}

}  // namespace
}  // namespace phalanx::testing
