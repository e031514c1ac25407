#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "framework/backends/mpi/communicator.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/base/error.h"

// What is special to MPI; what all backends do alike, the conformance suite tests.
namespace phalanx::mpi {
namespace {

Place place_from_mpirun() {
  const auto number = [](const char* name) { return std::atoi(std::getenv(name)); };
  return {.rank = number("OMPI_COMM_WORLD_RANK"),
          .size = number("OMPI_COMM_WORLD_SIZE"),
          .local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK"),
          .local_size = number("OMPI_COMM_WORLD_LOCAL_SIZE")};
}

class Mpi : public testing::Test {
 protected:
  static void SetUpTestSuite() { start(place_from_mpirun(), Seconds(20)); }

  static std::shared_ptr<MpiCommunicator> connect(std::int64_t most_elements = INT_MAX) {
    Group::Options options{.name = "world", .timeout = Seconds(20), .local_ranks = 3, .most_elements = most_elements};
    return std::make_shared<MpiCommunicator>(duplicate_world(options));
  }

  // Every rank's bytes, at every rank: broadcast from each in turn and compared with one's own.
  static void expect_same_everywhere(Communicator& world, const at::Tensor& mine) {
    for (int root = 0; root < world.size(); ++root) {
      auto theirs = mine.clone();
      world.broadcast(theirs, root).wait();
      EXPECT_EQ(std::memcmp(theirs.data_ptr(), mine.data_ptr(), mine.nbytes()), 0) << "rank " << root;
    }
  }
};

TEST_F(Mpi, SumsAreBitwiseTheSameOnAllRanks) {
  auto world = connect();
  for (const std::int64_t count : {1, 7, 1000, 100'003, 3'000'000}) {
    auto tensor = at::rand({count}).sub_(0.5).mul_(world->rank() + 1);
    world->all_reduce(tensor, Reduction::kSum).wait();
    expect_same_everywhere(*world, tensor);
  }
}

// Q18: counts that MPI cannot take in one call.
TEST_F(Mpi, LongOperationsAreSeveralCalls) {
  auto world = connect(/*most_elements=*/10);
  for (const std::int64_t count : {0, 9, 10, 11, 35}) {
    auto tensor = at::arange(count).to(at::kDouble);
    world->all_reduce(tensor, Reduction::kMean).wait();
    EXPECT_TRUE(tensor.equal(at::arange(count).to(at::kDouble))) << count;
    auto sent = world->rank() == 0 ? at::arange(count) : at::zeros({count}, at::kLong);
    world->broadcast(sent, 0).wait();
    EXPECT_TRUE(sent.equal(at::arange(count))) << count;
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

TEST_F(Mpi, DoneTurnsTrueWithoutWaiting) {
  auto world = connect();
  auto tensor = at::full({5}, 2.0F);
  Work work = world->all_reduce(tensor, Reduction::kMean);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!work.done() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(work.done());
  EXPECT_EQ(tensor.sum().item<float>(), 10.0F);  // the division is part of the operation
  work.wait();
}

TEST_F(Mpi, NothingIsDoneBeforeAllRanksCome) {
  auto world = connect();
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

TEST_F(Mpi, ThreadsUseSeveralCommunicatorsAtOnce) {
  constexpr int kThreads = 3;
  auto world = connect();
  std::vector<CommunicatorPtr> groups;
  for (int i = 0; i < kThreads; ++i) groups.push_back(world->split(i, world->rank()));
  std::vector<std::thread> threads;
  for (const auto& group : groups) {
    threads.emplace_back([group] {
      for (int round = 0; round < 50; ++round) {
        auto tensor = at::full({1000}, 1.0F);
        group->all_reduce(tensor, Reduction::kSum).wait();
        EXPECT_EQ(tensor[999].item<float>(), static_cast<float>(group->size()));
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

TEST_F(Mpi, RanksFreeTheirCommunicatorsWhenTheyLike) {
  auto world = connect();
  std::vector<CommunicatorPtr> children;
  for (int i = 0; i < 3; ++i) children.push_back(world->split(0, world->rank()));
  const auto start = std::chrono::steady_clock::now();
  if (world->rank() == 0) children.clear();  // its peers free theirs only behind the barrier, and in another order
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

TEST_F(Mpi, RefusesAnotherPlaceThanMpiGives) {
  Place wrong = place_from_mpirun();
  wrong.size += 1;
  EXPECT_THROW(start(wrong, Seconds(1)), ConfigError);
}

}  // namespace
}  // namespace phalanx::mpi
