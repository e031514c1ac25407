// SPDX-License-Identifier: Apache-2.0
// Tests what shrink() of this backend does with strangers, with members that send what is wrong, and with a second
// call. framework/testing/survivors.cc and process_survivors.cc have the tests of all backends.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/backends/gloo/connect.h"
#include "framework/backends/gloo/device.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/handshake.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/sockets.h"
#include "framework/base/timed_stream.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/host_lease.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"

const char* const phalanx::testing::kBackend = "gloo_processes";

namespace phalanx::testing {
namespace {

using Kind = CommError::Kind;

std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

// A world of three ranks of this process, which are ranks 0, 1 and 5 of a job that has lost others.
class ShrinkingGloo : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::future<CommunicatorPtr>> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.push_back(std::async(std::launch::async, [this, rank] {
        return Backends::Choice("gloo").make(
            {.rank_info = {.rank = rank, .size = 3, .local_rank = rank, .local_size = 3},
             .store = store_,
             .timeout = Seconds(60),
             .numbers = {0, 1, 5}});
      }));
    }
    for (auto& rank : ranks) ranks_.push_back(rank.get());
  }

  std::future<CommunicatorPtr> begin_to_shrink(int rank) {
    return std::async(std::launch::async, [world = ranks_[rank]] { return world->shrink(); });
  }

  std::string address(int rank) const { return store_->get("gloo/" + std::to_string(rank)); }
  std::string addresses() const { return address(0) + " " + address(1) + " " + address(2); }
  Descriptor connect_to_rank(int rank) const { return connect_to(address(rank), 10); }

  // Greets rank 0 while it shrinks the world, with a claim to be another member.
  std::pair<HandshakeResult, TimedStream> greeted(const std::string& from, const std::string& secret,
                                                  const std::string& addresses) const {
    const HandshakeProtocol protocol{.client_opening = "phalanx gloo members 2?",
                                     .server_opening = "phalanx gloo members 2!",
                                     .identity = "phalanx gloo members 2",
                                     .claim_bytes = 20};
    TimedStream stream(connect_to_rank(0));
    const std::string of_group = keyed_hash(secret, {"gloo members", "world", addresses});
    const auto result = greet(stream, protocol, of_group, from + "0000000000", soon());
    return {result, std::move(stream)};
  }

  // Sends rank 0 a text as member 2, and returns the error with which its shrink() then ends.
  CommError error_after(const std::string& text, std::uint64_t length) {
    auto first = begin_to_shrink(0);
    auto [result, stream] = greeted("0000000002", secret(), addresses());
    EXPECT_EQ(result, HandshakeResult::kAdmitted);
    const std::uint64_t number = 1;
    std::string bytes(reinterpret_cast<const char*>(&number), sizeof(number));
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
    stream.send(bytes + text, soon());
    return error_of([&] { (void)first.get(); });
  }

  std::string secret() const { return store_->get("gloo/secret"); }

  const StorePtr store_ = make_hash_store(Seconds(60));
  std::vector<CommunicatorPtr> ranks_;
};

TEST_F(ShrinkingGloo, IgnoresStrangers) {
  ranks_[2].reset();
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(connect_to_rank(i % 2));
  const auto say = [&](int stranger, const std::string& text) {
    EXPECT_EQ(::send(strangers[stranger].get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  };
  say(0, "GET / HTTP/1.0\r\n\r\n");
  say(1, std::string(1000, '\0'));
  say(2, "phalanx gloo members 2?");
  say(3, "phalanx gloo members 2?" + random_text() + "00000000020000000001" + random_text());
  auto first = begin_to_shrink(0);  // it waits for rank 1
  EXPECT_EQ(greeted("0000000001", "the secret of another job", addresses()).first, HandshakeResult::kRefused);
  EXPECT_EQ(greeted("0000000001", secret(), "other addresses").first, HandshakeResult::kRefused) << "another group";
  for (const char* const nobody : {"0000000000", "0000000003"}) {  // rank 0 itself, and a rank that is not there
    auto greeting = greeted(nobody, secret(), addresses());
    EXPECT_EQ(greeting.first, HandshakeResult::kAdmitted);
    const auto error = error_of([&] { (void)greeting.second.receive(1, soon()); });
    EXPECT_EQ(error.kind(), Kind::kPeerLost) << "rank 0 disconnects it: " << error.what();
  }
  auto second = begin_to_shrink(1);
  const CommunicatorPtr left[] = {first.get(), second.get()};
  at::Tensor sums[] = {at::ones({5}), at::ones({5})};
  Work work = left[0]->all_reduce(sums[0], Reduction::kSum);
  std::thread other([&] { left[1]->all_reduce(sums[1], Reduction::kSum).wait(); });
  work.wait();
  other.join();
  EXPECT_EQ(sums[0][4].item<float>(), 2);
  const auto error = error_of([&] { (void)ranks_[0]->shrink(); });
  EXPECT_EQ(error.kind(), Kind::kPeerLost);
  EXPECT_TRUE(contains(error, "this group has been shrunk before")) << error.what();
}

TEST_F(ShrinkingGloo, NamesTheMemberThatSendsWhatIsNoMessage) {
  const auto error = error_after("xyz", 3);
  EXPECT_EQ(error.kind(), Kind::kSystem);
  EXPECT_TRUE(
      contains(error, "shrink of world, rank 0 of 3: rank 2 has sent a wrong message (it is of an unknown kind)"))
      << error.what();
}

TEST_F(ShrinkingGloo, NamesTheMemberThatSendsAGarbledMessage) {
  const auto error = error_after("m\1\1", 3);
  EXPECT_EQ(error.kind(), Kind::kSystem);
  EXPECT_TRUE(
      contains(error, "rank 2 has sent a wrong message (a message of the agreement on the next view cannot be read"))
      << error.what();
}

TEST_F(ShrinkingGloo, NamesTheMemberThatSendsTooLongAMessage) {
  const auto error = error_after("m", std::uint64_t{1} << 40);
  EXPECT_EQ(error.kind(), Kind::kSystem);
  EXPECT_TRUE(contains(error, "rank 2 has sent a message of 1099511627776 bytes")) << error.what();
}

// A second agreement on the same view would not know what the first one has promised.
TEST_F(ShrinkingGloo, IsNotTriedAgainAfterAFailure) {
  error_after("xyz", 3);
  const auto error = error_of([&] { (void)ranks_[0]->shrink(); });
  EXPECT_EQ(error.kind(), Kind::kPeerLost);
  EXPECT_TRUE(contains(error, "an earlier call on this group has failed, and it cannot be repeated")) << error.what();
  EXPECT_TRUE(contains(error, "rank 2 has sent a wrong message")) << error.what();
}

// Rank 2 refuses no connections and sends nothing, as if its host were silent.
TEST_F(ShrinkingGloo, GoesOnWithoutARankOfWhichTheLauncherSaysThatItHasEnded) {
  const auto lease = std::make_shared<HostLease>(6, boot_time() + std::chrono::hours(1));
  set_lease_of_process(lease);
  const auto reduce = [this](int rank) {
    return std::async(std::launch::async, [world = ranks_[rank]] {
      return error_of([&] { world->all_reduce(at::ones({1}), Reduction::kSum).wait(); });
    });
  };
  auto first = reduce(0), second = reduce(1);
  EXPECT_EQ(first.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  lease->declare_ended(2);
  EXPECT_EQ(first.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout) << "it is not one of these";
  lease->declare_ended(5);
  const auto error = first.get();
  EXPECT_EQ(error.kind(), Kind::kPeerLost);
  EXPECT_TRUE(contains(error, "rank 2 left the group or ended (the launcher says so")) << error.what();
  EXPECT_EQ(second.get().kind(), Kind::kPeerLost);
  auto one = begin_to_shrink(0), other = begin_to_shrink(1);
  EXPECT_EQ(one.get()->size(), 2);
  EXPECT_EQ(other.get()->size(), 2);
  set_lease_of_process(nullptr);
}

// Rank 1 of a view dials the port at which rank 0 waits for the ranks of another view.
TEST(ConnectingSurvivors, AGreetingIsGoodForOneView) {
  const auto store = make_hash_store(Seconds(60));
  std::atomic<bool> done{false};
  const auto connect_for_view = [&](int rank, std::int64_t view) {
    const gloo::Member member{.group = "world/survivors",
                              .rank = rank,
                              .size = 2,
                              .timeout = Seconds(60),
                              .endpoint = {.host = "127.0.0.1", .secret = "a secret of the tests"},
                              .standing = {.control = std::make_shared<gloo::Control>(), .view = {.number = view}},
                              .check = [&] {
                                if (done) throw CommError(Kind::kTimeout, "the test ends");
                              }};
    return gloo::connect(member, gloo::open_device(), gloo::exchange_through(*store, member));
  };
  auto first = std::async(std::launch::async, [&] { return connect_for_view(0, 2); });
  const auto error = error_of([&] { (void)connect_for_view(1, 1); });
  done = true;
  EXPECT_EQ(error.kind(), Kind::kPeerLost);
  EXPECT_TRUE(contains(error, "rank 0 cannot be reached at 127.0.0.1:")) << error.what();
  EXPECT_TRUE(contains(error, "another group listens there by now")) << error.what();
  EXPECT_EQ(error_of([&] { (void)first.get(); }).kind(), Kind::kTimeout) << "rank 1 is not connected";
}

}  // namespace
}  // namespace phalanx::testing
