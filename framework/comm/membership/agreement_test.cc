// SPDX-License-Identifier: Apache-2.0
// Examples of agreements. exploration_test.cc has all orders of events.
#include "framework/comm/membership/agreement.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "framework/comm/membership/acceptor.h"
#include "framework/comm/membership/message.h"
#include "framework/comm/testing/views.h"

namespace phalanx::membership {
namespace {

using testing::view_of;

TEST(Acceptor, AFingerprintTellsWhatItHasPromisedAndAccepted) {
  const auto state = [](const std::vector<Message>& messages) {
    Acceptor acceptor;
    for (const auto& message : messages) acceptor.answer(message.ballot.leader, message);
    return acceptor;
  };
  const Message prepare{.kind = Message::Kind::kPrepare, .view = 7, .ballot = {1, 0}};
  Message higher = prepare, loss = prepare, proposal = prepare, claim = prepare;
  higher.ballot.round = 2;
  loss.ended = {2};
  proposal.kind = claim.kind = Message::Kind::kPropose;
  proposal.proposal.members = {{.id = 0}, {.id = 1}};
  claim.proposal.members = {{.id = 0}, {.id = 1, .claim = {.updated = 0, .complete = 1}}};
  const std::vector<Acceptor> states{state({}),
                                     state({prepare}),
                                     state({higher}),
                                     state({loss}),
                                     state({prepare, proposal}),
                                     state({prepare, claim}),
                                     state({prepare, proposal, higher})};
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (std::size_t j = 0; j < states.size(); ++j) {
      EXPECT_EQ(states[i].fingerprint() == states[j].fingerprint(), i == j) << i << " and " << j;
    }
  }
  EXPECT_EQ(state({prepare, prepare}).fingerprint(), state({prepare}).fingerprint());
}

// Delivers what the members send each other until nothing is left.
void deliver_all(std::map<int, Agreement>& members, std::deque<std::pair<int, Envelope>> wire) {
  while (!wire.empty()) {
    const auto [from, envelope] = wire.front();
    wire.pop_front();
    const auto to = members.find(static_cast<int>(envelope.to));
    if (to == members.end()) continue;
    for (auto& reply : to->second.receive(from, envelope.message)) wire.push_back({to->first, std::move(reply)});
  }
}

TEST(Agreement, TheNextViewSaysWhereItGoesOn) {
  std::map<int, Agreement> members;
  std::deque<std::pair<int, Envelope>> wire;
  for (const int id : {0, 2, 3}) {
    auto& member = members.emplace(id, Agreement(view_of(4), id)).first->second;
    for (auto& one : member.lost(1, Certainty::kCertain)) wire.push_back({id, std::move(one)});
    for (auto& one : member.start({.updated = id == 2 ? 12 : 11, .complete = 12})) wire.push_back({id, std::move(one)});
  }
  deliver_all(members, std::move(wire));
  for (const auto& [id, member] : members) {
    ASSERT_TRUE(member.decision()) << id;
    EXPECT_EQ(member.decision()->view, (View{.number = 8, .members = {{.id = 0}, {.id = 2}, {.id = 3}}}));
    EXPECT_EQ(member.decision()->proposal.step(), 12) << "one of them has passed the commit point of the twelfth step";
    EXPECT_FALSE(member.fenced());
  }
}

TEST(Agreement, AHalfGoesOnOnlyWithTheFirstMember) {
  for (const int first : {0, 2}) {
    std::map<int, Agreement> members;
    std::deque<std::pair<int, Envelope>> wire;
    for (const int id : {first, first + 1}) {
      auto& member = members.emplace(id, Agreement(view_of(4), id)).first->second;
      for (auto& one : member.start({})) wire.push_back({id, std::move(one)});
    }
    deliver_all(members, std::exchange(wire, {}));
    for (int round = 0; round < 3; ++round) {
      for (auto& [id, member] : members) {
        for (auto& one : member.timeout()) wire.push_back({id, std::move(one)});
        deliver_all(members, std::exchange(wire, {}));
      }
    }
    for (const auto& [id, member] : members) EXPECT_EQ(member.decision().has_value(), first == 0) << id;
  }
}

TEST(Agreement, ALateMemberLearnsThatItWasLost) {
  std::map<int, Agreement> members;
  std::deque<std::pair<int, Envelope>> wire;
  for (const int id : {0, 1}) {
    auto& member = members.emplace(id, Agreement(view_of(3), id)).first->second;
    for (auto& one : member.start({})) wire.push_back({id, std::move(one)});
  }
  deliver_all(members, std::exchange(wire, {}));
  EXPECT_EQ(members.at(0).awaited(), std::set<std::int64_t>{2});
  for (auto& one : members.at(0).timeout()) wire.push_back({0, std::move(one)});
  deliver_all(members, std::exchange(wire, {}));
  ASSERT_TRUE(members.at(1).decision());
  auto& late = members.emplace(2, Agreement(view_of(3), 2)).first->second;
  for (auto& one : late.start({})) wire.push_back({2, std::move(one)});
  deliver_all(members, std::exchange(wire, {}));
  EXPECT_TRUE(late.fenced());
  EXPECT_FALSE(late.decision());
}

}  // namespace
}  // namespace phalanx::membership
