// SPDX-License-Identifier: Apache-2.0
// The ranks that are left when others leave, do not come or are too late. For backends that can shrink groups.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

using Kind = CommError::Kind;

constexpr Seconds kSoon{0.3};

// Returns the sum of the survivors' ranks in the first world.
double sum_of_ranks(Communicator& group, int world_rank) {
  const at::Tensor mine = at::full({1000}, world_rank, at::kFloat);
  group.all_reduce(mine, Reduction::kSum).wait();
  return mine[999].item<float>();
}

// Returns the error of a second barrier, to which not all ranks come. A rank that has returned from the first barrier
// may leave or shrink the group at once, which interrupts those that are still in it.
CommError error_of_two_barriers(Communicator& world) {
  return error_of([&] {
    world.barrier().wait();
    world.barrier().wait();
  });
}

TEST(Survivors, ContinueWithoutARankThatHasLeft) {
  run_ranks(kBackend, 4, [](const CommunicatorPtr& world) {
    if (world->rank() == 1) return world->barrier().wait();
    EXPECT_EQ(error_of_two_barriers(*world).kind(), Kind::kPeerLost);
    const auto left = world->shrink();
    EXPECT_EQ(left->size(), 3);
    EXPECT_EQ(left->name(), "world/survivors");
    EXPECT_EQ(left->rank(), world->rank() == 0 ? 0 : world->rank() - 1);
    EXPECT_EQ(sum_of_ranks(*left, world->rank()), 0 + 2 + 3);
    if (left->rank() == 0) {
      left->send(at::ones({5}), 2).wait();
    } else if (left->rank() == 2) {
      left->recv(at::zeros({5}), 0).wait();
    }
    const auto pairs = left->split(left->rank() % 2, 0);
    EXPECT_EQ(pairs->size(), left->rank() % 2 == 0 ? 2 : 1);
    EXPECT_EQ(left->allocate({3}, at::kFloat).numel(), 3);
    if (left->rank() == 2) return;
    EXPECT_EQ(error_of([&] { left->barrier().wait(); }).kind(), Kind::kPeerLost);
    const auto last = left->shrink();
    EXPECT_EQ(sum_of_ranks(*last, world->rank()), 0 + 2);
  });
}

TEST(Survivors, InterruptOperationsThatWouldHaveWaited) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    // No rank is lost: rank 0 shrinks the group for other reasons, and the others learn of it.
    if (world->rank() == 0) {
      world->barrier().wait();
    } else {
      EXPECT_EQ(error_of_two_barriers(*world).kind(), Kind::kPeerLost);
    }
    EXPECT_EQ(sum_of_ranks(*world->shrink(), world->rank()), 0 + 1 + 2);
  });
}

// Rank 0 waits for a message of rank 1, which waits for one of rank 0 that is never sent.
TEST(Survivors, AreNotKeptWaitingByARankThatAnExceptionInterrupts) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    auto group = world->split(0, 0);
    if (world->rank() == 0) {
      try {
        const Work coming = group->recv(at::zeros({5}), 1);
        throw std::runtime_error("interrupted");
      } catch (const std::runtime_error&) {
        const auto later = error_of([&] { group->send(at::zeros({5}), 1).wait(); });
        EXPECT_EQ(later.kind(), Kind::kPeerLost);
        EXPECT_TRUE(contains(later, "this rank has left the group because of another exception")) << later.what();
        const auto body = [] { ADD_FAILURE() << "would take the place of an operation that this rank has left"; };
        EXPECT_EQ(error_of([&] { group->run({.op = Op::kCustom}, body).wait(); }).kind(), Kind::kPeerLost);
      }
    } else if (world->rank() == 1) {
      EXPECT_EQ(error_of([&] { group->recv(at::zeros({5}), 0).wait(); }).kind(), Kind::kPeerLost);
    }
    group.reset();
    EXPECT_EQ(sum_of_ranks(*world->shrink(), world->rank()), 0 + 1 + 2);
  });
}

// Rank 0 has launched an all-reduce that it would run only when it waits for it. It waits for a message of rank 1.
TEST(Survivors, AreNotKeptWaitingByAnOperationThatIsNotRunAnyMore) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const at::Tensor tensor = at::zeros({5});
    const auto work = [&] {
      const auto first = world->split(0, 0), second = world->split(0, 0);
      const Work later = first->all_reduce(tensor, Reduction::kSum);
      if (world->rank() == 1) throw std::runtime_error("interrupted");
      second->recv(tensor.clone(), 1).wait();
    };
    if (world->rank() == 1) {
      EXPECT_THROW(work(), std::runtime_error);
      const auto records = world->recorder().records();
      const auto of_later = std::ranges::find(records, Op::kAllReduce, [](const auto& one) { return one.call.op; });
      ASSERT_NE(of_later, records.end());
      EXPECT_EQ(of_later->started_ns, of_later->launched_ns) << "it has been run";
    } else {
      EXPECT_EQ(error_of(work).kind(), Kind::kPeerLost);
    }
    EXPECT_EQ(sum_of_ranks(*world->shrink(), world->rank()), 0 + 1);
  });
}

// Takes part in a barrier, which a rank that has returned from it may interrupt.
void leave_after_barrier(Communicator& world) {
  try {
    world.barrier().wait();
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), Kind::kPeerLost) << error.what();
  }
}

TEST(Survivors, MayBeASingleRank) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    if (world->rank() != 2) return leave_after_barrier(*world);
    world->barrier().wait();
    const auto alone = world->shrink();
    EXPECT_EQ(alone->size(), 1);
    EXPECT_EQ(sum_of_ranks(*alone, 2), 2);
  });
}

TEST(Survivors, ContinueWithoutARankThatIsTooLate) {
  const auto body = [](const CommunicatorPtr& world) {
    const auto here = world->split(0, 0);
    if (world->rank() != 1) {
      EXPECT_EQ(sum_of_ranks(*here->shrink(), world->rank()), 0 + 2);
    }
    world->barrier(Seconds(60)).wait();
    if (world->rank() == 1) {
      const auto error = error_of([&] { (void)here->shrink(); });
      EXPECT_EQ(error.kind(), Kind::kPeerLost);
      EXPECT_TRUE(contains(error, "shrink of world/0, rank 1 of 3: the others waited")) << error.what();
    }
    world->barrier(Seconds(60)).wait();
  };
  run_ranks(kBackend, 3, body, kSoon);
}

TEST(Survivors, ContinueWithoutTheFirstRankAndAnotherThatAreTooLate) {
  const auto body = [](const CommunicatorPtr& world) {
    const auto here = world->split(0, 0);
    const bool late = world->rank() == 0 || world->rank() == 2;
    if (!late) {
      EXPECT_EQ(sum_of_ranks(*here->shrink(), world->rank()), 1 + 3 + 4);
    }
    world->barrier(Seconds(60)).wait();
    if (late) {
      EXPECT_EQ(error_of([&] { (void)here->shrink(); }).kind(), Kind::kPeerLost);
    }
    world->barrier(Seconds(60)).wait();
  };
  run_ranks(kBackend, 5, body, kSoon);
}

}  // namespace
}  // namespace phalanx::testing
