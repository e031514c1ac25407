// SPDX-License-Identifier: Apache-2.0
// Tests how ranks of this backend connect.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/host_network.h"
#include "framework/testing/fault.h"

namespace phalanx::testing {
namespace {

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
