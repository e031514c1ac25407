// SPDX-License-Identifier: Apache-2.0
// Tests the specifics of this backend: its transport, its order of combining, and the end of a world.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>
#include <latch>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/handshake.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/sockets.h"
#include "framework/base/timed_stream.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/host_network.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

using Clock = std::chrono::steady_clock;

void run(int ranks, const RankBody& body, Seconds timeout = Seconds(60)) { run_ranks("gloo", ranks, body, timeout); }

std::size_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// In the predecessor, the minimum over Gloo returned the maximum. The small and the large size use different
// algorithms of Gloo.
TEST(Gloo, MinimumAndMaximumAreNotSwapped) {
  run(3, [](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {5, 2'200'000}) {
      for (const auto dtype : {at::kFloat, at::kLong, at::kHalf}) {
        at::Tensor smallest = at::full({elements}, world->rank() - 1, dtype), largest = smallest.clone();
        world->all_reduce(smallest, Reduction::kMin).wait();
        world->all_reduce(largest, Reduction::kMax).wait();
        EXPECT_TRUE(at::equal(smallest, at::full({elements}, -1, dtype))) << dtype;
        EXPECT_TRUE(at::equal(largest, at::full({elements}, 1, dtype))) << dtype;
        at::Tensor least = at::full({elements}, world->rank() - 1, dtype);
        world->reduce(least, Reduction::kMin, 2).wait();
        EXPECT_EQ(least[0].item<double>(), world->rank() == 2 ? -1 : world->rank() - 1)
            << "only root's tensor is written";
      }
    }
  });
}

// The sum of these values depends on the order of addition, in both algorithms.
TEST(Gloo, AllReduceGivesEveryRankTheSameBits) {
  run(3, [](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {1001, 1'100'003}) {
      at::Tensor tensor = at::arange(elements, at::kFloat).sin_().mul_(1e3 * (world->rank() + 1)).add_(1e-3);
      world->all_reduce(tensor, Reduction::kMean).wait();
      at::Tensor roots = tensor.clone();
      world->broadcast(roots, 0).wait();
      EXPECT_TRUE(at::equal(tensor, roots)) << elements << " elements";
      EXPECT_TRUE(tensor.allclose(at::arange(elements, at::kFloat).sin_().mul_(2e3).add_(1e-3), 1e-4, 1e-2));
    }
  });
}

// The last argument wins: associative, and the result shows the order.
Reduction last_of() {
  return Reduction::custom<std::int64_t>(
      "last", [](std::span<std::int64_t> result, auto next) { std::ranges::copy(next, result.begin()); });
}

TEST(Gloo, ReductionsThatDoNotCommuteAreInRankOrder) {
  run(5, [](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {1, 7, 20'000}) {
      at::Tensor last = at::full({elements}, world->rank(), at::kLong);
      world->all_reduce(last, last_of()).wait();
      EXPECT_TRUE(at::equal(last, at::full({elements}, 4, at::kLong))) << "the last rank's elements";
      at::Tensor own = at::full({elements}, world->rank(), at::kLong);
      world->reduce(own, last_of(), 1).wait();
      EXPECT_EQ(own[0].item<std::int64_t>(), world->rank() == 1 ? 4 : world->rank());
    }
  });
}

TEST(Gloo, AMessageOfAnotherSizeIsAMismatchAtTheReceiverAndTheGroupGoesOn) {
  constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{3, 5}, {5, 3}, {3, 9000}, {9000, 3}, {9000, 8000}};
  run(2, [&](const CommunicatorPtr& world) {
    for (const auto& [sent, expected] : kSizes) {
      if (world->rank() == 0) {
        world->send(at::ones({sent}), 1, 7).wait();
        world->send(at::full({expected}, 2.0), 1, 7).wait();
        continue;
      }
      at::Tensor first = at::zeros({expected}), second = at::zeros({expected});
      const auto error = error_of([&] { world->recv(first, 0, 7).wait(); });
      EXPECT_EQ(error.kind(), CommError::Kind::kMismatch);
      EXPECT_TRUE(contains(
          error, "expected " + std::to_string(expected * 4) + " bytes, but rank 0 sent " + std::to_string(sent * 4)))
          << error.what();
      world->recv(second, 0, 7).wait();
      EXPECT_TRUE(at::equal(second, at::full({expected}, 2.0F))) << "the next message is untouched";
    }
    world->barrier().wait();
  });
}

// The receive is posted first, and completes while this rank is in a collective.
TEST(Gloo, MessagesProgressWhileTheRankWaitsForSomethingElse) {
  run(2, [](const CommunicatorPtr& world) {
    at::Tensor tensor = at::full({300'000}, world->rank());
    if (world->rank() == 0) {
      Work received = world->recv(tensor, 1, 1);
      world->barrier().wait();
      EXPECT_TRUE(received.done());
      EXPECT_EQ(tensor[299'999].item<float>(), 1) << "the message is complete without wait()";
    } else {
      world->send(tensor, 0, 1).wait();  // completes while rank 0 waits in the barrier
      world->barrier().wait();
    }
  });
}

TEST(Gloo, ARankTalksToItself) {
  run(2, [](const CommunicatorPtr& world) {
    const int self = world->rank();
    at::Tensor before = at::zeros({10}), after = at::zeros({2000});
    Work early = world->recv(before, self, 3);
    EXPECT_FALSE(early.done());
    world->send(at::ones({10}), self, 3).wait();
    world->send(at::full({2000}, 2.0), self, 3).wait();
    early.wait();
    world->recv(after, self, 3).wait();
    EXPECT_EQ(before.sum().item<float>() + after.sum().item<float>(), 4010);
    world->send(at::ones({4}), self).wait();
    EXPECT_EQ(error_of([&] { world->recv(before, self).wait(); }).kind(), CommError::Kind::kMismatch);
  });
}

TEST(Gloo, AnAbsentRankIsNamedAfterTheTimeoutAndTheGroupStaysBroken) {
  std::latch given_up(2);
  const auto body = [&](const CommunicatorPtr& world) {
    if (world->rank() == 2) {
      given_up.wait();
      const auto error = error_of([&] { world->barrier().wait(); });
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << "the others have given up: " << error.what();
      return;
    }
    at::Tensor tensor = at::ones({10});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    given_up.count_down();
    if (error.kind() == CommError::Kind::kTimeout) {
      EXPECT_TRUE(contains(error, "all_reduce #1 of world, rank " + std::to_string(world->rank()) + " of 3: waited "))
          << error.what();
      EXPECT_TRUE(contains(error, "s for rank")) << error.what();
      EXPECT_TRUE(contains(error, "2, which did not come")) << error.what();
    } else {
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
    }
    const auto later = error_of([&] { world->barrier().wait(); });
    EXPECT_STREQ(later.what(), error.what()) << "the group is broken, and the cause stays the same";
    EXPECT_STREQ(error_of([&] { world->send(tensor, 2).wait(); }).what(), error.what());
  };
  run(3, body, Seconds(1));
}

TEST(Gloo, ABarrierHasItsOwnDeadline) {
  std::latch given_up(1);
  run(2, [&](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 1) return given_up.wait();
    const auto error = error_of([&] { world->barrier(Seconds(0.2)).wait(); });
    given_up.count_down();
    EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
    EXPECT_TRUE(contains(error, "barrier #2 of world, rank 0 of 2: waited ")) << error.what();
    EXPECT_TRUE(contains(error, " s for rank 1, which did not come")) << error.what();
  });
}

TEST(Gloo, AMessageThatDoesNotComeIsNamed) {
  std::latch given_up(1);
  const auto body = [&](const CommunicatorPtr& world) {
    if (world->rank() == 1) return given_up.wait();
    at::Tensor tensor = at::ones({4});
    const auto error = error_of([&] { world->recv(tensor, 1, 5).wait(); });
    given_up.count_down();
    EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
    EXPECT_TRUE(contains(error, "recv(from 1, tag 5) of 4 Float #1 of world, rank 0 of 2: waited ")) << error.what();
    EXPECT_TRUE(contains(error, " s for rank 1, which did not come")) << error.what();
  };
  run(2, body, Seconds(1));
}

// Messages of different calls do not match. If they did, Gloo would accept a shorter message and end the process for a
// longer one.
TEST(Gloo, DifferentCallsTimeOutAndDoNotEndTheProcess) {
  run(
      2,
      [](const CommunicatorPtr& world) {
        at::Tensor tensor = at::ones({world->rank() == 0 ? 1000 : 2000});
        EXPECT_TRUE(error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); }).secondary());
      },
      Seconds(1));
}

TEST(Gloo, ARankThatLeavesIsNamedAtOnce) {
  run(3, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 1) return;  // the body and the communicator of this rank end here
    const auto start = Clock::now();
    at::Tensor tensor = at::ones({100'000});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_TRUE(contains(error, "left the group or ended")) << error.what();
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "far below the timeout";
  });
}

CommunicatorPtr connect(int rank, const StorePtr& store) {
  return Backends::Choice("gloo").make({.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                                        .store = store,
                                        .timeout = Seconds(60)});
}

// Gloo does not report a connection that ends in the middle of a message.
TEST(Gloo, ARankThatIsKilledInTheMiddleOfAMessageIsNamedAtOnce) {
  constexpr std::int64_t kElements = 64 << 20;
  const std::string path = ::testing::TempDir() + "gloo_test." + std::to_string(::getpid());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    connect(1, make_file_store(path, 2, Seconds(60)))->send(at::ones({kElements}, at::kByte), 0).wait();
    ::_exit(0);
  }
  const auto world = connect(0, make_file_store(path, 2, Seconds(60)));
  const at::Tensor tensor = at::zeros({kElements}, at::kByte);
  const volatile auto* bytes = tensor.data_ptr<std::uint8_t>();
  Work work = world->recv(tensor, 1);
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (bytes[0] == 0 && Clock::now() < deadline) {
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(bytes[kElements - 1], 0) << "the message was too short for this test";
  const auto start = Clock::now();
  const auto error = error_of([&] { work.wait(); });
  EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
  EXPECT_TRUE(contains(error, "rank 1 left the group or ended")) << error.what();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "far below the timeout";
  std::filesystem::remove(path);
}

TEST(Gloo, MessagesOfARankThatLeftStillArrive) {
  run(3, [](const CommunicatorPtr& world) {
    const at::Tensor own = at::full({50'000}, world->rank(), at::kFloat);
    if (world->rank() != 0) return world->gather({}, own, 0).wait();
    const at::Tensor all = at::zeros({150'000});
    world->gather(all, own, 0).wait();
    EXPECT_EQ(all.sum().item<double>(), 150'000);
  });
}

// Child groups have their own connections, so groups may end in any order.
TEST(Gloo, GroupsMayEndInAnyOrder) {
  run(4, [](const CommunicatorPtr& world) {
    auto half = world->split(world->rank() % 2, -world->rank());
    auto quarter = half->split(half->rank(), 0);
    EXPECT_EQ(quarter->size(), 1);
    half.reset();
    quarter->barrier().wait();
    auto again = world->split(world->rank() == 3 ? -1 : 0, 0);
    EXPECT_EQ(again == nullptr, world->rank() == 3);
    if (!again) return;
    at::Tensor sum = at::ones({3}, at::kLong);
    again->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum[2].item<std::int64_t>(), 3) << "though rank 3 may have left the world";
  });
}

TEST(Gloo, ABrokenGroupDoesNotAffectOthers) {
  run(2, [](const CommunicatorPtr& world) {
    const auto pair = world->split(0, 0);
    if (world->rank() == 0) {
      EXPECT_THROW(pair->barrier(Seconds(0.1)).wait(), CommError);
    }
    world->barrier().wait();
    at::Tensor sum = at::ones({1});
    world->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum.item<float>(), 2);
  });
}

TEST(Gloo, WorldsLeaveNoThreadsAndNoFilesBehind) {
  const auto connect_once = [] {
    run(2, [](const CommunicatorPtr& world) {
      at::Tensor sum = at::ones({10});
      world->all_reduce(sum, Reduction::kSum).wait();
      ASSERT_EQ(sum[0].item<float>(), 2);
    });
  };
  connect_once();
  // A joined thread may still be listed for a moment.
  const auto settled = [](const char* folder, std::size_t most) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (entries(folder) > most && Clock::now() < deadline) std::this_thread::yield();
    return entries(folder);
  };
  const auto threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  for (int i = 0; i < 200; ++i) connect_once();
  EXPECT_LE(settled("/proc/self/task", threads), threads);
  EXPECT_LE(settled("/proc/self/fd", files), files);
}

TEST(Gloo, ConnectingNamesTheRankThatDoesNotConnect) {
  const auto store = make_hash_store(Seconds(0.3));
  const ConnectOptions options{
      .rank_info = {.rank = 0, .size = 2, .local_rank = 0, .local_size = 2}, .store = store, .timeout = Seconds(0.3)};
  const auto error = error_of([&] { (void)Backends::Choice("gloo").make(options); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_TRUE(contains(error, "connecting world, rank 0 of 2: rank 1 did not connect")) << error.what();
}

// Rank 1 finds the address of a rank 0 that has given up.
TEST(Gloo, ConnectingSaysWhereARankWasLookedFor) {
  const auto store = make_hash_store(Seconds(0.3));
  const auto options = [&](int rank) {
    return ConnectOptions{.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                          .store = store,
                          .timeout = Seconds(1),
                          .address = {.text = "127.0.0.1", .interface = "lo", .reason = "set as lo"}};
  };
  error_of([&] { (void)Backends::Choice("gloo").make(options(0)); });
  const auto error = error_of([&] { (void)Backends::Choice("gloo").make(options(1)); });
  EXPECT_TRUE(contains(error, "connecting world, rank 1 of 2: rank 0 cannot be reached at 127.0.0.1:")) << error.what();
  EXPECT_TRUE(contains(error, "this rank is at 127.0.0.1 of lo, set as lo")) << error.what();
  EXPECT_TRUE(contains(error, "framework.interface")) << error.what();
}

// A rank of two whose waits are to end at the end of its patience. The test takes the place of the other one.
class ImpatientGloo : public ::testing::Test {
 protected:
  CommunicatorPtr connect(int rank) {
    return Backends::Choice("gloo").make({.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                                          .store = store_,
                                          .timeout = Seconds(60),
                                          .check = [this] {
                                            if (--patience_ < 0) throw CommError(CommError::Kind::kTimeout, "enough");
                                          }});
  }

  StorePtr store_ = make_hash_store(Seconds(60));
  std::atomic<int> patience_{3};
};

TEST_F(ImpatientGloo, WaitsNoLongerForAPeerThatDoesNotConnect) {
  store_->set("gloo/1", "127.0.0.1:1");
  EXPECT_STREQ(error_of([&] { connect(0); }).what(), "enough");
}

TEST_F(ImpatientGloo, WaitsNoLongerForAPeerThatDoesNotAnswer) {
  const Descriptor silent = listen_at("127.0.0.1:0");
  store_->set("gloo/secret", "of the test");
  store_->set("gloo/0", address_of(silent.get()));
  EXPECT_STREQ(error_of([&] { connect(1); }).what(), "enough");
}

TEST_F(ImpatientGloo, WaitsNoLongerInTheConnectedWorldAndInPartsOfIt) {
  patience_ = 1'000'000;
  auto second = std::async(std::launch::async, [&] {
    auto world = connect(1);
    return std::pair(world, world->split(0, 0));
  });
  const auto world = connect(0), part = world->split(0, 0);
  const auto peer = second.get();
  patience_ = 3;
  EXPECT_STREQ(error_of([&] { part->barrier().wait(); }).what(), "enough");
  EXPECT_STREQ(error_of([&] { world->barrier().wait(); }).what(), "enough");
}

TEST(Gloo, ConnectsAtAnAddressOfIpv6) {
  if (this_network().find("::1") == nullptr) GTEST_SKIP() << "no IPv6 here";
  const auto store = make_hash_store(Seconds(20));
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto world =
          Backends::Choice("gloo").make({.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                                         .store = store,
                                         .timeout = Seconds(20),
                                         .address = {.text = "::1", .interface = "lo", .reason = "set as lo"}});
      at::Tensor sum = at::ones({3});
      world->all_reduce(sum, Reduction::kSum).wait();
      EXPECT_EQ(sum[2].item<float>(), 2);
      const auto half = world->split(rank, 0);  // sends addresses over the world's connections
      half->barrier().wait();
    });
  }
}

// A world of two ranks, rank 0 of which waits in a thread for rank 1, while strangers connect.
class Besieged : public ::testing::Test {
 protected:
  CommunicatorPtr connect(int rank, double seconds) const {
    return Backends::Choice("gloo").make({.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                                          .store = store_,
                                          .timeout = Seconds(seconds)});
  }

  // Starts rank 0, and returns the address at which it listens.
  std::string begin(double seconds = 60) {
    first_ = std::async(std::launch::async, [this, seconds] { return connect(0, seconds); });
    return store_->get("gloo/0");
  }

  // Connects rank 1, and computes with both ranks.
  void expect_works() {
    const auto second = connect(1, 60);
    const auto first = first_.get();
    at::Tensor tensor = at::ones({3});
    Work sent = second->send(tensor, 0);
    const at::Tensor received = at::zeros({3});
    first->recv(received, 1).wait();
    sent.wait();
    EXPECT_EQ(received.sum().item<float>(), 3);
  }

  static void send(const Descriptor& socket, const std::string& text) {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  const StorePtr store_ = make_hash_store(Seconds(60));
  std::future<CommunicatorPtr> first_;
};

TEST_F(Besieged, StrangersDoNotTakeTheConnectionsOfRanks) {
  const std::string address = begin();
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(connect_to(address, 10));
  send(strangers[1], "GET / HTTP/1.0\r\n\r\n");
  send(strangers[2], "phalanx gloo 1?");
  send(strangers[3], "phalanx gloo 1?" + random_text() + "00000000010000000000" + random_text());
  send(strangers[4], std::string(48, '\0'));  // a message of Gloo's
  expect_works();
  EXPECT_THROW(connect_to(address, 10), ConnectionRefused) << "ranks listen only while they have the group";
}

TEST_F(Besieged, AGreetingIsGoodForOneGroupAndOneRank) {
  const std::string address = begin();
  store_->set("gloo/1", "an address");  // rank 0 does not need it, but waits for it
  const std::string secret = store_->get("gloo/secret");
  const HandshakeProtocol protocol{
      .client_opening = "phalanx gloo 1?", .server_opening = "phalanx gloo 1!", .identity = "phalanx gloo 1"};
  const auto greeted = [&](const std::string& group, const std::string& claim) {
    TimedStream stream(connect_to(address, 10));
    HandshakeProtocol claiming = protocol;
    claiming.claim_bytes = claim.size();
    const auto result =
        greet(stream, claiming, keyed_hash(secret, {"gloo", group}), claim, Clock::now() + std::chrono::seconds(10));
    return std::pair(result, std::move(stream));
  };
  EXPECT_EQ(greeted("world/0", "00000000010000000000").first, HandshakeResult::kRefused);
  const auto itself = greeted("world", "00000000000000000000"), third = greeted("world", "00000000020000000000"),
             other = greeted("world", "00000000010000000001");
  for (const auto* one : {&itself, &third, &other}) EXPECT_EQ(one->first, HandshakeResult::kAdmitted);
  expect_works();
}

TEST_F(Besieged, RanksWithDifferentSecretsSayWhy) {
  ::setenv("PHALANX_JOB_SECRET", "a secret of the tests", 1);
  begin(2);
  ::setenv("PHALANX_JOB_SECRET", "another secret of others", 1);
  const auto error = error_of([&] { connect(1, 2); });
  ::unsetenv("PHALANX_JOB_SECRET");
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_TRUE(contains(error, "rank 0 at 127.0.0.1:")) << error.what();
  EXPECT_TRUE(contains(error, "has another secret; give all ranks of the job the same (PHALANX_JOB_SECRET"))
      << error.what();
  EXPECT_EQ(error_of([&] { first_.get(); }).kind(), CommError::Kind::kTimeout);
}

TEST(Gloo, RefusesAnInterfaceThatIsNotThere) {
  ::setenv("GLOO_SOCKET_IFNAME", "no-such-interface", 1);
  const ConnectOptions options{.rank_info = {}, .store = make_hash_store(Seconds(1)), .timeout = Seconds(1)};
  try {
    (void)Backends::Choice("gloo").make(options);
    ADD_FAILURE() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("no network interface \"no-such-interface\""), std::string::npos);
  }
  ::unsetenv("GLOO_SOCKET_IFNAME");
}

}  // namespace
}  // namespace phalanx::testing
