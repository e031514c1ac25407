// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/checked/checksummed_communicator.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;

at::Tensor numbers(int rank) { return at::arange(12, at::kFloat).add_(rank).mul_(0.1); }

// Performs one operation of each kind, and returns the results one after the other.
std::vector<at::Tensor> results_of(Communicator& group) {
  const int rank = group.rank(), ranks = group.size();
  std::vector<at::Tensor> results;
  const auto add = [&](std::int64_t elements) { return results.emplace_back(at::zeros({elements})); };
  group.broadcast(results.emplace_back(numbers(rank)), 1).wait();
  group.all_reduce(results.emplace_back(numbers(rank)), Reduction::kMean).wait();
  group.reduce(results.emplace_back(numbers(rank)), Reduction::kMax, 2).wait();
  group.reduce_scatter(add(12 / ranks), numbers(rank), Reduction::kSum).wait();
  group.all_gather(add(12 * ranks), numbers(rank)).wait();
  group.gather(add(12 * ranks), numbers(rank), 0).wait();
  group.scatter(add(4), numbers(rank), 1).wait();
  group.all_to_all(add(12), numbers(rank)).wait();
  Work sent = group.send(numbers(rank), (rank + 1) % ranks, 5);
  group.recv(add(12), (rank + ranks - 1) % ranks, 5).wait();
  sent.wait();
  group.barrier().wait();
  return results;
}

TEST(ChecksummedCommunicator, GivesTheSameResults) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const auto expected = results_of(*world);
    ChecksummedCommunicator checksummed(world);
    const auto results = results_of(checksummed);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool undefined = i == 2 && world->rank() != 2;  // only the root has the result of reduce
      EXPECT_TRUE(undefined || at::equal(results[i], expected[i])) << "operation " << i;
    }
    const auto group = checksummed.split(world->rank() % 2, 0);
    at::Tensor sum = at::full({1}, 1.5);
    group->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum.item<float>(), world->rank() == 1 ? 1.5 : 3);
  });
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.what();
  }
  return "";
}

TEST(ChecksummedCommunicator, NamesBothRanksOfADamagedMessage) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    ChecksummedCommunicator checksummed(world);
    Communicator& group = checksummed;
    at::Tensor tensor = numbers(world->rank());
    group.all_reduce(tensor, Reduction::kSum).wait();
    if (world->rank() == 1) damage_next_message(world->recorder());
    const std::string error = error_of([&] { group.broadcast(tensor, 1).wait(); });
    if (world->rank() == 1) {
      EXPECT_EQ(error, "");
      return;
    }
    EXPECT_THAT(error, HasSubstr("broadcast #2 of world, rank 0 of 2: 48 bytes from rank 1 were damaged on the way"));
  });
}

// A sum that is wrong in the same way on all ranks would not be found by comparing it.
TEST(ChecksummedCommunicator, ChecksThePartsOfASum) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    ChecksummedCommunicator checksummed(world);
    Communicator& group = checksummed;
    if (world->rank() == 0) damage_next_message(world->recorder());
    at::Tensor tensor = numbers(world->rank());
    const std::string error = error_of([&] { group.all_reduce(tensor, Reduction::kSum).wait(); });
    const char* const expected = world->rank() == 0 ? "" : "all_reduce #1 of world, rank 1 of 2: 24 bytes from rank 0";
    EXPECT_NE(error, "");  // rank 0 has lost its peer
    EXPECT_THAT(error, HasSubstr(expected));
  });
}

TEST(ChecksummedCommunicator, ChecksMessages) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    ChecksummedCommunicator checksummed(world);
    Communicator& group = checksummed;
    at::Tensor tensor = numbers(0);
    if (world->rank() == 0) {
      damage_next_message(world->recorder());
      group.send(tensor, 1).wait();
      group.send(tensor, 1).wait();
    } else {
      EXPECT_THAT(error_of([&] { group.recv(tensor, 0).wait(); }), HasSubstr("recv #1 of world, rank 1 of 2"));
      EXPECT_EQ(error_of([&] { group.recv(tensor, 0).wait(); }), "");
    }
  });
}

}  // namespace
}  // namespace phalanx
