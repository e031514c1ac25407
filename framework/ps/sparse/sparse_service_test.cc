// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/server/server.h"
#include "framework/ps/sparse/sparse_table.h"
#include "framework/ps/testing/raw_client.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

using enum testing::SparseRule;
using testing::RawClient;
using testing::Service;
using testing::SparseRule;
constexpr std::int64_t kServedDim = 16;

TableSpec sparse() {
  return {
      .name = "t", .rules = {"add", "sgd"}, .dim = kServedDim, .sparse = {.keys = 1'000'000'000, .capacity = 100'000}};
}

class SparseOver : public ::testing::TestWithParam<const char*> {};

TEST_P(SparseOver, WhatIsPushedIsPulledByKey) {
  const Service service(3, GetParam());
  const auto client = service.client();
  for (const std::string partition : {"hash", "range"}) {
    TableSpec spec = sparse();
    spec.name = partition, spec.sparse.partition = partition;
    SparseTable table(*client, spec);
    const auto keys = at::tensor(std::vector<std::int64_t>{999'999'999, 0, 12, 500'000'000, 0, 7}).reshape({2, 3});
    auto updates = at::zeros({2, 3, kServedDim});
    for (int i = 0; i < 6; ++i) updates.view({6, kServedDim})[i].fill_(1 << i);
    table.push(keys, updates, {.rule = kAddRows, .scale = 2}).wait();
    const auto rows = table.pull(keys);
    ASSERT_EQ(rows.sizes(), (std::vector<std::int64_t>{2, 3, kServedDim}));
    const std::vector<float> expected{2, 36, 8, 16, 36, 64};  // key 0 occurs twice
    for (int i = 0; i < 6; ++i)
      EXPECT_TRUE(rows.view({6, kServedDim})[i].equal(at::full({kServedDim}, expected[i]))) << i;
  }
}

TEST_P(SparseOver, LargeAndEmptyBatches) {
  const Service service(2, GetParam());
  const auto client = service.client();
  SparseTable table(*client, sparse());
  const auto keys = at::arange(30'000, at::kLong) * 33'331;
  const auto updates = keys.to(at::kFloat).unsqueeze(1).expand({-1, kServedDim}).contiguous();
  Work push = table.push(keys, updates, {.rule = kSgdRows});
  auto rows = at::zeros({30'000, kServedDim});
  Work pull = table.pull(keys, rows);  // ordered after the push
  pull.wait();
  push.wait();
  EXPECT_TRUE(rows.equal(-updates));
  EXPECT_EQ(table.pull(at::zeros({0}, at::kLong)).numel(), 0);
  table.push(at::zeros({0}, at::kLong), at::zeros({0, kServedDim}), {}).wait();
}

TEST_P(SparseOver, NewRowsAreTheSameOnAnyNumberOfServers) {
  TableSpec spec = sparse();
  spec.sparse.initial = "normal";
  const auto keys = at::arange(100, at::kLong) * 1'234'567;
  at::Tensor first;
  for (const int servers : {1, 2, 3}) {
    const Service service(servers, GetParam());
    const auto client = service.client();
    SparseTable table(*client, spec);
    const auto rows = table.pull(keys);
    EXPECT_GT(rows.abs().min().item<float>(), 0);
    if (!first.defined()) first = rows;
    EXPECT_TRUE(rows.equal(first)) << servers;
  }
}

TEST_P(SparseOver, NoUpdateOfTwoConcurrentClientsIsLost) {
  constexpr int kRounds = 50;
  const Service service(2, GetParam());
  std::vector<std::thread> threads;
  std::vector<at::Tensor> sums(2);
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      const auto client = service.client(number);
      SparseTable table(*client, sparse());
      auto& sum = sums[number] = at::zeros({500, kServedDim});
      for (int round = 0; round < kRounds; ++round) {
        const auto keys = at::randint(500, {200}, at::kLong);
        const auto updates = at::randint(-9, 10, {200, kServedDim}, at::kFloat);
        sum.index_add_(0, keys, updates);
        table.push(keys * 1'999'993, updates, {.rule = kAddRows}).wait();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto client = service.client();
  SparseTable table(*client, sparse());
  EXPECT_TRUE(table.pull(at::arange(500, at::kLong) * 1'999'993).equal(sums[0] + sums[1]));
}

// Rows are saved and restored on a different number of servers.
TEST_P(SparseOver, RowsAreReadAndWrittenWithTheStateOfTheirRules) {
  TableSpec spec = sparse();
  spec.rules = {"adagrad", "adam"}, spec.sparse.initial = "normal";
  const auto keys = at::arange(3'000, at::kLong) * 33'331;
  const auto updates = keys.to(at::kFloat).unsqueeze(1).expand({-1, kServedDim}).contiguous();
  const auto train = [&](SparseTable& table) {
    table.push(keys, updates, {.rule = 0, .scale = 0.1}).wait();
    table.push(keys.narrow(0, 0, 500), updates.narrow(0, 0, 500), {.rule = 1, .scale = 0.1}).wait();
  };
  const Service before(2, GetParam()), after(3, GetParam());
  const auto saving = before.client(), going_on = after.client();
  SparseTable saved(*saving, spec), resumed(*going_on, spec);
  EXPECT_EQ(saved.read_rows(0).keys.numel(), 0);
  train(saved);
  std::int64_t count = 0;
  for (std::size_t server = 0; server < 2; ++server) {
    const auto rows = saved.read_rows(server);
    count += rows.keys.numel();
    ASSERT_EQ(rows.numbers.sizes(),
              (std::vector<std::int64_t>{rows.keys.numel(), 2 * kServedDim + 2 * kServedDim + 1}));
    resumed.write_rows(rows);
  }
  EXPECT_EQ(count, 3'000);
  EXPECT_TRUE(resumed.pull(keys).equal(saved.pull(keys)));
  train(saved), train(resumed);
  EXPECT_TRUE(resumed.pull(keys).equal(saved.pull(keys))) << "sums and moments are restored";
  const auto rows = saved.read_rows(0);
  EXPECT_THROW(resumed.write_rows({.keys = rows.keys, .numbers = rows.numbers.narrow(1, 0, kServedDim).contiguous()}),
               std::invalid_argument);
  EXPECT_THROW(resumed.write_rows({.keys = rows.keys - 1'000'000'000, .numbers = rows.numbers}), std::invalid_argument);
}

// Servers that have none of a push's keys still learn of its tick.
TEST_P(SparseOver, BulkSynchronousClientsReadAllUpdatesOfEarlierClocks) {
  constexpr int kClients = 2, kSteps = 20;
  const Service service(3, GetParam());
  TableSpec spec = sparse();
  spec.clients = kClients, spec.staleness = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < kClients; ++number) {
    threads.emplace_back([&, number] {
      const auto client = service.client(number);
      SparseTable table(*client, spec);
      const auto all = at::arange(20, at::kLong);
      for (int step = 0; step < kSteps; ++step) {
        const auto rows = table.pull(all);
        // Some updates of the other clients' next clock may already be included.
        EXPECT_GE(rows.min().item<float>(), step / 20 * kClients);
        EXPECT_TRUE(rows.narrow(0, 0, step).ge(kClients).all().item<bool>()) << step;
        table.push(at::full({1}, step, at::kLong), at::ones({1, kServedDim}), {.rule = kAddRows, .tick = true}).wait();
      }
      EXPECT_EQ(table.clock(), kSteps);
      EXPECT_TRUE(table.pull(all).equal(at::full({20, kServedDim}, kClients, at::kFloat)));
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(SparseOver, SaysWhatIsWrong) {
  const Service service(2, GetParam());
  const auto client = service.client();
  SparseTable table(*client, sparse());
  const auto keys = at::arange(4, at::kLong);
  EXPECT_THROW(table.pull(keys - 1), std::invalid_argument);
  EXPECT_THROW(table.pull(keys + 1'000'000'000), std::invalid_argument);
  EXPECT_THROW(table.pull(keys.to(at::kInt)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(table.push(keys, at::zeros({4, kServedDim + 1}), {})), std::invalid_argument);
  Work unknown_rule = table.push(keys, at::zeros({4, kServedDim}), {.rule = 5});
  EXPECT_THROW(unknown_rule.wait(), Error);
  Table as_dense = client->create(sparse());
  EXPECT_THROW(static_cast<void>(client->pull(as_dense, at::zeros({0}))), std::invalid_argument);
  TableSpec huge = sparse();
  huge.name = "huge", huge.sparse.capacity = std::int64_t{1} << 60;
  EXPECT_THROW(SparseTable(*client, huge), Error);
  EXPECT_EQ(table.pull(keys).abs().sum().item<float>(), 0);
  const auto status = client->status();
  EXPECT_NE(status[0].find("\"rows_evicted\":0"), std::string::npos) << status[0];
}

TEST_P(SparseOver, MalformedRequestsAreRefusedOrEndTheConnection) {
  const Service service(1, GetParam());
  const auto client = service.client();
  SparseTable table(*client, sparse());
  const auto keys = at::arange(2, at::kLong);
  table.push(keys, at::ones({2, kServedDim}), {.rule = kAddRows}).wait();
  const auto request = [](Verb verb, std::uint32_t rows, std::vector<std::int64_t> words) {
    const auto bytes = at::tensor(words).view(at::kByte);
    return Message{.header = {.verb = verb, .table = 1, .payload_bytes = bytes.nbytes(), .rows = rows},
                   .payload = bytes};
  };
  RawClient raw(service.address());
  EXPECT_EQ(raw.ask(request(Verb::kPull, 2, {0, 1})).header.status, Status::kDone);
  const auto refused = [&](Message message, const std::string& why) {
    const Message reply = raw.ask(std::move(message));
    EXPECT_EQ(reply.header.status, Status::kRefused);
    EXPECT_NE(reply.text.find(why), std::string::npos) << reply.text;
  };
  const std::vector<std::int64_t> row(kServedDim / 2);
  refused(request(Verb::kPull, 2, {0, -1}), "no key -1");
  refused(request(Verb::kPull, 1, {1'000'000'000}), "no key 1000000000");
  std::vector<std::int64_t> words{-5};
  words.insert(words.end(), row.begin(), row.end());
  refused(request(Verb::kPush, 1, words), "no key -5");
  refused(request(Verb::kExchange, 1, words), "no key -5");
  // These end the connection, since the server cannot find the beginning of the next request.
  const auto ended = [&](Message message) {
    RawClient other(service.address());
    EXPECT_THROW(other.ask(std::move(message)), ConnectionError);
  };
  ended(request(Verb::kPull, 3, {0, 1}));
  ended(request(Verb::kPush, 2, words));
  ended(request(Verb::kPull, 0xffffffff, {0, 1}));
  Message huge = request(Verb::kPush, 0xffffffff, {0, 1});
  huge.header.payload_bytes = std::uint64_t{0xffffffff} * (8 + 4 * kServedDim);
  RawClient last(service.address());
  huge.payload = at::zeros({16}, at::kByte);
  huge.header.flags = kInMemory;  // so that the payload is not sent
  EXPECT_EQ(last.ask(std::move(huge)).header.status, Status::kRefused);
  EXPECT_TRUE(table.pull(keys).equal(at::ones({2, kServedDim})));
}

INSTANTIATE_TEST_SUITE_P(Addresses, SparseOver, ::testing::Values("unix", "tcp"));

}  // namespace
}  // namespace phalanx::ps
