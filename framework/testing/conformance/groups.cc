// SPDX-License-Identifier: Apache-2.0
// Tests of split and meshes.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/comm/mesh/mesh.h"
#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Groups : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Groups, ::testing::ValuesIn(world_sizes()), ranks_of);

TEST_P(Groups, ARankKnowsItsPlace) {
  run([&](const CommunicatorPtr& world) {
    EXPECT_EQ(world->size(), GetParam());
    at::Tensor seen = at::zeros({world->size()}, at::kLong);
    seen[world->rank()] = 1;
    world->all_reduce(seen, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(seen, at::ones({world->size()}, at::kLong))) << "every rank exists once";
    EXPECT_FALSE(world->name().empty());
  });
}

TEST_P(Groups, SplitGroupsByColorAndOrdersByKey) {
  run([](const CommunicatorPtr& world) {
    const int parity = world->rank() % 2;
    const auto group = world->split(parity, -world->rank());
    const int members = (world->size() + 1 - parity) / 2;
    EXPECT_EQ(group->size(), members);
    EXPECT_EQ(group->rank(), members - 1 - world->rank() / 2) << "keys decrease with the rank";
    EXPECT_NE(group->name(), world->name());
    at::Tensor sum = at::full({2000}, world->rank(), at::kLong);
    group->all_reduce(sum, Reduction::kSum).wait();
    std::int64_t want = 0;
    for (int rank = parity; rank < world->size(); rank += 2) want += rank;
    EXPECT_EQ(sum[1999].item<std::int64_t>(), want);
  });
}

TEST_P(Groups, SplitOfEqualKeysKeepsTheOrderOfRanks) {
  run([](const CommunicatorPtr& world) { EXPECT_EQ(world->split(0, 7)->rank(), world->rank()); });
}

TEST_P(Groups, SplitLeavesOutNegativeColors) {
  run([](const CommunicatorPtr& world) {
    const auto group = world->split(world->rank() == 0 ? -1 : 3, 0);
    EXPECT_EQ(group == nullptr, world->rank() == 0);
    if (group) {
      EXPECT_EQ(group->size(), world->size() - 1);
    }
  });
}

TEST_P(Groups, GroupsOfGroupsWork) {
  run([](const CommunicatorPtr& world) {
    const auto outer = world->split(0, -world->rank());
    const auto inner = outer->split(outer->rank() / 2, 0);
    at::Tensor tensor = inner->allocate({3000}, at::kFloat).fill_(1);
    inner->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), inner->size());
  });
}

// Overlapping groups that are used alternately and waited for in a different order than launched.
TEST_P(Groups, SeveralGroupsTakeTurns) {
  run([](const CommunicatorPtr& world) {
    const auto half = world->split(world->rank() % 2, 0);
    at::Tensor a = at::ones({10'000}), b = at::ones({10'000});
    for (int i = 0; i < 10; ++i) {
      Work on_half = half->all_reduce(a, Reduction::kMax);
      Work on_world = world->all_reduce(b, Reduction::kMax);
      if (world->rank() % 2 == 0) {
        on_world.wait();
        on_half.wait();
      } else {
        on_half.wait();
        on_world.wait();
      }
    }
    EXPECT_EQ(a[9999].item<float>() + b[9999].item<float>(), 2);
  });
}

TEST_P(Groups, MeshHasOneGroupPerAxis) {
  run([](const CommunicatorPtr& world) {
    MeshShape shape;
    shape[Axis::kTensor] = world->size() % 2 == 0 ? 2 : 1;
    shape[Axis::kData] = world->size() / shape[Axis::kTensor];
    const Mesh mesh(world, shape);
    EXPECT_EQ(mesh.data()->size(), shape[Axis::kData]);
    EXPECT_EQ(mesh.along(Axis::kTensor)->rank(), world->rank() % shape[Axis::kTensor]) << "the last axis is innermost";
    EXPECT_EQ(mesh.data()->rank(), world->rank() / shape[Axis::kTensor]);
    EXPECT_EQ(mesh.along(Axis::kPipe)->size(), 1);
    at::Tensor sum = at::full({1}, world->rank(), at::kLong);
    mesh.data()->all_reduce(sum, Reduction::kSum).wait();
    std::int64_t want = 0;
    const auto stride = shape[Axis::kTensor];
    for (auto rank = world->rank() % stride; rank < world->size(); rank += stride) want += rank;
    EXPECT_EQ(sum.item<std::int64_t>(), want);
    shape[Axis::kPipe] = 2;
    EXPECT_THROW(Mesh(world, shape), std::invalid_argument);
  });
}

// Runs each operation on a group whose ranks differ from those in the world.
TEST_P(Groups, OperationsCountTheRanksOfTheirGroup) {
  run([](const CommunicatorPtr& world) {
    const auto group = world->split(world->rank() % 2, -world->rank());
    const int size = group->size(), here = group->rank(), last = size - 1;
    const at::Tensor mine = at::full({3}, here, at::kLong), part = at::zeros({3}, at::kLong);
    const at::Tensor all = at::zeros({3 * size}, at::kLong);
    group->all_gather(all, mine).wait();
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(all[3 * rank].item<std::int64_t>(), rank);
    group->scatter(part, all, last).wait();
    EXPECT_TRUE(at::equal(part, mine));
    group->gather(all, at::full({3}, 2 * here, at::kLong), last).wait();
    if (here == last) {
      EXPECT_EQ(all[3 * size - 1].item<std::int64_t>(), 2 * last);
    }
    group->broadcast(part, last).wait();
    EXPECT_TRUE(at::equal(part, at::full({3}, last, at::kLong)));
  });
}

}  // namespace
}  // namespace phalanx::testing
