// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/out_of_place.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

constexpr int kRanks = 3;

at::Tensor all(double value) { return at::full({4}, value, c10::kFloat); }

TEST(OutOfPlace, OnlyReadsTheInput) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const int rank = world->rank();
    const at::Tensor input = all(rank + 1), output = all(0);
    all_reduce(world, output, input, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(output, all(6)));
    broadcast(world, output, rank == 1 ? input : at::Tensor(), 1).wait();
    EXPECT_TRUE(at::equal(output, all(2)));
    reduce(world, rank == 2 ? output : at::Tensor(), input, Reduction::kMax, 2).wait();
    EXPECT_TRUE(at::equal(output, all(rank == 2 ? 3 : 2)));
    EXPECT_TRUE(at::equal(input, all(rank + 1)));
  });
}

TEST(OutOfPlace, ReadsTheInputWhenItRuns) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const at::Tensor first = all(world->rank() + 1), second = all(0), third = all(0);
    Work a = world->all_reduce(first, Reduction::kSum);
    Work b = all_reduce(world, second, first, Reduction::kMean);
    Work c = reduce(world, third, second, Reduction::kProduct, 0);
    c.wait();
    EXPECT_TRUE(at::equal(second, all(6)));
    EXPECT_TRUE(at::equal(third, all(world->rank() == 0 ? 216 : 0)));
    a.wait();
    b.wait();
  });
}

TEST(OutOfPlace, MayBeInPlace) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const at::Tensor tensor = all(1);
    all_reduce(world, tensor, tensor, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(tensor, all(kRanks)));
  });
}

TEST(OutOfPlace, RefusesWhatDoesNotFit) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const at::Tensor longer = at::zeros({5});
    const auto refuses = [&](const at::Tensor& output, const at::Tensor& input) {
      EXPECT_THROW(static_cast<void>(all_reduce(world, output, input, Reduction::kSum)), std::invalid_argument);
      EXPECT_THROW(static_cast<void>(reduce(world, output, input, Reduction::kSum, 0)), std::invalid_argument);
      EXPECT_THROW(static_cast<void>(broadcast(world, output, input, 0)), std::invalid_argument);
    };
    refuses(all(0), longer);
    refuses(all(0), at::zeros({4}, c10::kDouble));
    refuses(all(0), at::Tensor());
    refuses(at::Tensor(), all(0));
    refuses(longer.narrow(0, 0, 4), longer.narrow(0, 1, 4));
    EXPECT_THROW(static_cast<void>(broadcast(world, all(0), all(0), 1)), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx::testing
