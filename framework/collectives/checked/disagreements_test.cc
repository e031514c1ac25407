// SPDX-License-Identifier: Apache-2.0
// Tests that all ranks are told about a disagreement, with both calls, even on backends that would not notice it.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/base/error.h"
#include "framework/collectives/checked/checked_communicator.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

using ::testing::HasSubstr;

// Returns the message of the mismatch. Any error of another kind fails the test.
std::string mismatch_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::kMismatch) << error.what();
    return error.what();
  }
  return "no error";
}

// All ranks except `odd` call `most`; rank `odd` calls `other`. All of them must be told about both calls and be able
// to go on.
void expect_disagreement(const std::function<void(Communicator&)>& most,
                         const std::function<void(Communicator&)>& other, const std::string& message, int odd = 1) {
  run_ranks(kBackend, 3, [&](const CommunicatorPtr& world) {
    CheckedCommunicator decorated(world);
    Communicator& checked = decorated;
    EXPECT_THAT(mismatch_of([&] { (world->rank() == odd ? other : most)(checked); }), HasSubstr(message));
    at::Tensor tensor = at::ones({5});
    checked.all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[4].item<float>(), 3);
  });
}

at::Tensor floats(std::int64_t elements) { return at::zeros({elements}); }

TEST(CheckedCommunicator, DetectsDifferentOperations) {
  expect_disagreement([](auto& group) { group.all_reduce(floats(8), Reduction::kSum).wait(); },
                      [](auto& group) { group.barrier().wait(); }, "operation #1 of world");
  expect_disagreement([](auto& group) { group.all_reduce(floats(8), Reduction::kSum).wait(); },
                      [](auto& group) { group.broadcast(floats(8), 2).wait(); },
                      "rank 0 calls all_reduce(sum) of 8 Float, rank 1 calls broadcast(root 2) of 8 Float");
  expect_disagreement([](auto& group) { group.all_gather(floats(3), floats(1)).wait(); },
                      [](auto& group) { (void)group.split(0, 0); },
                      "rank 0 calls all_gather of 3 Float, rank 2 calls split", 2);
  expect_disagreement([](auto& group) { (void)group.allocate({4}, at::kFloat); },
                      [](auto& group) { group.barrier().wait(); },
                      "rank 0 calls barrier, rank 1 calls allocate of 4 Float", 0);
}

TEST(CheckedCommunicator, DetectsDifferentDtypes) {
  expect_disagreement([](auto& group) { group.all_reduce(floats(8), Reduction::kSum).wait(); },
                      [](auto& group) { group.all_reduce(at::zeros({8}, at::kInt), Reduction::kSum).wait(); },
                      "rank 0 calls all_reduce(sum) of 8 Float, rank 1 calls all_reduce(sum) of 8 Int");
  expect_disagreement([](auto& group) { (void)group.allocate({8}, at::kFloat); },
                      [](auto& group) { (void)group.allocate({8}, at::kInt); },
                      "rank 0 calls allocate of 8 Float (sizes 8), rank 1 calls allocate of 8 Int (sizes 8)");
}

TEST(CheckedCommunicator, DetectsDifferentSizes) {
  expect_disagreement([](auto& group) { group.broadcast(floats(8), 0).wait(); },
                      [](auto& group) { group.broadcast(floats(9), 0).wait(); },
                      "rank 0 calls broadcast(root 0) of 8 Float, rank 1 calls broadcast(root 0) of 9 Float");
}

// Applies also to backends that cannot allocate shared memory.
TEST(CheckedCommunicator, DetectsDifferentAllocations) {
  expect_disagreement([](auto& group) { (void)group.allocate({2, 3}, at::kFloat); },
                      [](auto& group) { (void)group.allocate_shared({2, 3}, at::kFloat); },
                      "rank 0 calls allocate of 6 Float (sizes 2, 3), rank 1 calls allocate_shared of 6 Float");
  expect_disagreement([](auto& group) { (void)group.allocate_shared({2, 3}, at::kFloat); },
                      [](auto& group) { (void)group.allocate_shared({2, 4}, at::kFloat); },
                      "rank 0 calls allocate_shared of 6 Float (sizes 2, 3), rank 1 calls allocate_shared of 8 Float");
  expect_disagreement([](auto& group) { (void)group.allocate({2, 3}, at::kFloat); },
                      [](auto& group) { (void)group.allocate({3, 2}, at::kFloat); },
                      "rank 0 calls allocate of 6 Float (sizes 2, 3), rank 1 calls allocate of 6 Float (sizes 3, 2)");
}

TEST(CheckedCommunicator, DetectsDifferentRoots) {
  expect_disagreement([](auto& group) { group.reduce(floats(8), Reduction::kSum, 0).wait(); },
                      [](auto& group) { group.reduce(floats(8), Reduction::kSum, 2).wait(); },
                      "rank 0 calls reduce(sum, root 0) of 8 Float, rank 1 calls reduce(sum, root 2) of 8 Float");
}

TEST(CheckedCommunicator, DetectsDifferentReductions) {
  expect_disagreement([](auto& group) { group.all_reduce(floats(8), Reduction::kMin).wait(); },
                      [](auto& group) { group.all_reduce(floats(8), Reduction::kMax).wait(); },
                      "rank 0 calls all_reduce(min) of 8 Float, rank 1 calls all_reduce(max) of 8 Float");
}

TEST(CheckedCommunicator, DetectsDifferentNamesOfCustomReductions) {
  const auto reduce_by = [](const std::string& name) {
    return [name](Communicator& group) {
      group.all_reduce(floats(8), Reduction::custom<float>(name, [](auto, auto) {})).wait();
    };
  };
  expect_disagreement(reduce_by("larger"), reduce_by("smaller"), "8 Float (larger), rank 1 calls all_reduce(");
  expect_disagreement(reduce_by("larger"), reduce_by("smaller"), "8 Float (smaller)");
}

TEST(CheckedCommunicator, DetectsDifferentCounts) {
  const auto gather_by = [](const std::vector<std::int64_t>& counts) {
    return [counts](Communicator& group) {
      group.all_gather(floats(6), floats(counts[static_cast<std::size_t>(group.rank())]), counts).wait();
    };
  };
  expect_disagreement(gather_by({1, 2, 3}), gather_by({3, 2, 1}),
                      "rank 0 calls all_gather of 6 Float (counts 1, 2, 3), rank 1 calls all_gather of 6 Float "
                      "(counts 3, 2, 1)");
  expect_disagreement(
      gather_by({1, 2, 3}), [](auto& group) { group.all_gather(floats(6), floats(2)).wait(); },
      "(counts 1, 2, 3), rank 2 calls all_gather of 6 Float", 2);
}

// Rank 1 expects two elements from rank 0, which sends one.
TEST(CheckedCommunicator, DetectsCountsOfAnUnevenExchangeThatDoNotMatch) {
  const auto exchange = [](Communicator& group, std::int64_t from_first) {
    const std::vector<std::int64_t> received{from_first, 1, 1}, sent{1, 1, 1};
    group.all_to_all(floats(from_first + 2), floats(3), received, sent).wait();
  };
  expect_disagreement([&](auto& group) { exchange(group, 1); }, [&](auto& group) { exchange(group, 2); },
                      "in all_to_all rank 0 sends 1 elements to rank 1, which expects 2");
}

TEST(CheckedCommunicator, DetectsDifferentOperationsOfTheCaller) {
  const auto own = [](std::int64_t elements) {
    return [elements](Communicator& group) {
      group.run({.elements = elements, .op = Op::kCustom, .dtype = at::kFloat}, [] { FAIL() << "ran"; }).wait();
    };
  };
  expect_disagreement(own(3), own(4), "rank 0 calls custom operation of 3 Float, rank 1 calls custom operation of 4");
}

TEST(CheckedCommunicator, RunsOperationsOnWhichRanksAgree) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    CheckedCommunicator decorated(world);
    Communicator& checked = decorated;
    const int rank = checked.rank();
    at::Tensor tensor = at::full({4}, rank + 1);
    checked.all_reduce(tensor, Reduction::kProduct).wait();
    EXPECT_EQ(tensor[0].item<std::int64_t>(), 6);
    at::Tensor all = at::zeros({6}, at::kLong);
    checked.all_gather(all, at::full({rank + 1}, rank), {1, 2, 3}).wait();
    EXPECT_EQ(all.sum().item<std::int64_t>(), 0 + 2 * 1 + 3 * 2);
    at::Tensor exchanged = at::zeros({3}, at::kLong);
    checked.all_to_all(exchanged, at::full({3}, rank), {1, 1, 1}, {1, 1, 1}).wait();
    EXPECT_EQ(exchanged.sum().item<std::int64_t>(), 3);
    checked.barrier(Seconds(30)).wait();
    bool ran = false;
    checked.run({.op = Op::kCustom}, [&] { ran = true; }).wait();
    EXPECT_TRUE(ran);
  });
}

// Not all ranks take part in these operations.
TEST(CheckedCommunicator, MessagesPassUnchecked) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    CheckedCommunicator decorated(world);
    Communicator& checked = decorated;
    at::Tensor tensor = at::full({2}, checked.rank());
    if (checked.rank() == 0) checked.send(tensor, 1).wait();
    if (checked.rank() == 1) checked.recv(tensor, 0).wait();
    if (checked.rank() == 2) checked.run({.peer = 1, .op = Op::kSend}, [] {}).wait();
    EXPECT_EQ(tensor[0].item<std::int64_t>(), checked.rank() == 1 ? 0 : checked.rank());
    checked.barrier().wait();
  });
}

// Groups that are split off compare and number operations under their own names.
TEST(CheckedCommunicator, SplitGroupsAreChecked) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    CheckedCommunicator decorated(world);
    Communicator& checked = decorated;
    const auto pair = checked.split(checked.rank() == 2 ? -1 : 0, 0);
    if (!pair) return;
    const auto error = mismatch_of([&] { pair->broadcast(floats(4), pair->rank()).wait(); });
    EXPECT_THAT(error, HasSubstr("#1 of " + pair->name() + ", rank " + std::to_string(pair->rank()) + " of 2"));
    EXPECT_THAT(error, HasSubstr("rank 0 calls broadcast(root 0) of 4 Float, rank 1 calls broadcast(root 1)"));
  });
}

// An operation in flight owns its data, so ranks may wait in any order.
TEST(CheckedCommunicator, OperationsInFlightAreDistinguished) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    CheckedCommunicator decorated(world);
    Communicator& checked = decorated;
    at::Tensor first = at::ones({4}), third = at::ones({4});
    auto one = checked.all_reduce(first, Reduction::kSum);
    auto two = checked.all_reduce(floats(checked.rank() + 1), Reduction::kSum);
    auto three = checked.all_reduce(third, Reduction::kSum);
    three.wait();
    EXPECT_THAT(mismatch_of([&] { two.wait(); }), HasSubstr("#2 of world"));
    one.wait();
    EXPECT_EQ(first[0].item<float>() + third[0].item<float>(), 6);
  });
}

}  // namespace
}  // namespace phalanx::testing
