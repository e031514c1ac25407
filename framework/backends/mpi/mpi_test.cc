// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "framework/backends/mpi/broadcast_text.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/backends/testing/ranks_under_mpirun.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"

// Tests the specifics of MPI; the conformance suite tests what all backends share.
namespace phalanx::mpi {
namespace {

class Mpi : public RanksUnderMpirun {
 protected:
  // Expects the same bytes on all ranks: broadcasts from each rank in turn and compares with this rank's bytes.
  static void expect_same_everywhere(Communicator& world, const at::Tensor& mine, const std::string& what) {
    for (int root = 0; root < world.size(); ++root) {
      auto theirs = mine.clone();
      world.broadcast(theirs, root).wait();
      EXPECT_EQ(std::memcmp(theirs.data_ptr(), mine.data_ptr(), mine.nbytes()), 0) << what << ", rank " << root;
    }
  }
};

TEST_F(Mpi, ATextReachesAllRanksBeforeTheyHaveAStore) {
  const RankInfo rank_info = rank_info_from_mpirun();
  const std::string mine = rank_info.rank == 0 ? "the address of rank 0" : "";
  EXPECT_EQ(broadcast_text(rank_info, mine, Seconds(20)), "the address of rank 0");
  EXPECT_EQ(broadcast_text(rank_info, "", Seconds(20)), "");
}

// The order of the ranks is that of the communicator, which is freed before it is used.
TEST_F(Mpi, ConnectsTheRanksOfACommunicatorOfTheProgram) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  const auto group = Backends::Choice("mpi").make(
      ConnectOptions{.rank_info = {}, .store = nullptr, .timeout = Seconds(20), .mpi_communicator = &half});
  const RankInfo info = rank_info_of(half);
  MPI_Comm_free(&half);
  EXPECT_EQ(group->size(), (size + 1 - rank % 2) / 2);
  EXPECT_EQ(group->rank(), (size - 1 - rank) / 2);
  EXPECT_EQ(info.rank, group->rank());
  EXPECT_EQ(info.local_size, group->size());
  const auto sum = at::full({1}, 1);
  group->all_reduce(sum, Reduction::kSum).wait();
  EXPECT_EQ(sum.item<int>(), group->size());
}

TEST_F(Mpi, SumsAreBitwiseTheSameOnAllRanks) {
  auto world = connect();
  for (const std::int64_t count : {1, 7, 1000, 100'003, 3'000'000}) {
    auto tensor = at::rand({count}).sub_(0.5).mul_(world->rank() + 1);
    world->all_reduce(tensor, Reduction::kSum).wait();
    expect_same_everywhere(*world, tensor, std::to_string(count));
  }
}

// The result for NaNs and numbers, or for the two zeros, depends on the order, but is the same on all ranks.
TEST_F(Mpi, ExtremesAreBitwiseTheSameOnAllRanks) {
  auto world = connect();
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t count : {7, 1000, 100'003}) {
      for (const auto& op : {Reduction::kMin, Reduction::kMax}) {
        auto tensor = at::full({count}, world->rank(), dtype);
        tensor[world->rank()] = std::nan("");
        tensor[count - 1] = world->rank() % 2 == 0 ? 0.0 : -0.0;
        world->all_reduce(tensor, op).wait();
        expect_same_everywhere(*world, tensor, Reduction(op).name() + " of " + c10::toString(dtype));
      }
    }
  }
}

// MPI has no such types, so Reduction combines them.
TEST_F(Mpi, NarrowFloatsAreCombinedByReduction) {
  auto world = connect();
  const auto part = [](int rank) { return at::arange(1000).remainder(7).add(rank + 1); };
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    for (const auto kind : {Reduction::kSum, Reduction::kMean, Reduction::kProduct, Reduction::kMin, Reduction::kMax}) {
      const Reduction op(kind);
      auto expected = part(0).to(dtype);
      for (int rank = 1; rank < world->size(); ++rank) {
        op.combine(dtype, expected.data_ptr(), part(rank).to(dtype).data_ptr(), 1000);
      }
      op.finish(dtype, expected.data_ptr(), 1000, world->size());
      auto tensor = part(world->rank()).to(dtype);
      world->all_reduce(tensor, op).wait();
      EXPECT_TRUE(tensor.equal(expected)) << op.name() << " of " << dtype;
    }
  }
}

// MPI's operations have no context, so custom reductions use direct messages. Neither reduction is commutative.
TEST_F(Mpi, CustomReductionsAreCombinedInRankOrder) {
  auto world = connect();
  const auto first = Reduction::custom<std::int16_t>("first", [](auto, auto) {});
  const auto last = Reduction::custom<std::int16_t>(
      "last", [](std::span<std::int16_t> result, auto next) { std::ranges::copy(next, result.begin()); });
  const int size = world->size();
  for (const auto& [op, winner] : {std::pair(first, 0), std::pair(last, size - 1)}) {
    auto tensor = at::full({70'000}, world->rank(), at::kShort);
    world->all_reduce(tensor, op).wait();
    EXPECT_TRUE(tensor.eq(winner).all().item<bool>()) << op.name();
    auto part = at::zeros({3}, at::kShort);
    world->reduce_scatter(part, at::full({3 * size}, world->rank(), at::kShort), op).wait();
    EXPECT_TRUE(part.eq(winner).all().item<bool>()) << op.name();
    tensor.fill_(world->rank());
    world->reduce(tensor, op, size / 2).wait();
    const int expected = world->rank() == size / 2 ? winner : world->rank();
    EXPECT_TRUE(tensor.eq(expected).all().item<bool>()) << op.name();
  }
}

TEST_F(Mpi, MeanOfIntegersRoundsTowardZero) {
  auto world = connect();
  const std::int64_t size = world->size();
  auto tensor = at::full({2}, world->rank() == 0 ? 2 * size - 1 : 0, at::kLong);
  tensor[1].neg_();
  world->all_reduce(tensor, Reduction::kMean).wait();
  const std::int64_t expected = (2 * size - 1) / size;
  EXPECT_EQ(tensor[0].item<std::int64_t>(), expected);
  EXPECT_EQ(tensor[1].item<std::int64_t>(), -expected);
}

TEST_F(Mpi, ReducesParametersThatRequireGradients) {
  auto world = connect();
  auto parameter = at::full({4}, 3.0F).set_requires_grad(true);
  world->all_reduce(parameter, Reduction::kMean).wait();
  EXPECT_EQ(parameter.detach().sum().item<float>(), 12.0F);
}

// MPI allows in-place operations only on all ranks or on none.
TEST_F(Mpi, EachRankMayWorkInPlaceOrNot) {
  auto world = connect();
  const int rank = world->rank(), size = world->size();
  for (int in_place = 0; in_place < size; ++in_place) {
    auto all = at::full({2 * size}, -1, at::kInt);
    auto own = rank == in_place ? all.narrow(0, 2 * rank, 2) : at::empty({2}, at::kInt);
    own.fill_(rank);
    world->all_gather(all, own).wait();
    const auto expected = at::arange(2 * size, at::kInt).floor_divide(2).to(at::kInt);
    EXPECT_TRUE(all.equal(expected)) << in_place;
    auto sum = rank == in_place ? all.narrow(0, 2 * rank, 2) : at::empty({2}, at::kInt);
    world->reduce_scatter(sum, all, Reduction::kSum).wait();
    EXPECT_TRUE(sum.eq(rank * size).all().item<bool>()) << in_place;
    EXPECT_EQ(all.ne(expected).sum().item<std::int64_t>(), rank == in_place && rank * size != rank ? 2 : 0)
        << "the rest of the input must not change";
  }
}

TEST_F(Mpi, DoneBecomesTrueWithoutWait) {
  auto world = connect({.progress_thread = true});
  auto tensor = at::full({5}, 2.0F);
  Work work = world->all_reduce(tensor, Reduction::kMean);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!work.done() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(work.done());
  EXPECT_EQ(tensor.sum().item<float>(), 10.0F);  // the division is part of the operation
  work.wait();
}

TEST_F(Mpi, NothingIsDoneBeforeAllRanksCome) {
  auto world = connect({.progress_thread = true});
  if (world->size() == 1) GTEST_SKIP() << "needs a peer that is late";
  auto go = connect();
  if (world->rank() == 0) {
    Work work = world->barrier();
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(work.done());
    go->barrier().wait();
    work.wait();
  } else {
    go->barrier().wait();
    world->barrier().wait();
  }
}

TEST_F(Mpi, OperationsCompleteInOrder) {
  auto world = connect();
  auto large = at::full({1'000'000}, 1.0F);
  auto small = at::full({1}, 1.0F);
  Work first = world->all_reduce(large, Reduction::kSum);
  Work second = world->all_reduce(small, Reduction::kSum);
  second.wait();
  EXPECT_TRUE(first.done());
  EXPECT_EQ(large[999'999].item<float>(), static_cast<float>(world->size()));
}

TEST_F(Mpi, ThreadsUseSeveralWorldsAtOnce) {
  constexpr int kThreads = 3;
  std::vector<CommunicatorPtr> worlds;
  for (int i = 0; i < kThreads; ++i) worlds.push_back(connect());
  std::vector<std::thread> threads;
  for (const auto& world : worlds) {
    threads.emplace_back([world] {
      for (int round = 0; round < 50; ++round) {
        auto tensor = at::full({1000}, 1.0F);
        world->all_reduce(tensor, Reduction::kSum).wait();
        EXPECT_EQ(tensor[999].item<float>(), static_cast<float>(world->size()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Mpi, SplitNamesAndOrdersItsChildren) {
  auto world = connect();
  auto reversed = world->split(7, -world->rank());
  EXPECT_EQ(reversed->name(), "world/7");
  EXPECT_EQ(reversed->rank(), world->size() - 1 - world->rank());
  auto none = world->split(world->rank() == 0 ? -1 : 0, 0);
  EXPECT_EQ(none == nullptr, world->rank() == 0);
}

TEST_F(Mpi, RanksMayFreeTheirCommunicatorsInAnyOrder) {
  auto world = connect();
  std::vector<CommunicatorPtr> children;
  for (int i = 0; i < 3; ++i) children.push_back(world->split(0, world->rank()));
  const auto start = std::chrono::steady_clock::now();
  if (world->rank() == 0) children.clear();  // the other ranks free theirs only after the barrier, and in another order
  world->barrier().wait();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  while (!children.empty()) children.pop_back();
  world->barrier().wait();
}

TEST_F(Mpi, AllocatedMemoryIsZeroAndOutlivesItsCommunicator) {
  at::Tensor memory = connect()->allocate({3, 5}, at::kFloat);
  EXPECT_TRUE(memory.equal(at::zeros({3, 5})));
  EXPECT_THROW(static_cast<void>(connect()->allocate({-1}, at::kFloat)), std::invalid_argument);
}

TEST_F(Mpi, RecordsNumberOperationsInLaunchOrder) {
  auto world = connect();
  world->barrier().wait();
  auto tensor = at::zeros({2});
  Work sent = world->send(tensor, world->rank(), 0);
  world->recv(tensor, world->rank(), 0).wait();
  sent.wait();
  world->run({.op = Op::kCustom}, [&] { world->broadcast(tensor, 0).wait(); }).wait();
  std::vector<Op> ops;
  for (const auto& record : world->recorder().records()) {
    ops.push_back(record.call.op);
    EXPECT_EQ(record.sequence, ops.size());
    EXPECT_EQ(record.state, FlightRecorder::State::kDone) << ops.size();
  }
  EXPECT_EQ(ops, (std::vector{Op::kBarrier, Op::kSend, Op::kRecv, Op::kCustom, Op::kBroadcast}));
}

TEST_F(Mpi, RefusesToShrinkIfUlfmIsSwitchedOff) {
  const auto world = connect();
  EXPECT_NE(world->why_no_shrink().find("start the ranks with `mpirun --with-ft ulfm`"), std::string::npos);
  EXPECT_THROW((void)world->shrink(), ConfigError);
  world->barrier().wait();
}

TEST_F(Mpi, RefusesARankInfoThatDiffersFromMpis) {
  RankInfo wrong = rank_info_from_mpirun();
  wrong.size += 1;
  EXPECT_THROW(start(wrong, Seconds(1)), ConfigError);
}

TEST_F(Mpi, RefusesAnMpiWithTooFewTags) {
  EXPECT_NO_THROW(require_tags(kMaxAnyTag));
  EXPECT_THROW(require_tags(kMaxAnyTag - 1), ConfigError);
}

}  // namespace
}  // namespace phalanx::mpi
