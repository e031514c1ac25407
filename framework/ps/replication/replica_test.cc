// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/replication/replica.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/config/config.h"

// Runs a small schedule of clients and members of a chain in every possible order, with a leader that ends at any
// point, or that is wrongly believed to be lost. Uses neither threads nor sockets: a run is a list of choices.
namespace phalanx::ps {
namespace {

using Value = std::int64_t;

enum class Fault {
  kNone,
  kLeaderEnds,         // at any point; messages that it has sent arrive or are lost
  kLeaderIsSuspected,  // a client asks the next member to lead although the leader is alive
  kServerRestarts      // any member ends at any point, and restarts later without its state
};

constexpr std::uint64_t kStart = 100;  // random number of the values with which the clients began

struct Operation {
  bool reads;
  Value value;  // push: a power of ten, so a sum shows which pushes it includes and how often
};
using Script = std::vector<Operation>;

ClientId id_of(int client) { return {.job = "test", .number = client, .incarnation = 1}; }

bool contains(Value sum, Value part) {
  for (; part > 0; sum /= 10, part /= 10) {
    if (sum % 10 < part % 10) return false;
  }
  return true;
}

Value joined(Value a, Value b) {
  Value all = 0;
  for (Value place = 1; place <= std::max(a, b); place *= 10) all += std::max(a / place % 10, b / place % 10) * place;
  return all;
}

class World {
 public:
  World(const std::vector<Script>& scripts, const TableSpec& spec, int members, Fault fault)
      : fault_(fault), synchronous_(spec.staleness == 0) {
    for (int member = 0; member < members; ++member) {
      alive_.push_back(true);
      members_.push_back(std::make_unique<Replica>(
          member, members, HostLimits{}, kStart + member,
          [this, member](int to, ReplicaMessage message) { send(member, to, std::move(message)); }));
    }
    EXPECT_TRUE(members_[0]->begin());
    for (int member = 1; member < members; ++member) members_[0]->connected(member), linked_.insert({0, member});
    CreateRequest create{.table = spec};
    const Message request{.header = {.verb = Verb::kCreate, .id = 1}, .text = config::dump(create)};
    for (int i = 0; i < static_cast<int>(scripts.size()); ++i) {
      clients_.push_back({.script = scripts[i]});
      members_[0]->submit(id_of(i), request, [](const Message&, const at::Tensor&) {});
    }
    while (!wires_.empty()) deliver(wires_.begin()->first);
  }

  // Returns the steps that are possible now.
  std::vector<std::function<void()>> steps() {
    std::vector<std::function<void()>> all;
    for (const auto& [wire, messages] : wires_) all.emplace_back([this, wire = wire] { deliver(wire); });
    for (int i = 0; i < static_cast<int>(clients_.size()); ++i) {
      const Client& client = clients_[i];
      if (client.next == client.script.size()) continue;
      if (serves(client.leader)) {
        if (!client.waits) all.emplace_back([this, i] { ask(i); });
        if (fault_ != Fault::kLeaderIsSuspected || fault_used_) continue;
      }
      // Another member leads or takes over; any of them may be the one that the client reaches.
      for (int member = 0; member < members(); ++member) {
        if (member == client.leader || !alive_[member] || members_[member]->role() == Replica::Role::kBlank) continue;
        if (members_[member]->start() != kStart) continue;  // a client refuses any other values
        all.emplace_back([this, i, member] { go_to(i, member); });
      }
    }
    if (fault_ == Fault::kLeaderEnds && !fault_used_) all.emplace_back([this] { end_leader(); });
    for (int member = 0; fault_ == Fault::kServerRestarts && member < members(); ++member) {
      if (!fault_used_) all.emplace_back([this, member] { end(member); });
      if (!alive_[member]) all.emplace_back([this, member] { restart(member); });
      // The first member starts to lead if a client of another job asks it before it has heard from the other members.
      const bool may_begin = member == 0 && alive_[0] && restarted_ && members_[0]->epoch() < 0 &&
                             members_[0]->role() == Replica::Role::kBlank;
      if (may_begin) all.emplace_back([this] { EXPECT_TRUE(members_[0]->begin()); });
    }
    for (int from = 0; from < members(); ++from) {
      for (int to = 0; to < members() && leads(from); ++to) {
        if (to != from && alive_[to] && !linked_.contains({from, to})) {
          all.emplace_back([this, from, to] { link(from, to); });
        }
        if (!alive_[to] && members_[from]->is_in_view(to)) {
          all.emplace_back([this, from, to] { members_[from]->ended(to); });
        }
      }
    }
    return all;
  }

  // Checks the result once no step is possible.
  void check_end() {
    Value all = 0;
    for (const auto& client : clients_) {
      EXPECT_EQ(client.next, client.script.size()) << "a request was never answered";
      for (const auto& operation : client.script) all += operation.value;
    }
    for (int i = 0; i < members(); ++i) {
      if (!alive_[i] || members_[i]->role() == Replica::Role::kBlank) continue;
      EXPECT_EQ(value_at(i), all) << "member " << i << ", which " << (leads(i) ? "leads" : "follows");
    }
    const auto has_values = [](const auto& one) { return one->role() != Replica::Role::kBlank; };
    EXPECT_TRUE(std::ranges::any_of(members_, has_values));
  }

 private:
  struct Wire {
    int leader, from, to;  // over the connection that `leader` has established
    auto operator<=>(const Wire&) const = default;
  };
  struct Client {
    Script script;
    std::size_t next = 0;
    bool waits = false;
    int leader = 0;
    int attempt = 0;
    Value known = 0;  // updates that the next reply must include
    std::int64_t clock = 0;
  };

  int members() const { return static_cast<int>(members_.size()); }
  bool leads(int member) const { return alive_[member] && members_[member]->role() == Replica::Role::kLeader; }

  bool serves(int member) const { return leads(member) && members_[member]->start() == kStart; }

  void send(int from, int to, ReplicaMessage message) {
    const bool to_leader =
        message.kind == ReplicaMessage::Kind::kApplied || message.kind == ReplicaMessage::Kind::kRefused;
    for (auto& [name, tensor] : message.state.tensors) tensor = tensor.clone();
    if (alive_[to]) wires_[{to_leader ? to : from, from, to}].push_back(std::move(message));
  }

  void deliver(Wire wire) {
    auto& messages = wires_[wire];
    const ReplicaMessage message = std::move(messages.front());
    messages.pop_front();
    if (messages.empty()) wires_.erase(wire);
    members_[wire.to]->receive(wire.from, message);
  }

  void link(int from, int to) {
    linked_.insert({from, to});
    members_[from]->connected(to);
  }

  void end_leader() {
    fault_used_ = true;
    const auto leader = std::ranges::find_if(members_, [this](const auto& one) { return leads(one->member()); });
    if (leader == members_.end()) return;
    end((*leader)->member());
  }

  void end(int ended) {
    fault_used_ = true;
    alive_[ended] = false;
    std::erase_if(wires_, [ended](const auto& one) { return one.first.to == ended; });
  }

  // Restarts a member. Its connections end before others make new ones.
  void restart(int member) {
    alive_[member] = restarted_ = true;
    members_[member] = std::make_unique<Replica>(
        member, members(), HostLimits{}, 2 * kStart + member,
        [this, member](int to, ReplicaMessage message) { send(member, to, std::move(message)); });
    std::erase_if(wires_, [member](const auto& one) { return one.first.from == member || one.first.leader == member; });
    std::erase_if(linked_, [member](const auto& one) { return one.first == member || one.second == member; });
    for (int other = 0; other < members(); ++other) {
      if (other != member && leads(other)) members_[other]->disconnected(member);
    }
  }

  // Does what Link does when a connection ends, and what a server does.
  void go_to(int i, int member) {
    Client& client = clients_[i];
    if (serves(client.leader)) {
      fault_used_ = true;
      members_[client.leader]->submit(id_of(i), {.header = {.verb = Verb::kForgetReads}}, nothing_);
    }
    EXPECT_TRUE(leads(member) || members_[member]->take_over());
    client.leader = member;
    if (std::exchange(client.waits, false)) ask(i);
  }

  void ask(int i) {
    Client& client = clients_[i];
    const Operation operation = client.script[client.next];
    Message request{.header = {.verb = operation.reads ? Verb::kPull : Verb::kPush,
                               .id = client.next + 2,
                               .table = 1,
                               .rule = 1,
                               .clock = client.clock}};
    if (!operation.reads) {
      request.header.flags = kTick;
      request.payload = at::full({2}, operation.value, at::kLong);
    }
    client.waits = true;
    client.known = known_;
    const int attempt = ++client.attempt;
    Replica& replica = *members_[client.leader];
    replica.submit(id_of(i), request, [this, i, attempt, &replica](const Message& reply, const at::Tensor& values) {
      EXPECT_EQ(reply.header.status, Status::kDone) << reply.text;
      std::optional<Value> value;
      if (values.defined()) {
        value = values[0].item<Value>();
        EXPECT_EQ(*value, values[1].item<Value>()) << "a part of an update was seen";
      }
      replica.when_applied([this, i, attempt, value] { take(i, attempt, value); });
    });
  }

  void take(int i, int attempt, const std::optional<Value>& value) {
    Client& client = clients_[i];
    if (client.attempt != attempt || !client.waits) return;  // a reply to an earlier attempt
    const Operation operation = client.script[client.next++];
    client.waits = false;
    if (value) {
      EXPECT_TRUE(contains(*value, client.known))
          << *value << " lacks what was acknowledged or read before, " << client.known;
      check_bound(i, *value);
      known_ = joined(known_, *value);
    } else {
      known_ += contains(known_, operation.value) ? 0 : operation.value;
      ++client.clock;
    }
  }

  // Checks a read of a bulk synchronous table: it must include all pushes of clocks before the client's.
  void check_bound(int i, Value value) const {
    if (!synchronous_) return;
    for (const auto& other : clients_) {
      std::int64_t clock = 0;
      for (const auto& operation : other.script) {
        if (operation.reads || clock++ >= clients_[i].clock) continue;
        EXPECT_TRUE(contains(value, operation.value)) << "the bound was broken";
      }
    }
  }

  Value value_at(int member) {
    Value value = -1;
    Message pull{.header = {.verb = Verb::kPull, .id = 99, .table = 1}};
    members_[member]->host().handle(id_of(0), pull, [&](const Message& reply, const at::Tensor& values) {
      EXPECT_EQ(reply.header.status, Status::kDone) << reply.text;
      if (values.defined()) value = values[0].item<Value>();
    });
    return value;
  }

  const ShardHost::Answer nothing_ = [](const Message&, const at::Tensor&) {};
  Fault fault_;
  bool synchronous_;
  bool fault_used_ = false;
  bool restarted_ = false;
  std::vector<bool> alive_;
  std::vector<std::unique_ptr<Replica>> members_;
  std::map<Wire, std::deque<ReplicaMessage>> wires_;
  std::set<std::pair<int, int>> linked_;
  std::vector<Client> clients_;
  Value known_ = 0;  // all updates that any client knows of
};

TableSpec table_of(std::int64_t staleness) {
  return {.name = "t", .elements = 2, .dtype = "int64", .rules = {"copy", "add"}, .clients = 2, .staleness = staleness};
}

// Runs one order: `choose` selects the next step from the possible ones. Returns false if something was wrong.
bool run(World& world, const std::function<std::size_t(std::size_t depth, std::size_t steps)>& choose) {
  std::string chosen;
  std::size_t depth = 0;
  for (auto steps = world.steps(); !steps.empty() && !::testing::Test::HasFailure(); steps = world.steps(), ++depth) {
    const std::size_t choice = choose(depth, steps.size());
    chosen += " " + std::to_string(choice);
    steps[choice]();
    if (depth > 500) ADD_FAILURE() << "it does not end";
  }
  if (!::testing::Test::HasFailure()) world.check_end();
  if (::testing::Test::HasFailure()) ADD_FAILURE() << "by the choices" << chosen;
  return !::testing::Test::HasFailure();
}

// Runs all orders and returns their number.
int for_all_orders(const std::vector<Script>& scripts, std::int64_t staleness, int members, Fault fault) {
  std::vector<std::size_t> choices, most;
  int orders = 0;
  do {
    World world(scripts, table_of(staleness), members, fault);
    const bool right = run(world, [&](std::size_t depth, std::size_t steps) {
      if (depth == choices.size()) choices.push_back(0), most.push_back(steps);
      return choices[depth];
    });
    ++orders;
    if (!right) return orders;
    while (!choices.empty() && ++choices.back() == most.back()) choices.pop_back(), most.pop_back();
  } while (!choices.empty());
  return orders;
}

// Runs some of the orders if there are too many to try all. The choice is the same each time.
void for_some_orders(const std::vector<Script>& scripts, std::int64_t staleness, int members, Fault fault, int orders) {
  std::uint64_t random = 1;
  for (int i = 0; i < orders; ++i) {
    World world(scripts, table_of(staleness), members, fault);
    const bool right = run(world, [&](std::size_t, std::size_t steps) {
      random = random * 6364136223846793005 + 1442695040888963407;
      return static_cast<std::size_t>((random >> 33) % steps);
    });
    if (!right) return;
  }
}

const Operation kRead{.reads = true, .value = 0};
Operation push(Value value) { return {.reads = false, .value = value}; }

TEST(EveryOrderOfAChain, WithoutFaultsGivesTheResultsOfOneServer) {
  EXPECT_GT(for_all_orders({{push(1), kRead}, {push(10), kRead}}, kAsynchronous, 2, Fault::kNone), 100);
}

TEST(EveryOrderOfAChain, NothingIsLostOrDoubledWhereverTheLeaderEnds) {
  EXPECT_GT(for_all_orders({{push(1), push(10)}, {push(100), kRead}}, kAsynchronous, 2, Fault::kLeaderEnds), 1000);
}

TEST(EveryOrderOfAChain, BulkSynchronousReadsKeepTheirBoundAcrossAFailover) {
  EXPECT_GT(for_all_orders({{push(1), kRead}, {push(100), kRead}}, 0, 2, Fault::kLeaderEnds), 1000);
}

TEST(EveryOrderOfAChain, NothingIsLostWhenAServerComesBackWithoutItsState) {
  EXPECT_GT(for_all_orders({{push(1), kRead}}, kAsynchronous, 2, Fault::kServerRestarts), 100);
}

TEST(SomeOrdersOfAChain, NothingIsLostOrDoubledWhereAServerComesBackUnderLoad) {
  for_some_orders({{push(1), kRead, push(10), kRead}, {push(100), kRead, push(1000), kRead}}, kAsynchronous, 2,
                  Fault::kServerRestarts, 5000);
}

TEST(SomeOrdersOfAChain, ThereAreNotTwoHistoriesWhereALeaderOnlySeemsLost) {
  for_some_orders({{push(1), kRead, push(10), kRead}, {push(100), kRead, push(1000), kRead}}, kAsynchronous, 2,
                  Fault::kLeaderIsSuspected, 5000);
}

}  // namespace
}  // namespace phalanx::ps
