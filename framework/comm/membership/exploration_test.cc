// SPDX-License-Identifier: Apache-2.0
// Explores the agreement: small views in every order of events, larger ones in random orders. Uses neither threads nor
// connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/comm/membership/acceptor.h"
#include "framework/comm/membership/agreement.h"
#include "framework/comm/membership/message.h"
#include "framework/comm/testing/views.h"

namespace phalanx::membership {
namespace {

using testing::view_of;

// Events that may happen, besides the start of members and the delivery of messages.
struct Faults {
  int ends = 0;      // members that end; of their messages that have not arrived, any number of the last ones is lost
  int timeouts = 0;  // at any time, without a loss
};

// The members of one view, and the messages between them that have not arrived. Copying it copies a whole world.
class World {
 public:
  World(int members, Faults faults, bool has_witness = false) : faults_(faults) {
    for (int id = 0; id < members; ++id) nodes_.push_back({Agreement(view_of(members), id, has_witness)});
  }

  struct Step {
    enum class What { kStart, kDeliver, kEnd, kNotice, kTimeout } what;
    int at;        // the member to which it happens
    int from = 0;  // kDeliver, kNotice: the sender, the one that has ended

    bool is_fault() const { return what == What::kEnd || what == What::kTimeout; }
  };

  // Returns the steps that are possible now.
  std::vector<Step> steps() const {
    std::vector<Step> steps;
    for (const auto& [wire, messages] : wires_) {
      if (can_take(wire.second)) steps.push_back({Step::What::kDeliver, wire.second, wire.first});
    }
    for (int at = 0; at < size(); ++at) {
      const Node& node = nodes_[at];
      if (!node.lives) continue;
      if (!node.started && (node.agreement.revoked() || !somebody_started_ || has_noticed(at))) {
        steps.push_back({Step::What::kStart, at});
      }
      if (faults_.ends > 0) steps.push_back({Step::What::kEnd, at});
      if (faults_.timeouts > 0 && node.started && !is_done(at)) steps.push_back({Step::What::kTimeout, at});
      for (int other = 0; other < size(); ++other) {
        if (!nodes_[other].lives && can_notice(at, other)) steps.push_back({Step::What::kNotice, at, other});
      }
    }
    return steps;
  }

  void take(const Step& step) {
    Node* const node = step.at == kWitness ? nullptr : &nodes_[step.at];
    switch (step.what) {
      case Step::What::kStart:
        somebody_started_ = node->started = true;
        return send(step.at, node->agreement.start({.updated = step.at % 2, .complete = 1}));
      case Step::What::kDeliver:
        return deliver(step.from, step.at);
      case Step::What::kEnd:
        --faults_.ends;
        return end(step.at);
      case Step::What::kNotice:  // what has not arrived yet is lost
        wires_.erase({step.from, step.at});
        return send(step.at, node->agreement.lost(step.from, Certainty::kCertain));
      case Step::What::kTimeout:
        --faults_.timeouts;
        return send(step.at, node->agreement.timeout());
    }
  }

  // Every message goes through its bytes.
  void deliver(int from, int to) {
    const auto wire = wires_.find({from, to});
    const Message message = decoded(wire->second.front());
    wire->second.pop_front();
    if (wire->second.empty()) wires_.erase(wire);
    if (to != kWitness) return send(to, nodes_[to].agreement.receive(from, message));
    if (auto answer = witness_.answer(from, message)) wires_[{kWitness, from}].push_back(encoded(*answer));
  }

  void end(int member) {
    nodes_[member].lives = false;
    std::erase_if(wires_, [&](const auto& wire) { return wire.first.second == member; });
  }

  // Returns a text that names the violated property, or an empty one.
  std::string problem() const {
    std::optional<Proposal> installed;
    for (int id = 0; id < size(); ++id) {
      const Node& node = nodes_[id];
      const auto& decision = node.agreement.decision();
      if (node.agreement.fenced() && decision) return "a fenced member has a view";
      if (!node.lives || !decision) continue;
      if (!decision->proposal.contains(id)) return "a member has a view without itself";
      if (decision->view.number != 8 || decision->view.members.size() != decision->proposal.members.size()) {
        return "the view is not that of its proposal";
      }
      if (installed && *installed != decision->proposal) return "two living members have different views";
      installed = decision->proposal;
    }
    return "";
  }

  // Ends the run: no more faults, every loss is noticed, and silence is told from slowness. Returns what is wrong.
  // Fenced members end. Those that are not paused must decide if they are more than half of all.
  std::string settle() {
    faults_ = {};
    const auto waits = [](const Node& node) {
      return node.lives && !node.paused && !node.agreement.decision() && !node.agreement.fenced();
    };
    const auto leads = [&](const Node& node) { return waits(node) && node.agreement.leads(); };
    for (int round = 0; round < 3 * size() && !finished(); ++round) {
      drain();
      for (int id = 0; id < size() && !finished(); ++id) {
        const Node& node = nodes_[id];
        if (!waits(node) || (!node.agreement.leads() && std::ranges::any_of(nodes_, leads))) continue;
        send(id, nodes_[id].agreement.timeout());
        drain();
        if (auto text = problem(); !text.empty()) return text;
      }
    }
    drain();
    if (auto text = problem(); !text.empty()) return text;
    const auto silent = std::ranges::count_if(nodes_, [](const Node& node) { return node.lives && node.paused; });
    if (silent > 0 && 2 * (silent + ended()) >= size()) return "";
    if (!finished()) return "somebody waits though enough are left";
    const auto decided = [](const Node& node) { return node.agreement.decision().has_value(); };
    return ended() == size() || std::ranges::any_of(nodes_, decided) ? "" : "nobody has a view";
  }

  std::string fingerprint() const {
    std::string text = std::to_string(faults_.ends) + ' ' + std::to_string(faults_.timeouts);
    text += somebody_started_ ? 's' : '-';
    for (const auto& node : nodes_) {
      text += node.lives ? (node.started ? "S" : "L") : "E";
      if (node.lives) text += node.agreement.fingerprint();
    }
    text += witness_.fingerprint();
    for (const auto& [wire, messages] : wires_) {
      text += '|' + std::to_string(wire.first) + '>' + std::to_string(wire.second) + ':';
      for (const auto& message : messages) text += message;
    }
    return text;
  }

  Acceptor& witness() { return witness_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  bool lives(int id) const { return nodes_[id].lives; }
  int ended() const { return static_cast<int>(std::ranges::count(nodes_, false, &Node::lives)); }

  // From now on the messages between the two sides wait. `sides` has a bit for each member.
  void divide(std::uint64_t sides) {
    cuts_.clear();
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        if ((sides >> from & 1) != (sides >> to & 1)) cuts_.insert({from, to});
      }
    }
  }
  void heal() { cuts_.clear(); }
  void pause(int member) { nodes_[member].paused = true; }
  void resume(int member) { nodes_[member].paused = false; }

  // Returns the possible steps that no cut or pause keeps from happening.
  std::vector<Step> free_steps() const {
    auto steps = this->steps();
    std::erase_if(steps, [&](const Step& step) {
      if (step.at != kWitness && nodes_[step.at].paused) return true;
      return step.what == Step::What::kDeliver && cuts_.contains({step.from, step.at});
    });
    return steps;
  }

 private:
  struct Node {
    Agreement agreement;
    bool lives = true, started = false, paused = false;
  };
  using Wire = std::pair<int, int>;

  bool can_take(int to) const { return to == kWitness || nodes_[to].lives; }
  bool is_done(int id) const { return nodes_[id].agreement.decision() || nodes_[id].agreement.fenced(); }
  bool has_noticed(int at) const { return !nodes_[at].agreement.ended().empty(); }
  bool can_notice(int at, int ended) const { return !is_done(at) && !nodes_[at].agreement.ended().contains(ended); }

  // Returns true if no member waits.
  bool finished() const {
    return std::ranges::all_of(nodes_, [](const Node& node) {
      return !node.lives || node.paused || node.agreement.decision() || node.agreement.fenced();
    });
  }

  void send(int from, const Outgoing& outgoing) {
    for (const auto& [to, message] : outgoing) {
      if (can_take(static_cast<int>(to))) wires_[{from, static_cast<int>(to)}].push_back(encoded(message));
    }
  }

  // Delivers everything, and lets everybody notice and start.
  void drain() {
    while (true) {
      auto steps = free_steps();
      for (int id = 0; id < size(); ++id) {
        if (nodes_[id].lives && !nodes_[id].paused && nodes_[id].agreement.fenced()) end(id);
      }
      std::erase_if(steps, [&](const Step& step) { return step.at != kWitness && !nodes_[step.at].lives; });
      std::erase_if(steps, [&](const Step& step) {
        return step.what == Step::What::kDeliver && !wires_.contains({step.from, step.at});
      });
      if (steps.empty()) return;
      std::ranges::stable_sort(steps, {}, [](const Step& step) { return step.what == Step::What::kNotice; });
      take(steps.front());
    }
  }

  Faults faults_;
  std::vector<Node> nodes_;
  std::map<Wire, std::deque<std::string>> wires_;
  Acceptor witness_;
  std::set<Wire> cuts_;
  bool somebody_started_ = false;
};

// Visits every state that a world can reach. Returns their number.
std::size_t explore(const World& first) {
  const std::hash<std::string> hash;
  std::unordered_set<std::size_t> seen{hash(first.fingerprint())};
  std::vector<World> open{first};
  while (!open.empty()) {
    const World world = std::move(open.back());
    open.pop_back();
    const auto steps = world.steps();
    bool is_last = true;
    for (const auto& step : steps) {
      World next = world;
      next.take(step);
      is_last &= step.is_fault();
      if (const auto text = next.problem(); !text.empty()) {
        ADD_FAILURE() << text;
        return seen.size();
      }
      if (seen.insert(hash(next.fingerprint())).second) open.push_back(std::move(next));
    }
    if (!is_last) continue;
    World last = world;
    if (const auto text = last.settle(); !text.empty()) {
      ADD_FAILURE() << "at the end: " << text;
      return seen.size();
    }
  }
  return seen.size();
}

// Runs a world in a random order, with pauses and divisions that begin and end. Returns what is wrong.
std::string run_at_random(std::mt19937_64& random) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  const int members = 5 + below(5);
  World world(members, {.ends = below(members), .timeouts = below(4 * members)}, below(2) == 0);
  const int calm = 2 + below(40);      // one in so many events is a fault, as far as there are faults left
  const int stable = 10 + below(100);  // one in so many events changes who hears whom
  for (int event = 0; event < 400; ++event) {
    if (below(stable) == 0) world.divide(random());
    if (below(stable) == 0) world.pause(below(members));
    if (below(4 * stable) == 0) world.heal();
    if (below(stable) == 0) world.resume(below(members));
    auto steps = world.free_steps();
    const bool quiet = below(calm) != 0;
    const bool idle = std::ranges::none_of(steps, [](const World::Step& step) { return !step.is_fault(); });
    std::erase_if(steps, [&](const World::Step& step) { return quiet && !idle && step.is_fault(); });
    if (steps.empty()) continue;
    world.take(steps[random() % steps.size()]);
    if (auto text = world.problem(); !text.empty()) return text;
  }
  world.heal();
  // Some may stay silent for ever, as long as the others are enough.
  int silent = 0;
  for (int id = 0; id < members; ++id) {
    const bool stays = below(4) == 0 && world.lives(id) && 2 * (silent + world.ended() + 1) < members;
    stays ? world.pause(id) : world.resume(id);
    silent += stays ? 1 : 0;
  }
  if (auto text = world.settle(); !text.empty()) return text;
  for (int id = 0; id < members; ++id) world.resume(id);
  return world.settle();
}

TEST(Agreement, ThreeMembersOfWhichTwoEndInEveryOrder) { EXPECT_GT(explore(World(3, {.ends = 2})), 5'000U); }

TEST(Agreement, ThreeMembersOfWhichOneEndsAndOneBelievesOthersLostInEveryOrder) {
  EXPECT_GT(explore(World(3, {.ends = 1, .timeouts = 1})), 100'000U);
}

TEST(Agreement, TwoMembersThatBelieveEachOtherLostInEveryOrder) {
  EXPECT_GT(explore(World(2, {.ends = 1, .timeouts = 3})), 1'000U);
  EXPECT_GT(explore(World(2, {.ends = 1, .timeouts = 1}, true)), 1'000U);
}

// Otherwise the exploration would take a state for one that it has visited.
TEST(Agreement, AFingerprintTellsWhatTheWitnessKnows) {
  World world(2, {}, true), other = world;
  EXPECT_EQ(other.fingerprint(), world.fingerprint());
  other.witness().ended(0);
  EXPECT_NE(other.fingerprint(), world.fingerprint());
}

TEST(Agreement, ManyMembersInRandomOrders) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    std::mt19937_64 random(seed);
    const auto problem = run_at_random(random);
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace phalanx::membership
