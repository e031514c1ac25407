// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/algorithm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/base/error.h"
#include "framework/comm/operations/arguments.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

const Reduction kFirst = Reduction::custom<float>("first", [](auto, auto) {});

// A user's algorithm for two ranks: its result is twice the elements of rank 0.
void double_first(Communicator& group, const Operation& operation) {
  if (group.rank() == 0) operation.output.mul_(2);
  if (group.rank() == 0) group.send(operation.output, 1, kMaxTag + 1).wait();
  if (group.rank() == 1) group.recv(operation.output, 0, kMaxTag + 1).wait();
}

bool two_ranks(const Communicator& group, const Operation&) { return group.size() == 2; }

TEST(Algorithms, FindsByOperationAndName) {
  Algorithms algorithms;
  algorithms.add({.op = Op::kAllReduce, .name = "ring", .about = "", .run = double_first});
  algorithms.add({.op = Op::kBroadcast, .name = "ring", .about = "", .run = double_first});
  const Algorithm& found = algorithms.find(Op::kAllReduce, "ring");
  algorithms.add({.op = Op::kAllReduce, .name = "bruck", .about = "", .run = double_first});
  EXPECT_EQ(&found, algorithms.of(Op::kAllReduce).at(1)) << "in order of name, and where it was";
  EXPECT_EQ(algorithms.of(Op::kAllReduce).size(), 2u);
  EXPECT_TRUE(algorithms.of(Op::kScatter).empty());
}

TEST(Algorithms, RefusesANameTwice) {
  Algorithms algorithms;
  algorithms.add({.op = Op::kAllReduce, .name = "ring", .about = "", .run = double_first});
  EXPECT_THROW(algorithms.add({.op = Op::kAllReduce, .name = "ring", .about = "", .run = double_first}),
               std::logic_error);
}

TEST(Algorithms, ErrorsListTheKnownOnes) {
  try {
    Algorithms::global().find(Op::kAllReduce, "rings");
    FAIL();
  } catch (const ConfigError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("did you mean \"ring\""), std::string::npos) << what;
    EXPECT_NE(what.find("halving_doubling, one_shot, recursive_doubling"), std::string::npos) << what;
  }
  EXPECT_THROW(Algorithms::global().find(Op::kSplit, "ring"), ConfigError);
}

TEST(Algorithms, EveryCollectiveHasADirectOne) {
  for (const Op op : {Op::kBroadcast, Op::kReduce, Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kGather,
                      Op::kScatter, Op::kAllToAll, Op::kBarrier}) {
    EXPECT_FALSE(Algorithms::global().find(op, "direct").suits) << "it suits always";
    for (const auto* algorithm : Algorithms::global().of(op)) EXPECT_FALSE(algorithm->about.empty());
  }
}

TEST(Launch, RunsAUsersAlgorithmInTheOrderOfOperations) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const Algorithm mine{.op = Op::kAllReduce, .name = "mine", .about = "", .run = double_first, .suits = two_ranks};
    const at::Tensor tensor = at::full({5}, world->rank() + 3.0, c10::kFloat);
    Work first = launch(world, mine, checked_all_reduce(*world, tensor, kFirst));
    Work second = world->all_reduce(tensor, Reduction::kSum);
    second.wait();
    EXPECT_TRUE(first.done());
    first.wait();
    EXPECT_TRUE(at::equal(tensor, at::full({5}, 12.0, c10::kFloat)));
  });
}

TEST(Launch, RefusesWhatTheAlgorithmCannotDo) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const at::Tensor tensor = at::full({5}, 1.0, c10::kFloat);
    const Operation operation = checked_all_reduce(*world, tensor, kFirst);
    const Algorithm mine{.op = Op::kAllReduce, .name = "mine", .about = "", .run = double_first, .suits = two_ranks};
    EXPECT_THROW(static_cast<void>(launch(world, mine, operation)), std::invalid_argument);
    const Algorithm& ring = Algorithms::global().find(Op::kAllReduce, "ring");
    EXPECT_THROW(static_cast<void>(launch(world, ring, operation)), std::invalid_argument)
        << "it combines out of order";
  });
}

TEST(Algorithms, DoNotSuitTensorsOfDevices) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const Algorithm& direct = Algorithms::global().find(Op::kAllReduce, "direct");
    Operation operation = checked_all_reduce(*world, at::full({5}, 1.0), Reduction::kSum);
    EXPECT_TRUE(suits(direct, *world, operation));
    operation.output = at::empty({5}, at::kMeta);
    EXPECT_FALSE(suits(direct, *world, operation));
  });
}

}  // namespace
}  // namespace phalanx::testing
