// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/selecting_communicator.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/collectives/selection/selectable_ops.h"
#include "framework/collectives/testing/counting_algorithms.h"
#include "framework/comm/operations/arguments.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::forget_runs;
using testing::run_ranks;
using testing::times_run;

constexpr int kRanks = 3;
constexpr std::int64_t kPart = 40;

// Returns an operation of the given kind with root 1, on parts of kPart elements that identify their rank.
Operation operation_of(const Communicator& group, Op op) {
  const auto whole = [&] { return at::arange(kPart * kRanks, at::kLong).add(1000 * group.rank()); };
  const auto part = [&] { return at::arange(kPart, at::kLong).add(1000 * group.rank()); };
  const auto empty = [](std::int64_t elements) { return at::zeros({elements}, at::kLong); };
  switch (op) {
    case Op::kBroadcast:
      return checked_broadcast(group, whole(), 1);
    case Op::kReduce:
      return checked_reduce(group, whole(), Reduction::kSum, 1);
    case Op::kAllReduce:
      return checked_all_reduce(group, whole(), Reduction::kSum);
    case Op::kReduceScatter:
      return checked_reduce_scatter(group, empty(kPart), whole(), Reduction::kSum, {});
    case Op::kAllGather:
      return checked_all_gather(group, empty(kPart * kRanks), part(), {});
    case Op::kGather:
      return checked_gather(group, empty(kPart * kRanks), part(), 1, {});
    case Op::kScatter:
      return checked_scatter(group, empty(kPart), whole(), 1, {});
    default:
      return checked_all_to_all(group, empty(kPart * kRanks), whole(), {}, {});
  }
}

// Returns the result of the operation on this rank; zeros if the operation promises none there.
at::Tensor result_of(Communicator& group, Op op) {
  const Operation operation = operation_of(group, op);
  group.launch(operation).wait();
  const bool root_alone = op == Op::kReduce || op == Op::kGather;
  return root_alone && group.rank() != operation.root() ? at::zeros({1}, at::kLong) : operation.output;
}

class Selecting : public ::testing::Test {
 protected:
  void SetUp() override { forget_runs(); }
};

SelectionTable always(Op op, const std::string& algorithm) {
  return SelectionTable{{.op = std::string(to_string(op)), .algorithm = algorithm}};
}

TEST_F(Selecting, RunsTheAlgorithmOfTheTableOnEveryRank) {
  for (const Op op : selectable_ops()) {
    run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
      SelectingCommunicator selecting(world, always(op, "counting"));
      result_of(selecting, op);
    });
    EXPECT_EQ(times_run(op, "counting"), kRanks) << to_string(op);
  }
}

// Results do not depend on the table.
TEST_F(Selecting, EveryAlgorithmGivesWhatTheBackendsOwnWayGives) {
  for (const Op op : selectable_ops()) {
    const auto algorithms = Algorithms::global().of(op);
    EXPECT_GT(algorithms.size(), 2u) << "not only those that count";
    for (const auto* algorithm : algorithms) {
      run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
        SelectingCommunicator selecting(world, always(op, algorithm->name));
        EXPECT_TRUE(at::equal(result_of(selecting, op), result_of(*world, op)))
            << to_string(op) << ' ' << algorithm->name;
      });
    }
  }
}

// An algorithm for another size, group or operation is not run.
TEST_F(Selecting, TakesTheRuleOfTheSizeInBytes) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    SelectingCommunicator selecting(world, SelectionTable{{.op = "all_reduce", .up_to = "80", .algorithm = "counting"},
                                                          {.op = "broadcast", .ranks = 2, .algorithm = "counting"}});
    at::Tensor ten = at::ones({10}, at::kDouble), more = at::ones({11}, at::kDouble);
    selecting.all_reduce(ten, Reduction::kSum).wait();
    selecting.all_reduce(more, Reduction::kSum).wait();
    selecting.broadcast(ten, 0).wait();
    EXPECT_EQ(ten[9].item<double>() + more[10].item<double>(), 2 * kRanks);
  });
  EXPECT_EQ(times_run(Op::kAllReduce, "counting"), kRanks);
  EXPECT_EQ(times_run(Op::kBroadcast, "counting"), 0);
}

TEST_F(Selecting, AnAlgorithmThatDoesNotSuitYieldsToTheNextRule) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    SelectingCommunicator selecting(world, SelectionTable{{.op = "all_reduce", .algorithm = "counting_even"},
                                                          {.op = "all_reduce", .algorithm = "counting"},
                                                          {.op = "broadcast", .algorithm = "counting_even"}});
    at::Tensor even = at::ones({4}), odd = at::ones({5});
    selecting.all_reduce(even, Reduction::kSum).wait();
    selecting.all_reduce(odd, Reduction::kSum).wait();
    selecting.all_reduce(odd, Reduction::kSum).wait();
    selecting.broadcast(odd, 0).wait();  // runs natively
    EXPECT_EQ(odd[0].item<float>(), kRanks * kRanks);
  });
  EXPECT_EQ(times_run(Op::kAllReduce, "counting_even"), kRanks);
  EXPECT_EQ(times_run(Op::kAllReduce, "counting"), 2 * kRanks);
  EXPECT_EQ(times_run(Op::kBroadcast, "counting_even"), 0);
}

TEST_F(Selecting, SplitGroupsFollowTheTable) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    SelectingCommunicator selecting(world, SelectionTable{{.op = "all_reduce", .ranks = 2, .algorithm = "counting"}});
    const auto pair = selecting.split(world->rank() == 0 ? -1 : 0, 0);
    EXPECT_EQ(pair == nullptr, world->rank() == 0);
    at::Tensor tensor = at::ones({4});
    selecting.all_reduce(tensor, Reduction::kSum).wait();
    if (pair) pair->all_reduce(tensor, Reduction::kSum).wait();
  });
  EXPECT_EQ(times_run(Op::kAllReduce, "counting"), 2);
}

// The hosts are only names.
TEST_F(Selecting, ScopesAreThoseOfTheGroups) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    SelectionTable table{{.op = "all_reduce", .scope = "host", .algorithm = "counting"},
                         {.op = "all_reduce", .scope = "hosts", .algorithm = "counting_even"}};
    SelectingCommunicator selecting(world,
                                    std::make_shared<LiveSelection>(std::move(table), LiveSelection::Tuning::kOff,
                                                                    world->rank() < 2 ? "host a" : "host b"));
    const auto host = selecting.split(world->rank() / 2, world->rank());
    const auto across = selecting.split(world->rank() % 2, world->rank());
    at::Tensor tensor = at::ones({4});
    selecting.all_reduce(tensor, Reduction::kSum).wait();
    across->all_reduce(tensor, Reduction::kSum).wait();
    host->all_reduce(tensor, Reduction::kSum).wait();
  });
  EXPECT_EQ(times_run(Op::kAllReduce, "counting"), 4) << "only inside hosts";
  EXPECT_EQ(times_run(Op::kAllReduce, "counting_even"), 2 * 4);
}

TEST_F(Selecting, ANewTableHoldsForTheWorldAndItsGroups) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const auto selection = std::make_shared<LiveSelection>(SelectionTable(), LiveSelection::Tuning::kOn);
    SelectingCommunicator selecting(world, selection);
    const auto part = selecting.split(0, world->rank());
    at::Tensor tensor = at::ones({4});
    part->all_reduce(tensor, Reduction::kSum).wait();
    selection->replace(SelectionTable{{.op = "all_reduce", .algorithm = "counting"}});
    selecting.all_reduce(tensor, Reduction::kSum).wait();
    part->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), kRanks * kRanks * kRanks);
  });
  EXPECT_EQ(times_run(Op::kAllReduce, "counting"), 2 * kRanks);
}

TEST_F(Selecting, RecordsTheSizesOfEachGroup) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const auto selection = std::make_shared<LiveSelection>(SelectionTable(), LiveSelection::Tuning::kOn);
    SelectingCommunicator selecting(world, selection);
    const auto pair = selecting.split(world->rank() % 2, world->rank());
    at::Tensor tensor = at::ones({1000});
    selecting.all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_TRUE(selection->used().empty()) << "recording is off";
    selection->record(true);
    for (int i = 0; i < 3; ++i) pair->all_reduce(tensor, Reduction::kSum).wait();
    selecting.broadcast(tensor.narrow(0, 0, 1), 0).wait();
    const std::vector<int> odd_or_even{world->rank() % 2, world->rank() % 2 + 2};
    auto used = selection->used();
    std::ranges::sort(used);
    std::vector<LiveSelection::Used> expected{{odd_or_even, Op::kAllReduce, 12}, {{0, 1, 2, 3}, Op::kBroadcast, 2}};
    std::ranges::sort(expected);
    EXPECT_EQ(used, expected);
  });
}

// Two backends with the same ranks: the second is another group of the same kind. The recorders show which one was
// used.
class Alternatives : public Selecting {
 protected:
  static std::unique_ptr<SelectingCommunicator> selecting(const CommunicatorPtr& world, const CommunicatorPtr& other,
                                                          const SelectionTable& table) {
    return std::make_unique<SelectingCommunicator>(
        world, table, std::vector<SelectingCommunicator::Alternative>{{.backend = "inproc", .group = other}});
  }

  // Returns the number of operations of this kind that `group` has launched.
  static int launched(const Communicator& group, Op op) {
    int count = 0;
    for (const auto& record : group.recorder().records()) count += record.group == group.name() && record.call.op == op;
    return count;
  }
};

TEST_F(Alternatives, RunTheOperationsThatTheTableGivesThem) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const auto other = world->split(0, world->rank());
    const auto both = selecting(world, other,
                                SelectionTable{{.op = "all_reduce", .up_to = "16", .backend = "inproc"},
                                               {.op = "all_reduce", .backend = "inproc", .algorithm = "counting"}});
    at::Tensor small = at::ones({4}), large = at::ones({5});
    both->all_reduce(small, Reduction::kSum).wait();
    EXPECT_EQ(launched(*other, Op::kAllReduce), 1);
    both->all_reduce(large, Reduction::kSum).wait();
    both->broadcast(large, 0).wait();
    EXPECT_EQ(launched(*other, Op::kBroadcast), 0);
    EXPECT_EQ(small[0].item<float>() + large[0].item<float>(), 2 * kRanks);
  });
  EXPECT_EQ(times_run(Op::kAllReduce, "counting"), kRanks);
}

// After a wait for the last operation, the earlier ones are complete, on every backend.
TEST_F(Alternatives, KeepTheOrderOfLaunch) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const auto both =
        selecting(world, world->split(0, world->rank()), SelectionTable{{.op = "broadcast", .backend = "inproc"}});
    at::Tensor tensor = at::ones({4}).mul(world->rank() + 1);
    auto sum = both->all_reduce(tensor, Reduction::kSum);
    auto copy = both->broadcast(tensor, 2);
    auto total = both->all_reduce(tensor, Reduction::kSum);
    total.wait();
    EXPECT_EQ(tensor[0].item<float>(), 6 * kRanks);
    copy.wait();
    sum.wait();
  });
}

TEST_F(Alternatives, AreSplitWithTheGroup) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const auto both =
        selecting(world, world->split(0, world->rank()), SelectionTable{{.op = "all_reduce", .backend = "inproc"}});
    const auto part = both->split(world->rank() == 0 ? 0 : 1, 0);
    at::Tensor tensor = at::ones({4});
    part->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), world->rank() == 0 ? 1 : 2);
  });
}

TEST_F(Alternatives, MustHaveTheSameRanks) {
  run_ranks("inproc", kRanks, [](const CommunicatorPtr& world) {
    const auto reversed = world->split(0, -world->rank());
    if (world->rank() != 1) {
      EXPECT_THROW(selecting(world, reversed, SelectionTable()), std::invalid_argument);
    }
    EXPECT_THROW(SelectingCommunicator(world, SelectionTable{{.op = "gather", .backend = "inproc"}}), ConfigError);
  });
}

TEST_F(Selecting, RefusesArgumentsAsEveryCommunicatorDoes) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    SelectingCommunicator selecting(world, always(Op::kAllReduce, "counting"));
    EXPECT_THROW((void)selecting.all_reduce(at::Tensor(), Reduction::kSum), std::invalid_argument);
    EXPECT_THROW((void)selecting.broadcast(at::ones({2}), 2), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx
