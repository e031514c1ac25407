// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/shards/shard_host.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/ps/protocol/element_ranges.h"

namespace phalanx::ps {
namespace {

ClientId client(int number, const std::string& job = "test") {
  return {.job = job, .number = number, .incarnation = 1};
}

TableSpec table(std::int64_t elements, std::int64_t staleness = kAsynchronous, std::int64_t clients = 2) {
  return {.name = "t",
          .elements = elements,
          .dtype = "int64",
          .rules = {"copy", "add"},
          .clients = clients,
          .staleness = staleness};
}

// The immediate reply; nothing if the request has to wait.
struct Answered {
  Message reply;
  std::vector<std::int64_t> values;
};
using Answers = std::shared_ptr<std::optional<Answered>>;

Answers ask(ShardHost& host, const ClientId& who, const Message& request) {
  auto answers = std::make_shared<std::optional<Answered>>();
  host.handle(who, request, [answers](Message reply, const at::Tensor& values) {
    ASSERT_FALSE(*answers) << "answered twice";
    answers->emplace(Answered{std::move(reply), {}});
    if (!values.defined()) return;
    const auto* data = values.const_data_ptr<std::int64_t>();
    (*answers)->values.assign(data, data + values.numel());
  });
  return answers;
}

Message create(const TableSpec& spec, int shard = 0, int shards = 1, std::uint64_t id = 1) {
  CreateRequest request{.table = spec, .shard = shard, .shards = shards};
  return {.header = {.verb = Verb::kCreate, .id = id}, .text = config::dump(request)};
}

Message push(std::uint64_t id, std::int64_t value, std::int64_t elements, std::optional<std::int64_t> tick = {}) {
  Message message{.header = {.verb = Verb::kPush, .id = id, .table = 1, .rule = 1},
                  .payload = at::full({elements}, value, at::kLong)};
  if (tick) message.header.flags = kTick, message.header.clock = *tick;
  return message;
}

Message pull(std::uint64_t id, std::int64_t clock = 0) {
  return {.header = {.verb = Verb::kPull, .id = id, .table = 1, .clock = clock}};
}

bool refused(const Answers& answers) { return *answers && (*answers)->reply.header.status == Status::kRefused; }

TEST(ShardHost, HoldsItsPartForAnyNumberOfServers) {
  const std::array<std::size_t, 3> expected{4, 3, 3};
  for (int shard = 0; shard < 3; ++shard) {
    ShardHost host({});
    ASSERT_FALSE(refused(ask(host, client(0), create(table(10), shard, 3))));
    EXPECT_EQ((*ask(host, client(0), pull(2)))->values.size(), expected[shard]);
  }
  ShardHost empty({});
  ask(empty, client(0), create(table(2), 2, 3));
  EXPECT_TRUE((*ask(empty, client(0), pull(2)))->values.empty());
}

TEST(ShardHost, ClientsThatCreateTheSameTableShareIt) {
  ShardHost host({});
  EXPECT_EQ((*ask(host, client(0), create(table(4))))->reply.header.table, 1u);
  EXPECT_EQ((*ask(host, client(1), create(table(4))))->reply.header.table, 1u);
  const auto other = ask(host, client(1), create(table(5), 0, 1, 2));
  ASSERT_TRUE(refused(other));
  EXPECT_NE((*other)->reply.text.find("table \"t\" exists"), std::string::npos) << (*other)->reply.text;
}

TEST(ShardHost, JobsDoNotSeeEachOthersTables) {
  ShardHost host({});
  ask(host, client(0), create(table(4)));
  EXPECT_TRUE(refused(ask(host, client(0, "other"), pull(2))));
  EXPECT_EQ((*ask(host, client(0, "other"), create(table(4))))->reply.header.table, 2u);
}

TEST(ShardHost, ARepeatedRequestIsAppliedOnce) {
  ShardHost host({});
  ask(host, client(0), create(table(3)));
  for (int time = 0; time < 3; ++time) EXPECT_EQ((*ask(host, client(0), push(2, 5, 3)))->reply.header.version, 1);
  ask(host, client(1), push(2, 5, 3));  // request number 2 of another client is a different request
  EXPECT_EQ((*ask(host, client(0), pull(3)))->values, std::vector<std::int64_t>(3, 10));
}

TEST(ShardHost, RefusesInvalidRequestsAndContinues) {
  ShardHost host({.memory_bytes = 1000});
  ask(host, client(0), create(table(4)));
  Message unknown_rule = push(2, 1, 4), wrong_size = push(3, 1, 5), wrong_type = push(4, 1, 4);
  unknown_rule.header.rule = 9;
  wrong_type.payload = wrong_type.payload.to(at::kInt);
  Message half_a_range = push(7, 1, 4), too_far = push(8, 1, 4);
  half_a_range.text = "text";
  too_far.text = to_text({{3, 5}});
  Message no_table = pull(5), no_verb = pull(6);
  no_table.header.table = 77;
  no_verb.header.verb = static_cast<Verb>(200);
  TableSpec huge = table(1'000'000'000'000), bad_rule = table(4), overflow = table(INT64_MAX);
  huge.name = "huge", bad_rule.name = "bad", bad_rule.rules = {"ad"}, overflow.name = "overflow";
  for (const auto& request : {unknown_rule, wrong_size, wrong_type, half_a_range, too_far, no_table, no_verb,
                              create(huge), create(bad_rule), create(overflow), create(table(4), 3, 3)}) {
    EXPECT_TRUE(refused(ask(host, client(0), request))) << static_cast<int>(request.header.verb);
  }
  Message garbage = create(table(4));
  garbage.text = "{table: [";
  EXPECT_TRUE(refused(ask(host, client(0), garbage)));
  EXPECT_EQ((*ask(host, client(0), pull(9)))->values, std::vector<std::int64_t>(4, 0));
}

TEST(ShardHost, RefusesStatesThatAreMalformedOrNeedTooMuchMemory) {
  const auto load = [](const std::string& description) { ShardHost({.memory_bytes = 1000}).load({description}); };
  const auto table = [](const std::string& elements, const std::string& shards) {
    return R"({"tables": [{"number": 1, "job": "a", "shard": 0, "shards": )" + shards +
           R"(, "spec": "{name: t, elements: )" + elements + R"(}"}]})";
  };
  EXPECT_THROW(load("{}"), Error);
  EXPECT_THROW(load(table("4", "0")), Error);
  EXPECT_THROW(load(table("4611686018427387904", "1")), Error);
}

TEST(ShardHost, AReadWaitsUntilTheSlowestClientIsWithinTheBound) {
  ShardHost host({});
  ask(host, client(0), create(table(1, 1)));
  ask(host, client(0), push(2, 1, 1, 0));
  EXPECT_TRUE(*ask(host, client(0), pull(3, 1))) << "one clock ahead is within the bound of 1";
  ask(host, client(0), push(4, 1, 1, 1));
  const auto waits = ask(host, client(0), pull(5, 2));
  EXPECT_FALSE(*waits) << "two clocks ahead is beyond the bound";
  EXPECT_TRUE(*ask(host, client(1), pull(2, 0))) << "the slowest client never waits";
  ask(host, client(1), push(3, 10, 1, 0));
  ASSERT_TRUE(*waits) << "the slowest client has reached the bound";
  EXPECT_EQ((*waits)->values, std::vector<std::int64_t>({12}));
  EXPECT_EQ((*waits)->reply.header.waited_for, 1);
}

TEST(ShardHost, OthersDoNotWaitForAClientThatHasLeft) {
  ShardHost host({});
  ask(host, client(0), create(table(1, 0)));
  ask(host, client(0), push(2, 1, 1, 0));
  const auto waits = ask(host, client(0), pull(3, 1));
  EXPECT_FALSE(*waits);
  host.leave(client(1));
  EXPECT_TRUE(*waits);
}

// ---- all interleavings of a small schedule

// Two clients do two operations each on two shards. The requests of a client to one shard arrive in the order in which
// they were sent. Otherwise they may arrive in any order.
struct Sent {
  int client;
  Verb verb;
  std::int64_t value;
};
using ClientScripts = std::array<std::vector<Sent>, 2>;  // indexed by client

struct Seen {
  std::array<std::vector<std::vector<std::int64_t>>, 2> read;  // indexed by client: the values of each pull and shard
  std::array<std::int64_t, 2> final{};                         // final values of each shard
};

// Runs the script once for each order in which its requests can arrive at the shards. Since shards are independent, all
// orders for one are combined with all orders for the other.
void for_all_interleavings(const ClientScripts& script, std::int64_t staleness,
                           const std::function<void(const std::vector<Sent>& order, const Seen& seen)>& check) {
  std::vector<int> turns(script[0].size(), 0);
  turns.resize(script[0].size() + script[1].size(), 1);
  do {
    ShardHost host({});
    ask(host, client(0), create(table(2, staleness)));
    std::array<std::size_t, 2> next{};
    std::array<std::int64_t, 2> clock{};
    std::vector<Sent> order;
    std::vector<std::pair<int, Answers>> reads;
    for (const int turn : turns) {
      const Sent sent = script[turn][next[turn]++];
      order.push_back(sent);
      const std::uint64_t id = next[turn] + 1;
      if (sent.verb == Verb::kPush) {
        ask(host, client(turn), push(id, sent.value, 2, clock[turn]++));
      } else {
        reads.emplace_back(turn, ask(host, client(turn), pull(id, clock[turn])));
      }
    }
    Seen seen;
    for (const auto& [who, answers] : reads) {
      seen.read[who].push_back(*answers ? (*answers)->values : std::vector<std::int64_t>{});
    }
    seen.final[0] = (*ask(host, client(0), pull(99, 0)))->values[0];
    check(order, seen);
  } while (std::next_permutation(turns.begin(), turns.end()));
}

// Values are powers of ten, so a sum shows which updates it includes.
const ClientScripts kScript{
    {{{0, Verb::kPush, 1}, {0, Verb::kPull, 0}, {0, Verb::kPush, 10}, {0, Verb::kPull, 0}},
     {{1, Verb::kPush, 100}, {1, Verb::kPull, 0}, {1, Verb::kPush, 1000}, {1, Verb::kPull, 0}}}};

TEST(EveryInterleaving, LosesNoUpdateAndTearsNoRead) {
  int orders = 0;
  for_all_interleavings(kScript, kAsynchronous, [&](const auto&, const Seen& seen) {
    ++orders;
    EXPECT_EQ(seen.final[0], 1111);
    for (const auto& reads : seen.read) {
      for (const auto& values : reads) {
        ASSERT_EQ(values.size(), 2u) << "an asynchronous read never waits";
        EXPECT_EQ(values[0], values[1]) << "a part of an update was seen";
      }
    }
    EXPECT_EQ(seen.read[0][0][0] % 10, 1) << "a client reads its own update";
    EXPECT_EQ(seen.read[1][1][0] / 100, 11);
  });
  EXPECT_EQ(orders, 70);  // the binomial coefficient 8 over 4
}

TEST(EveryInterleaving, BulkSynchronousReadsHaveAllUpdatesOfEarlierClocks) {
  for_all_interleavings(kScript, 0, [&](const auto&, const Seen& seen) {
    for (const auto& reads : seen.read) {
      ASSERT_EQ(reads[0].size(), 2u) << "all clients were there: no read is left waiting";
      ASSERT_EQ(reads[1].size(), 2u);
      EXPECT_EQ(reads[0][0] % 10, 1);
      EXPECT_EQ(reads[0][0] / 100 % 10, 1);
      EXPECT_EQ(reads[1][0], 1111);
    }
  });
}

TEST(EveryInterleaving, BoundedStalenessIsKeptAndUsed) {
  std::set<std::int64_t> first, second;
  for_all_interleavings(kScript, 1, [&](const auto&, const Seen& seen) {
    first.insert(seen.read[0][0][0]);
    second.insert(seen.read[0][1][0]);
    EXPECT_EQ(seen.read[0][1][0] / 100 % 10, 1) << "at clock 2 the other's clock 0 must be there";
  });
  EXPECT_TRUE(first.contains(1)) << "at clock 1 it may be missing: reads do not wait longer than the bound demands";
  EXPECT_TRUE(second.contains(111)) << "at clock 2 the other's clock 1 may be missing";
}

}  // namespace
}  // namespace phalanx::ps
