// SPDX-License-Identifier: Apache-2.0
// A rank that leaves or never arrives, in each operation of backends with shared memory.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

using Kind = CommError::Kind;

// The ranks that need nothing from the last rank if the root is rank 0. They may go on without it.
enum class Independent { kNone, kRoot, kAllButRoot };

struct Case {
  const char* name;
  std::function<void(Communicator& world, std::int64_t elements)> run;  // `elements`: size of one part
  Independent independent = Independent::kNone;
};

at::Tensor floats(std::int64_t elements) { return at::zeros({elements}); }

// All operations that need every rank. The root is rank 0, which stays.
const Case kCases[] = {
    {"broadcast", [](auto& world, auto n) { world.broadcast(floats(n), 0).wait(); }, Independent::kRoot},
    {"reduce(sum, root 0)", [](auto& world, auto n) { world.reduce(floats(n), Reduction::kSum, 0).wait(); },
     Independent::kAllButRoot},
    {"all_reduce(sum)", [](auto& world, auto n) { world.all_reduce(floats(n), Reduction::kSum).wait(); }},
    {"reduce_scatter",
     [](auto& world, auto n) { world.reduce_scatter(floats(n), floats(n * world.size()), Reduction::kSum).wait(); }},
    {"all_gather", [](auto& world, auto n) { world.all_gather(floats(n * world.size()), floats(n)).wait(); }},
    {"gather", [](auto& world, auto n) { world.gather(floats(n * world.size()), floats(n), 0).wait(); },
     Independent::kAllButRoot},
    {"scatter", [](auto& world, auto n) { world.scatter(floats(n), floats(n * world.size()), 0).wait(); },
     Independent::kRoot},
    {"all_to_all",
     [](auto& world, auto n) { world.all_to_all(floats(n * world.size()), floats(n * world.size())).wait(); }},
    {"barrier", [](auto& world, auto) { world.barrier().wait(); }},
    {"split", [](auto& world, auto) { (void)world.split(0, 0); }},
    {"allocate", [](auto& world, auto n) { (void)world.allocate({n}, at::kFloat); }},
    {"allocate_shared", [](auto& world, auto n) { (void)world.allocate_shared({n}, at::kFloat); }},
};

// A rank other than the root of a broadcast or scatter needs the root only.
bool may_go_on(Independent independent, int rank) {
  return independent == Independent::kRoot || (independent == Independent::kAllButRoot && rank != 0);
}

constexpr Seconds kShort{0.3};

std::string first_word(const std::string& name) { return name.substr(0, name.find('(')); }

TEST(SharedMemoryLosses, ARankThatIsGoneIsNamedByEveryOperation) {
  for (const auto& [name, run, independent] : kCases) {
    for (const std::int64_t elements : {10, 100'000}) {
      run_ranks(kBackend, 3, [&](const CommunicatorPtr& world) {
        world->barrier().wait();
        if (world->rank() == 2) return;
        std::string where = first_word(name) + " #2";
        const auto error = error_of([&] {
          run(*world, elements);
          if (!may_go_on(independent, world->rank())) return;
          where = "barrier #3";
          world->barrier().wait();
        });
        EXPECT_EQ(error.kind(), Kind::kPeerLost) << error.what();
        where += " of world, rank " + std::to_string(world->rank()) + " of 3";
        EXPECT_TRUE(contains(error, where)) << error.what();
        EXPECT_TRUE(contains(error, " s)")) << "how long it waited: " << error.what();
      });
    }
  }
}

// The root of a broadcast or scatter may be a few operations ahead of the others, but no more.
TEST(SharedMemoryLosses, ARankThatNeverComesIsNamedByEveryOperationAfterTheTimeout) {
  for (const auto& [name, run, independent] : kCases) {
    const auto body = [&](const CommunicatorPtr& world) {
      const auto here = world->split(0, 0);  // its failure does not affect the world
      if (world->rank() == 0) {
        const bool goes_on = may_go_on(independent, 0);
        const auto error = error_of([&] {
          for (int i = 0; i < (goes_on ? 10 : 1); ++i) run(*here, 10);
        });
        EXPECT_EQ(error.kind(), Kind::kTimeout) << error.what();
        const auto where = first_word(name) + (goes_on ? " #4" : " #1") + " of world/0, rank 0 of 2: waited ";
        EXPECT_TRUE(contains(error, where)) << error.what();
        EXPECT_GE(seconds_waited(error.what()), kShort.count()) << error.what();
        EXPECT_TRUE(contains(error, "s for rank 1")) << error.what();
      }
      world->barrier(Seconds(60)).wait();
    };
    run_ranks(kBackend, 2, body, kShort);
  }
}

// The root sends and goes on, while the other rank comes only later.
TEST(SharedMemoryLosses, ARootGoesOnBeforeTheOthersCome) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    constexpr auto kLate = std::chrono::milliseconds(600);
    world->barrier().wait();
    if (world->rank() == 1) std::this_thread::sleep_for(kLate);
    const auto start = std::chrono::steady_clock::now();
    at::Tensor tensor = floats(100);
    for (int i = 0; i < 3; ++i) {
      world->broadcast(tensor.fill_(world->rank() == 0 ? i : -1), 0).wait();
      EXPECT_EQ(tensor[99].item<float>(), i);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, kLate / 2);
  });
}

// The first rank to combine elements fails while doing so.
TEST(SharedMemoryLosses, ARankThatFailsInsideAReductionIsNoticed) {
  const auto throws = Reduction::custom<float>("throws", [](auto, auto) { throw std::length_error("in the middle"); });
  const std::function<Work(Communicator&)> launches[] = {
      [&](auto& world) { return world.all_reduce(floats(100'000), throws); },
      [&](auto& world) { return world.all_reduce(floats(8), throws); },
      [&](auto& world) { return world.reduce(floats(100'000), throws, 1); },
      [&](auto& world) { return world.reduce_scatter(floats(50'000), floats(150'000), throws); },
  };
  for (const auto& launch : launches) {
    run_ranks(kBackend, 3, [&](const CommunicatorPtr& world) {
      try {
        launch(*world).wait();
      } catch (const std::length_error&) {
        // This rank gets its own error; the others learn that it gave up.
      } catch (const CommError& error) {
        EXPECT_EQ(error.kind(), Kind::kPeerLost) << error.what();
      }
      const auto later = error_of([&] { world->barrier().wait(); });
      EXPECT_TRUE(later.kind() == Kind::kPeerLost || later.kind() == Kind::kSystem) << later.what();
    });
  }
}

// ---- messages

TEST(SharedMemoryLosses, AReceiverLearnsThatItsSenderIsGone) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() != 0) return;
    const auto error = error_of([&] { world->recv(floats(5), 2, 7).wait(); });
    EXPECT_EQ(error.kind(), Kind::kPeerLost);
    EXPECT_TRUE(contains(error, "recv(from 2, tag 7) of 5 Float #")) << error.what();
    EXPECT_TRUE(contains(error, "of world, rank 0 of 3: rank 2 left the group")) << error.what();
  });
}

TEST(SharedMemoryLosses, ASenderLearnsThatItsReceiverIsGone) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() != 0) return;
    const auto error = error_of([&] { world->send(floats(1'000'000), 1, 7).wait(); });
    EXPECT_EQ(error.kind(), Kind::kPeerLost);
    EXPECT_TRUE(contains(error, "send(to 1, tag 7) of 1000000 Float #")) << error.what();
  });
}

TEST(SharedMemoryLosses, AMessageThatNeverComesIsATimeout) {
  const auto body = [](const CommunicatorPtr& world) {
    const auto here = world->split(0, 0);
    if (world->rank() == 0) {
      const auto error = error_of([&] { here->recv(floats(5), 1, 7).wait(); });
      EXPECT_EQ(error.kind(), Kind::kTimeout);
      EXPECT_TRUE(contains(error, "recv(from 1, tag 7) of 5 Float #1 of world/0, rank 0 of 2: waited "))
          << error.what();
      EXPECT_GE(seconds_waited(error.what()), kShort.count()) << error.what();
      EXPECT_TRUE(contains(error, "s for rank 1")) << error.what();
      const auto later = error_of([&] { here->barrier().wait(); });
      EXPECT_STREQ(later.what(), error.what()) << "the group is broken, and the cause stays the same";
    }
    world->barrier(Seconds(60)).wait();
  };
  run_ranks(kBackend, 2, body, kShort);
}

TEST(SharedMemoryLosses, AMessageThatIsNeverReceivedIsATimeout) {
  const auto body = [](const CommunicatorPtr& world) {
    const auto here = world->split(0, 0);
    if (world->rank() == 0) {
      const auto error = error_of([&] { here->send(floats(1'000'000), 1).wait(); });
      EXPECT_EQ(error.kind(), Kind::kTimeout);
      EXPECT_TRUE(contains(error, "send(to 1, tag 0) of 1000000 Float #1 of world/0")) << error.what();
    }
    world->barrier(Seconds(60)).wait();
  };
  run_ranks(kBackend, 2, body, kShort);
}

// A message that was sent completely can be received after its sender has left.
TEST(SharedMemoryLosses, AMessageOutlivesItsSender) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    if (world->rank() == 1) {
      world->send(at::full({100}, 5.0F), 0).wait();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const at::Tensor received = floats(100);
    world->recv(received, 1).wait();
    EXPECT_EQ(received[99].item<float>(), 5);
  });
}

TEST(SharedMemoryLosses, AMismatchedMessageNamesBothSizes) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    if (world->rank() == 1) {
      world->send(at::ones({12}), 0, 3).wait();
    } else {
      const auto error = error_of([&] { world->recv(floats(10), 1, 3).wait(); });
      EXPECT_EQ(error.kind(), Kind::kMismatch);
      EXPECT_TRUE(contains(error, "recv(from 1, tag 3) of 10 Float #")) << error.what();
      EXPECT_TRUE(contains(error, "40 bytes") && contains(error, "48")) << error.what();
    }
    world->barrier().wait();
  });
}

}  // namespace
}  // namespace phalanx::testing
