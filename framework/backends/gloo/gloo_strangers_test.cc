// SPDX-License-Identifier: Apache-2.0
// Tests that only ranks of the group take part in its connections.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/handshake.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/sockets.h"
#include "framework/base/timed_stream.h"
#include "framework/comm/backend.h"
#include "framework/testing/fault.h"

namespace phalanx::testing {
namespace {

using Clock = std::chrono::steady_clock;

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

}  // namespace
}  // namespace phalanx::testing
