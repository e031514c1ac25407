// Faults that backends with shared memory detect by themselves: mismatched calls, absent and lost peers.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "framework/base/error.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

template <class Call>
CommError error_of(Call call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "expected a CommError";
  return CommError(CommError::Kind::kSystem, "none");
}

bool contains(const CommError& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

TEST(DirectFaults, DifferentOperationsAreNamedOnAllRanksAndTheGroupGoesOn) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({5000});
    const auto error = error_of([&] {
      (world->rank() == 1 ? world->broadcast(tensor, 2) : world->all_reduce(tensor, Reduction::kMax)).wait();
    });
    EXPECT_EQ(error.kind(), CommError::Kind::kMismatch);
    EXPECT_TRUE(
        contains(error, "rank 0 calls all_reduce(max) of 5000 Float, rank 1 calls broadcast(root 2) of 5000 Float"))
        << error.what();
    EXPECT_EQ(tensor.use_count(), 1u) << "the operation has let go of it";
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), 3);
  });
}

TEST(DirectFaults, DifferentSizesDtypesRootsAndReductionsAreMismatches) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const bool odd = world->rank() == 1;
    const auto kind = [&](auto call) { return error_of([&] { call().wait(); }).kind(); };
    EXPECT_EQ(kind([&] { return world->all_reduce(at::zeros({odd ? 9 : 8}), Reduction::kSum); }),
              CommError::Kind::kMismatch);
    EXPECT_EQ(kind([&] { return world->all_reduce(at::zeros({8}, odd ? at::kDouble : at::kFloat), Reduction::kSum); }),
              CommError::Kind::kMismatch);
    EXPECT_EQ(kind([&] { return world->all_reduce(at::zeros({8}), odd ? Reduction::kMin : Reduction::kMax); }),
              CommError::Kind::kMismatch);
    EXPECT_EQ(kind([&] { return world->broadcast(at::zeros({8}), odd); }), CommError::Kind::kMismatch);
  });
}

TEST(DirectFaults, AllocationsOfDifferentSizesAreAMismatchAndTheGroupGoesOn) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const auto error = error_of([&] { (void)world->allocate({world->rank() == 0 ? 1000 : 200'000}, at::kFloat); });
    EXPECT_EQ(error.kind(), CommError::Kind::kMismatch);
    EXPECT_TRUE(contains(error, "rank 0 calls allocate of 4000 bytes, rank 1 calls allocate of 800000 bytes"))
        << error.what();
    const auto other = error_of([&] {
      if (world->rank() == 0) {
        (void)world->split(0, 0);
      } else {
        world->barrier().wait();
      }
    });
    EXPECT_EQ(other.kind(), CommError::Kind::kMismatch) << other.what();
    world->barrier().wait();
  });
}

TEST(DirectFaults, APeerThatIsGoneIsNamedWhileAnotherIsMerelyLate) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 2) return;  // gone
    if (world->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    const auto start = std::chrono::steady_clock::now();
    const auto error = error_of([&] { world->barrier().wait(); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1)) << error.what();
  });
}

TEST(DirectFaults, AnAbsentPeerIsNamedAfterTheTimeout) {
  const auto body = [](const CommunicatorPtr& world) {
    if (world->rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
      const auto error = error_of([&] { world->barrier().wait(); });
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << "the others have given up: " << error.what();
      return;
    }
    at::Tensor tensor = at::ones({10});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    if (error.kind() == CommError::Kind::kTimeout) {
      EXPECT_TRUE(contains(error, "all_reduce #1 of world, rank " + std::to_string(world->rank()) + " of 3"))
          << error.what();
      EXPECT_TRUE(contains(error, "for rank 2")) << error.what();
    } else {
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
    }
    const auto later = error_of([&] { world->barrier().wait(); });
    EXPECT_STREQ(later.what(), error.what()) << "the group is broken, and the cause stays the same";
  };
  run_ranks(kBackend, 3, body, Seconds(0.3));
}

TEST(DirectFaults, APeerThatLeavesIsNamedAtOnce) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 1) return;  // its body ends here, and with it its communicator
    const auto start = std::chrono::steady_clock::now();
    at::Tensor tensor = at::ones({100'000});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "far below the timeout";
  });
}

}  // namespace
}  // namespace phalanx::testing
