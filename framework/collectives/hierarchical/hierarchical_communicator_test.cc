// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/hierarchical/hierarchical_communicator.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/collectives/hierarchical/collectives.h"
#include "framework/collectives/testing/equivalence.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::expect_same_collectives;
using testing::run_ranks;

// A world and its keys: keys[i][r] is rank r's value of the i-th key.
struct Shape {
  std::string name;
  std::vector<std::string> keys;

  int ranks() const { return static_cast<int>(keys.front().size()); }
  std::vector<Key> keys_of(int rank) const {
    std::vector<Key> own;
    for (const auto& key : keys) own.push_back({"level", std::string(1, key[rank])});
    return own;
  }
};

const Shape kShapes[] = {
    {"TwoByTwo", {"aabb"}},
    {"InTurn", {"abab"}},
    {"Crossed", {"abba"}},
    {"ThreeByTwo", {"aabbcc"}},
    {"Tree", {"aaabb"}},
    {"TreeInTurn", {"abcab"}},
    {"OneOfEach", {"abc"}},
    {"OneGroup", {"aaa"}},
    {"Deep", {"aaaabbbb", "ccddccdd"}},
    {"DeepTree", {"aaaabbb", "ccddcdc"}},
    {"DeepInOneGroup", {"aaaa", "ccdd"}},
};

class Hierarchical : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Hierarchical, ::testing::ValuesIn(kShapes),
                         [](const auto& info) { return info.param.name; });

TEST_P(Hierarchical, MatchesTheCollectivesOfTheWorld) {
  run_ranks("inproc", GetParam().ranks(), [&](const CommunicatorPtr& world) {
    const Hierarchy hierarchy(world, GetParam().keys_of(world->rank()));
    expect_same_collectives(*world, *make_hierarchical(hierarchy));
  });
}

// Checks the order of ranks by concatenating decimal numbers, one digit per rank.
TEST_P(Hierarchical, KeepsTheOrderOfAReductionThatDoesNotCommute) {
  const auto append =
      Reduction::custom<std::int64_t>("append", [](std::span<std::int64_t> result, std::span<const std::int64_t> next) {
        for (std::size_t i = 0; i < result.size(); ++i) {
          for (auto rest = next[i]; rest > 0; rest /= 10) result[i] *= 10;
          result[i] += next[i];
        }
      });
  run_ranks("inproc", GetParam().ranks(), [&](const CommunicatorPtr& world) {
    const auto group = make_hierarchical(Hierarchy(world, GetParam().keys_of(world->rank())));
    const std::int64_t in_order = 12345678 / static_cast<std::int64_t>(std::pow(10, 8 - world->size()));
    const at::Tensor tensor = at::full({2000}, world->rank() + 1, at::kLong);
    group->all_reduce(tensor, append).wait();
    EXPECT_TRUE(at::equal(tensor, at::full({2000}, in_order, at::kLong))) << tensor[0].item<std::int64_t>();
    const at::Tensor input = at::full({2 * world->size()}, world->rank() + 1, at::kLong);
    const at::Tensor output = at::zeros({2}, at::kLong);
    group->reduce_scatter(output, input, append).wait();
    EXPECT_TRUE(at::equal(output, at::full({2}, in_order, at::kLong))) << output[0].item<std::int64_t>();
  });
}

TEST(HierarchicalAllReduce, RefusesAnOrderThatItCannotKeep) {
  const auto first = Reduction::custom<float>("first", [](std::span<float>, std::span<const float>) {});
  run_ranks("inproc", 4, [&](const CommunicatorPtr& world) {
    const Level level = split_by_key("parity", world, std::to_string(world->rank() % 2));
    EXPECT_THROW(hierarchical::all_reduce(level, at::zeros({4}), first), std::invalid_argument);
  });
}

// Launches several operations at once and waits for them in reverse order.
TEST(HierarchicalCommunicator, CompletesInOrderOfLaunch) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const auto group = make_hierarchical(Hierarchy(world, {{"pair", std::to_string(world->rank() / 2)}}));
    const at::Tensor tensor = at::full({10'000}, 1, at::kLong);
    std::vector<Work> works;
    for (int i = 0; i < 4; ++i) works.push_back(group->all_reduce(tensor, Reduction::kSum));
    works.push_back(world->all_reduce(tensor, Reduction::kSum));
    while (!works.empty()) {
      works.back().wait();
      works.pop_back();
    }
    EXPECT_TRUE(at::equal(tensor, at::full({10'000}, 4 * 4 * 4 * 4 * 4, at::kLong)));
  });
}

TEST(HierarchicalCommunicator, AllocatesTheRequestedMemory) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const auto group = make_hierarchical(Hierarchy(world, {{"pair", std::to_string(world->rank() / 2)}}));
    const at::Tensor memory = group->allocate({3, 50'000}, at::kFloat);
    EXPECT_TRUE(at::equal(memory, at::zeros({3, 50'000})));
    memory.fill_(world->rank());
    group->all_reduce(memory, Reduction::kMax).wait();
    EXPECT_TRUE(at::equal(memory, at::full({3, 50'000}, 3.0F)));
  });
}

// The remaining ranks of a hierarchy of two levels form a hierarchy again.
TEST(HierarchicalCommunicator, SplitsIntoHierarchies) {
  run_ranks("inproc", 8, [](const CommunicatorPtr& world) {
    const int rank = world->rank();
    const auto group = make_hierarchical(
        Hierarchy(world, {{"host", std::to_string(rank / 4)}, {"numa", std::to_string(rank / 2 % 2)}}));
    const bool goes_on = rank != 5;
    const auto child = group->split(goes_on ? 0 : -1, -rank);
    ASSERT_EQ(child != nullptr, goes_on);
    const auto flat = world->split(goes_on ? 0 : -1, -rank);
    if (!child) return;
    EXPECT_NE(dynamic_cast<HierarchicalCommunicator*>(child.get()), nullptr);
    expect_same_collectives(*flat, *child);
  });
}

TEST(HierarchicalCommunicator, SplitsIntoPlainGroupsInsideAGroup) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const auto group = make_hierarchical(Hierarchy(world, {{"pair", std::to_string(world->rank() / 2)}}));
    const auto child = group->split(world->rank() / 2, world->rank());
    EXPECT_EQ(child->size(), 2);
    EXPECT_EQ(dynamic_cast<HierarchicalCommunicator*>(child.get()), nullptr);
  });
}

TEST(HierarchicalCommunicator, RefusesInvalidArguments) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const auto group = make_hierarchical(Hierarchy(world, {{"pair", std::to_string(world->rank() / 2)}}));
    const at::Tensor tensor = at::zeros({4});
    EXPECT_THROW(static_cast<void>(group->broadcast(tensor, 4)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(group->all_reduce(tensor, Reduction::kBitAnd)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(group->all_gather(tensor, tensor)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(group->reduce_scatter(tensor, tensor, Reduction::kSum)), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx
