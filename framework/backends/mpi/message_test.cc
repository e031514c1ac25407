// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/message.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "framework/backends/testing/ranks_under_mpirun.h"
#include "framework/base/error.h"

namespace phalanx::mpi {
namespace {

// Each rank sends to the next and receives from the previous one; a single rank sends to itself.
class Messages : public RanksUnderMpirun {
 protected:
  CommunicatorPtr world_ = connect();
  int rank_ = world_->rank(), size_ = world_->size();
  int next_ = (rank_ + 1) % size_, previous_ = (rank_ + size_ - 1) % size_;
};

// The order holds even if receives are waited for in another order than they were launched.
TEST_F(Messages, WithTheSameTagArriveInOrder) {
  constexpr int kMessages = 20;
  std::vector<Work> works;
  std::vector<at::Tensor> received;
  for (int i = 0; i < kMessages; ++i) {
    works.push_back(world_->send(at::full({1 + 3000 * (i % 3)}, 100 * rank_ + i, at::kInt), next_, 5));
  }
  for (int i = 0; i < kMessages; ++i) {
    received.push_back(at::zeros({1 + 3000 * (i % 3)}, at::kInt));
    works.push_back(world_->recv(received.back(), previous_, 5));
  }
  while (!works.empty()) {
    works.back().wait();
    works.pop_back();
  }
  for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(received[i].eq(100 * previous_ + i).all().item<bool>()) << i;
}

TEST_F(Messages, AreDistinguishedByEveryPossibleTag) {
  std::vector<Work> sent;
  for (int tag : {0, 1, kMaxTag, kMaxAnyTag}) sent.push_back(world_->send(at::full({2}, tag, at::kInt), next_, tag));
  for (int tag : {kMaxAnyTag, 1, kMaxTag, 0}) {
    auto tensor = at::zeros({2}, at::kInt);
    world_->recv(tensor, previous_, tag).wait();
    EXPECT_EQ(tensor[1].item<int>(), tag);
  }
}

// The messages are longer or shorter than expected, and cover all the ways in which MPI moves messages.
TEST_F(Messages, WithAWrongLengthAreMismatchesThatHarmNothing) {
  for (const std::int64_t expected : {0, 1, 10, 3000, 100'000, 3'000'000}) {
    for (const std::int64_t actual : {expected / 2, 2 * expected + 1}) {
      if (actual == expected) continue;
      auto memory = at::full({expected + 2}, 7, at::kByte);
      auto tensor = memory.narrow(0, 1, expected);
      Work sent = world_->send(at::zeros({actual}, at::kByte), next_, 1);
      try {
        world_->recv(tensor, previous_, 1).wait();
        FAIL() << "accepted " << actual << " bytes instead of " << expected;
      } catch (const CommError& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.kind(), CommError::Kind::kMismatch);
        EXPECT_NE(text.find("sent " + std::to_string(actual) + " bytes"), text.npos) << text;
        EXPECT_NE(text.find("has " + std::to_string(expected)), text.npos) << text;
        EXPECT_NE(text.find(" of world, rank " + std::to_string(rank_)), text.npos) << text;
      }
      sent.wait();
      EXPECT_TRUE(memory.eq(7).all().item<bool>()) << actual << " bytes instead of " << expected;
    }
  }
  auto tensor = at::full({1}, 1.0F);
  world_->all_reduce(tensor, Reduction::kSum).wait();
  EXPECT_EQ(tensor.item<float>(), static_cast<float>(size_)) << "the group can still be used";
}

// A long message does not leave before its receiver is ready. Here the receiver waits for other operations first.
TEST_F(Messages, ProgressWhileTheirRankWaitsForSomethingElse) {
  auto received = at::zeros({2'000'000}, at::kInt);
  Work receive = world_->recv(received, previous_, 0);
  Work send = world_->send(at::full({2'000'000}, rank_, at::kInt), next_, 0);
  if (rank_ % 2 == 0) send.wait();
  const auto child = world_->split(0, rank_);
  child->barrier().wait();
  if (rank_ % 2 == 1) send.wait();
  receive.wait();
  EXPECT_TRUE(received.eq(previous_).all().item<bool>());
}

TEST_F(Messages, CompleteWithoutWait) {
  auto received = at::zeros({50'000}, at::kInt);
  Work receive = world_->recv(received, previous_, 0);
  Work send = world_->send(at::full({50'000}, rank_, at::kInt), next_, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!(receive.done() && send.done()) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(receive.done() && send.done());
  EXPECT_TRUE(received.eq(previous_).all().item<bool>());
}

TEST_F(Messages, CompleteWhenTheirWorkIsDroppedWithoutWait) {
  auto received = at::zeros({300'000}, at::kInt);
  {
    Work receive = world_->recv(received, previous_, 0);
    Work send = world_->send(at::full({300'000}, rank_, at::kInt), next_, 0);
    world_.reset();
  }
  EXPECT_TRUE(received.eq(previous_).all().item<bool>());
}

TEST_F(Messages, MayBeSentToTheirSender) {
  auto received = at::zeros({100'000}, at::kLong);
  Work send = world_->send(at::arange(100'000, at::kLong), rank_, 3);
  world_->recv(received, rank_, 3).wait();
  send.wait();
  EXPECT_TRUE(received.equal(at::arange(100'000, at::kLong)));
}

// Messages are raw bytes.
TEST_F(Messages, MayBeReadAsAnotherType) {
  auto received = at::zeros({1}, at::kInt);
  Work send = world_->send(at::full({1}, 1.0F), next_, 0);
  world_->recv(received, previous_, 0).wait();
  EXPECT_EQ(received.item<int>(), 0x3F800000);
}

TEST_F(Messages, MayBeExchangedByThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int tag = 0; tag < 3; ++tag) {
    threads.emplace_back([this, tag] {
      for (int round = 0; round < 100; ++round) {
        auto received = at::zeros({100 * round}, at::kInt);
        Work send = world_->send(at::full({100 * round}, tag, at::kInt), next_, tag);
        world_->recv(received, previous_, tag).wait();
        EXPECT_TRUE(received.eq(tag).all().item<bool>());
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Messages, AreRefusedWithAnInvalidTagOrPeer) {
  EXPECT_THROW((void)world_->send(at::zeros({1}), size_, 0), std::invalid_argument);
  EXPECT_THROW((void)world_->recv(at::zeros({1}), rank_, -1), std::invalid_argument);
  EXPECT_THROW((void)world_->recv(at::zeros({1}), rank_, kMaxAnyTag + 1), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx::mpi
