// SPDX-License-Identifier: Apache-2.0
// Tests of send and recv. The right neighbor of rank r is r + 1, and of the last rank 0. A single rank sends to itself.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <thread>

#include "framework/base/error.h"
#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Messaging : public Suite {
 protected:
  static int right(const Communicator& group) { return (group.rank() + 1) % group.size(); }
  static int left(const Communicator& group) { return (group.rank() + group.size() - 1) % group.size(); }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Messaging, ::testing::ValuesIn(world_sizes()), ranks_of);

at::Tensor floats(std::int64_t elements, int value) { return at::full({elements}, value, at::kFloat); }

constexpr std::int64_t kLarge = 300'000;  // floats: more than any backend buffers for an absent receiver

TEST_P(Messaging, ArriveAsTheyWereSent) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 4 << 20, [&](Arena& arena, const std::string& where) {
      const auto shift = [&](std::int64_t elements, at::ScalarType dtype) {
        arena.reset();
        const auto what = input_of(world->rank(), elements, dtype);
        const auto sent = arena.take(what), received = arena.take(elements, dtype);
        Work recv = world->recv(received, left(*world)), send = world->send(sent, right(*world));
        send.wait();
        recv.wait();
        EXPECT_TRUE(at::equal(received, input_of(left(*world), elements, dtype))) << about(elements, dtype) << where;
        EXPECT_TRUE(at::equal(sent, what)) << "the sent tensor must not change";
        EXPECT_TRUE(arena.guards_are_intact()) << about(elements, dtype) << where;
      };
      for (const auto dtype : all_dtypes()) {
        for (const auto elements : kFew) shift(elements, dtype);
      }
      for (const auto elements : kMany) shift(elements, at::kDouble);
    });
  });
}

TEST_P(Messaging, GoFromAllRanksToAllAtOnce) {
  run([](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {std::int64_t{3}, kLarge}) {
      std::vector<at::Tensor> received;
      std::vector<Work> works;
      for (int peer = 0; peer < world->size(); ++peer) {
        works.push_back(world->send(floats(elements, world->rank() * 10 + peer), peer));
      }
      for (int peer = 0; peer < world->size(); ++peer) {
        received.push_back(at::zeros({elements}));
        works.push_back(world->recv(received.back(), peer));
      }
      wait_all(works);
      for (int peer = 0; peer < world->size(); ++peer) {
        EXPECT_TRUE(at::equal(received[peer], floats(elements, peer * 10 + world->rank()))) << "from " << peer;
      }
    }
  });
}

// The tags include the highest one that users may choose.
TEST_P(Messaging, AreDistinguishedByTags) {
  run([](const CommunicatorPtr& world) {
    const int tags[] = {kMaxTag, 7, 0};
    for (const std::int64_t elements : {std::int64_t{5}, kLarge}) {
      std::vector<Work> sends;
      for (const int tag : tags) sends.push_back(world->send(floats(elements, tag), right(*world), tag));
      for (const int tag : {0, 7, kMaxTag}) {  // in reverse order
        const at::Tensor received = at::zeros({elements});
        world->recv(received, left(*world), tag).wait();
        EXPECT_TRUE(at::equal(received, floats(elements, tag))) << "tag " << tag;
      }
      for (auto& send : sends) send.wait();
    }
  });
}

TEST_P(Messaging, WithTheSameTagArriveInOrder) {
  run([](const CommunicatorPtr& world) {
    constexpr int kMessages = 50;
    std::vector<Work> works;
    std::vector<at::Tensor> received;
    for (int i = 0; i < kMessages; ++i) {
      const std::int64_t elements = i % 5 == 0 ? 20'000 : i % 3;
      works.push_back(world->send(floats(elements, i), right(*world), 3));
      received.push_back(at::zeros({elements}));
      works.push_back(world->recv(received.back(), left(*world), 3));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(at::equal(received[i], at::full_like(received[i], i))) << i;
  });
}

TEST_P(Messaging, MayArriveBeforeTheirReceive) {
  run([](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{9}, kLarge}) {
      Work send = world->send(floats(elements, world->rank()), right(*world), 1);
      world->barrier().wait();
      const at::Tensor received = at::zeros({elements});
      world->recv(received, left(*world), 1).wait();
      EXPECT_TRUE(at::equal(received, floats(elements, left(*world))));
      send.wait();
    }
  });
}

TEST_P(Messaging, MayArriveAfterTheirReceive) {
  run([](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{9}, kLarge}) {
      const at::Tensor received = at::zeros({elements});
      Work recv = world->recv(received, left(*world), 1);
      world->barrier().wait();
      world->send(floats(elements, world->rank()), right(*world), 1).wait();
      recv.wait();
      EXPECT_TRUE(at::equal(received, floats(elements, left(*world))));
    }
  });
}

// Odd ranks receive first and then join the collective in which their left neighbours wait already.
TEST_P(Messaging, ProgressWhileTheirSenderWaitsInACollective) {
  run([](const CommunicatorPtr& world) {
    for (int i = 0; i < 5; ++i) {
      const bool first = world->rank() % 2 == 0;
      const at::Tensor received = at::zeros({kLarge});
      Work send = world->send(floats(kLarge, world->rank() + i), right(*world));
      at::Tensor sum = at::full({1}, 1, at::kLong);
      if (!first) world->recv(received, left(*world)).wait();
      world->all_reduce(sum, Reduction::kSum).wait();
      if (first) world->recv(received, left(*world)).wait();
      send.wait();
      EXPECT_TRUE(at::equal(received, floats(kLarge, left(*world) + i)));
      EXPECT_EQ(sum.item<std::int64_t>(), world->size());
    }
  });
}

// Rank 0 waits for the last rank in a group of these two. The last rank joins once rank 1 has received rank 0's
// message.
TEST_P(Messaging, ProgressWhileTheirSenderWaitsInAnotherGroup) {
  run([](const CommunicatorPtr& world) {
    const int last = world->size() - 1;
    const auto ends = world->split(world->rank() == 0 || world->rank() == last ? 0 : -1, 0);
    if (last < 2) return;
    const at::Tensor large = floats(kLarge, 3), word = floats(1, 4);
    if (world->rank() == 0) {
      Work send = world->send(large, 1);
      ends->barrier().wait();
      send.wait();
    } else if (world->rank() == 1) {
      const at::Tensor received = at::zeros({kLarge});
      world->recv(received, 0).wait();
      EXPECT_TRUE(at::equal(received, large));
      world->send(word, last).wait();
    } else if (world->rank() == last) {
      const at::Tensor received = at::zeros({1});
      world->recv(received, 1).wait();
      EXPECT_TRUE(at::equal(received, word));
      ends->barrier().wait();
    }
  });
}

TEST_P(Messaging, WithAWrongSizeAreAMismatchAtTheReceiver) {
  run([](const CommunicatorPtr& world) {
    for (const std::int64_t asked : {0, 3, 8, 50'000}) {
      for (const std::int64_t sent : {0, 7, 40'000}) {
        if (sent == asked) continue;
        Work send = world->send(floats(sent, 1), right(*world), 5);
        const at::Tensor received = at::zeros({asked});
        try {
          world->recv(received, left(*world), 5).wait();
          ADD_FAILURE() << "accepted " << sent << " elements instead of " << asked;
        } catch (const CommError& error) {
          EXPECT_EQ(error.kind(), CommError::Kind::kMismatch) << error.what();
          EXPECT_NE(std::string(error.what()).find("recv"), std::string::npos) << error.what();
        }
        send.wait();
        world->barrier().wait();
        Work good = world->send(floats(3, world->rank()), right(*world), 5);
        const at::Tensor next = at::zeros({3});
        world->recv(next, left(*world), 5).wait();
        good.wait();
        EXPECT_TRUE(at::equal(next, floats(3, left(*world)))) << "the next message arrives";
      }
    }
  });
}

TEST_P(Messaging, UseTheRanksOfTheirGroup) {
  run([](const CommunicatorPtr& world) {
    const auto group = world->split(world->rank() % 2, -world->rank());
    at::Tensor on_group = at::zeros({100}), on_world = at::zeros({100});
    Work sends[] = {world->send(floats(100, world->rank()), right(*world)),
                    group->send(floats(100, 50 + world->rank()), right(*group))};
    group->recv(on_group, left(*group)).wait();
    world->recv(on_world, left(*world)).wait();
    for (auto& send : sends) send.wait();
    EXPECT_EQ(on_world[99].item<float>(), left(*world));
    // Keys decrease with the rank: the left neighbor is the next higher world rank, or the lowest for the highest.
    const int higher = world->rank() + 2;
    EXPECT_EQ(on_group[99].item<float>(), 50 + (higher < world->size() ? higher : world->rank() % 2));
  });
}

TEST_P(Messaging, ArriveWithoutWait) {
  run([](const CommunicatorPtr& world) {
    const at::Tensor received = at::zeros({1000});
    {
      Work recv = world->recv(received, left(*world));
      Work send = world->send(floats(1000, world->rank()), right(*world));
    }
    EXPECT_TRUE(at::equal(received, floats(1000, left(*world))));
  });
}

TEST_P(Messaging, KeepTheirTensors) {
  run([](const CommunicatorPtr& world) {
    at::Tensor received = at::zeros({kLarge});
    Work recv = world->recv(received, left(*world));
    {
      at::Tensor gone = floats(kLarge, 5);
      Work send = world->send(gone, right(*world));
      gone.reset();
      recv.wait();
      send.wait();
    }
    EXPECT_EQ(received.sum().item<double>(), 5.0 * kLarge);
    EXPECT_EQ(received.use_count(), 1u) << "the message must release its tensors";
  });
}

// Several threads exchange messages, each with its own tag and without any order between the threads.
TEST_P(Messaging, DoNotMixBetweenThreads) {
  run([](const CommunicatorPtr& world) {
    constexpr int kThreads = 3, kRounds = 40;
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRounds; ++i) {
          const std::int64_t elements = i % 7 == 0 ? 10'000 : i;
          Work send = world->send(at::full({elements}, 100 * t + i, at::kInt), right(*world), t);
          const at::Tensor received = at::zeros({elements}, at::kInt);
          world->recv(received, left(*world), t).wait();
          send.wait();
          ASSERT_TRUE(at::equal(received, at::full({elements}, 100 * t + i, at::kInt))) << "thread " << t;
        }
      });
    }
  });
}

}  // namespace
}  // namespace phalanx::testing
