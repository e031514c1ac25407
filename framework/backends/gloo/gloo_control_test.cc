// SPDX-License-Identifier: Apache-2.0
// Tests the connections between members of a group without the group.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/backends/gloo/control.h"
#include "framework/base/descriptor.h"
#include "framework/base/sockets.h"

namespace phalanx::gloo {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Members that listen in this process.
std::vector<Control> listening(int count) {
  std::vector<Control> members(count);
  std::vector<std::string> addresses;
  for (auto& member : members) {
    member.listener = listen_at("127.0.0.1:0");
    addresses.push_back(address_of(member.listener.get()));
  }
  for (int id = 0; id < count; ++id) {
    members[id].group = "world";
    members[id].own = id;
    members[id].addresses = addresses;
    members[id].secret = "a secret of the tests";
  }
  return members;
}

// Repeats a step until it returns true. Returns false after a time that only a hanging test reaches.
template <class Step>
bool comes_true(const Step& step) {
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (!step()) {
    if (Clock::now() > deadline) return false;
  }
  return true;
}

void expect_nothing(std::int64_t from, std::string_view text) {
  ADD_FAILURE() << "member " << from << " has sent \"" << text << "\"";
}

// A host that drops all packets: the queue of its socket is full.
class SilentHost {
 public:
  SilentHost() : listener_(listen_at("127.0.0.1:0")), address_(address_of(listener_.get())) {
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    bool answers = true;
    while (answers && queue_.size() < 16) {
      queue_.push_back(begin_to_connect(address_));
      const auto deadline = Clock::now() + milliseconds(20);
      while (!(answers = has_connected(queue_.back().get(), address_)) && Clock::now() < deadline) {
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    EXPECT_FALSE(answers);
  }

  const std::string& address() const { return address_; }

 private:
  Descriptor listener_;
  std::string address_;
  std::vector<Descriptor> queue_;
};

struct End {};

// The first receiver ends after it has read one of two texts, before it acknowledges it.
TEST(ControlLinks, WhatAReceiverHasNotAcknowledgedIsSentAgainAndPassedOnOnce) {
  auto members = listening(2);
  std::vector<std::string> received;
  ControlLinks sender(members[0]);
  sender.send(1, "one");
  const auto last = sender.send(1, "two");
  auto first = std::make_unique<ControlLinks>(members[1]);
  ASSERT_TRUE(comes_true([&] {
    sender.pump(expect_nothing);
    try {
      first->pump([&](std::int64_t, std::string_view text) {
        received.emplace_back(text);
        throw End();
      });
    } catch (const End&) {
      return true;
    }
    return false;
  }));
  first.reset();
  sender.pump(expect_nothing);
  EXPECT_FALSE(sender.has_received(1, last));
  ControlLinks second(members[1]);
  ASSERT_TRUE(comes_true([&] {
    sender.pump(expect_nothing);
    second.pump([&](std::int64_t from, std::string_view text) {
      EXPECT_EQ(from, 0);
      received.emplace_back(text);
    });
    return sender.has_received(1, last);
  }));
  EXPECT_EQ(received, (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(members[0].gone.empty()) << "a connection that ends does not say that the member has ended";
}

// The next links of the sender count on, so that a receiver that stays does not take new texts for old ones.
TEST(ControlLinks, TextsOfALaterCallAreNewOnes) {
  auto members = listening(2);
  std::vector<std::string> received;
  ControlLinks receiver(members[1]);
  for (const char* const text : {"one", "two"}) {
    ControlLinks sender(members[0]);
    const auto number = sender.send(1, text);
    ASSERT_TRUE(comes_true([&] {
      sender.pump(expect_nothing);
      receiver.pump([&](std::int64_t, std::string_view arrived) { received.emplace_back(arrived); });
      return sender.has_received(1, number);
    }));
  }
  EXPECT_EQ(received, (std::vector<std::string>{"one", "two"}));
}

TEST(ControlLinks, HostsThatDoNotAnswerDelayNobody) {
  const SilentHost host;
  auto members = listening(2);
  for (auto& member : members) member.addresses.insert(member.addresses.end(), 60, host.address());
  const auto start = Clock::now();
  ControlLinks first(members[0]), second(members[1]);
  const auto number = first.send(1, "here");
  ASSERT_TRUE(comes_true([&] {
    first.pump(expect_nothing);
    second.pump([](std::int64_t from, std::string_view) { EXPECT_EQ(from, 0); });
    return first.has_received(1, number);
  }));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5)) << "0.1 s for each of them would be longer";
  EXPECT_TRUE(members[0].gone.empty()) << "silence does not say that a member has ended";
}

TEST(ControlLinks, AMemberThatRefusesConnectionsIsGone) {
  auto members = listening(2);
  members[1].listener.close();
  ControlLinks links(members[0]);
  ASSERT_TRUE(comes_true([&] {
    links.pump(expect_nothing);
    return members[0].gone.contains(1);
  }));
  EXPECT_EQ(links.send(1, "too late"), 0U);
}

TEST(ControlLinks, AnAddressThatCannotBeReadIsThatOfASilentMember) {
  auto members = listening(2);
  members[0].addresses[1] = "nowhere";
  ControlLinks links(members[0]);
  EXPECT_EQ(links.problem(1), "");
  EXPECT_NO_THROW(links.pump(expect_nothing));
  EXPECT_NE(links.problem(1).find("nowhere: expected host:port"), std::string::npos) << links.problem(1);
  EXPECT_TRUE(members[0].gone.empty());
}

}  // namespace
}  // namespace phalanx::gloo
