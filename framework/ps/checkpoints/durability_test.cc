// SPDX-License-Identifier: Apache-2.0
// Ends servers that keep their state, and starts them again.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/checkpoints/checkpoints.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"
#include "framework/ps/server_lost.h"
#include "framework/ps/sparse/sparse_table.h"
#include "framework/ps/testing/durable.h"
#include "framework/ps/testing/service.h"
#include "framework/testing/scratch.h"

namespace phalanx::ps {
namespace {

namespace fs = std::filesystem;

using enum testing::Rule;
using testing::durable;
using testing::filled;
using testing::kIntegers;
using testing::kSecret;
using testing::retrying;
using testing::unix_address;

TEST(Durability, NothingIsLostWhenAServerEndsNormallyAndComesBack) {
  const phalanx::testing::Scratch scratch;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(scratch.folder(), address));
  constexpr int kClients = 3, kRounds = 60;
  std::atomic<int> rounds = 0;
  std::vector<std::thread> clients;
  for (int number = 0; number < kClients; ++number) {
    clients.emplace_back([&, number] {
      try {
        Client client(retrying(address, number));
        Table table = client.create(kIntegers);
        for (int round = 0; round < kRounds; ++round, ++rounds) {
          auto values = filled(1);
          client.push(table, values, {.rule = kAdd}).wait();
          client.exchange(table, values, {.rule = kAdd}).wait();
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        EXPECT_EQ(client.lost_updates(), 0);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "client " << number << ": " << error.what();
      }
    });
  }
  for (int restart = 1; restart <= 3; ++restart) {
    while (rounds < restart * 30) std::this_thread::yield();
    server.reset();
    server = std::make_unique<Server>(durable(scratch.folder(), address));
  }
  for (auto& client : clients) client.join();
  Client client(retrying(address));
  Table table = client.create(kIntegers);
  auto sum = filled(0);
  client.pull(table, sum).wait();
  EXPECT_TRUE(sum.equal(filled(2 * kClients * kRounds))) << sum[0].item<std::int64_t>();
}

// A server that was killed resumes from an older copy of its folder.
TEST(Durability, UpdatesAfterTheCheckpointAreCountedAsLost) {
  const phalanx::testing::Scratch scratch, earlier;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(scratch.folder(), address));
  Client client(retrying(address));
  Table table = client.create(kIntegers);
  for (int i = 0; i < 7; ++i) client.push(table, filled(1), {.rule = kAdd}).wait();
  server.reset();
  fs::copy(scratch.folder(), earlier.folder(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  server = std::make_unique<Server>(durable(scratch.folder(), address));
  for (int i = 0; i < 4; ++i) client.push(table, filled(100), {.rule = kAdd}).wait();
  EXPECT_EQ(client.lost_updates(), 0);
  server.reset();
  server = std::make_unique<Server>(durable(earlier.folder(), address));
  auto values = filled(0);
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(7)));
  EXPECT_EQ(client.lost_updates(), 4);
  client.push(table, filled(1), {.rule = kAdd}).wait();
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(8)));
}

TEST(Durability, EmbeddingsAndTheStateOfTheirRuleAreRestored) {
  const phalanx::testing::Scratch scratch;
  const std::string address = unix_address();
  const TableSpec spec{.name = "rows", .rules = {"adagrad"}, .dim = 4, .sparse = {.capacity = 1000}};
  const at::Tensor keys = at::full({3}, 7, at::kLong), ones = at::full({3, 4}, 1.0F);
  at::Tensor rows = at::zeros({3, 4}), expected = at::zeros({3, 4});
  const auto push = [&](SparseTable& table) { table.push(keys, ones, {.scale = 0.1}).wait(); };
  auto server = std::make_unique<Server>(durable(scratch.folder(), address));
  Client client(retrying(address)), other(retrying(address, 1));
  SparseTable table(client, spec);
  TableSpec twin = spec;
  twin.name = "twin";
  push(table), push(table);
  server.reset();
  server = std::make_unique<Server>(durable(scratch.folder(), address));
  push(table);
  table.pull(keys, rows).wait();
  SparseTable unbroken(other, twin);
  for (int i = 0; i < 3; ++i) push(unbroken);
  unbroken.pull(keys, expected).wait();
  EXPECT_TRUE(rows.equal(expected)) << rows << expected;
  EXPECT_NE(rows[0][0].item<float>(), 0);
}

TEST(Durability, ClientsWhoseTicksWereLostDoNotWaitForEachOther) {
  const phalanx::testing::Scratch scratch, earlier;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(scratch.folder(), address));
  TableSpec spec = kIntegers;
  spec.clients = 2, spec.staleness = 0;
  Client a(retrying(address, 0)), b(retrying(address, 1));
  Table of_a = a.create(spec), of_b = b.create(spec);
  const auto step = [&] {
    a.push(of_a, filled(1), {.rule = kAdd, .tick = true}).wait();
    b.push(of_b, filled(1), {.rule = kAdd, .tick = true}).wait();
  };
  step();
  server.reset();
  fs::copy(scratch.folder(), earlier.folder(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  server = std::make_unique<Server>(durable(scratch.folder(), address));
  step();
  server.reset();
  server = std::make_unique<Server>(durable(earlier.folder(), address));
  auto first = filled(0), second = filled(0);
  Work one = a.pull(of_a, first), other = b.pull(of_b, second);
  one.wait();
  other.wait();
  EXPECT_TRUE(first.equal(filled(2)));
  EXPECT_TRUE(second.equal(filled(2)));
}

TEST(Durability, AServerThatComesBackWithoutTheTableIsAnErrorThatSaysSo) {
  const phalanx::testing::Scratch scratch, empty;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(scratch.folder(), address));
  Client client(retrying(address));
  Table table = client.create(kIntegers);
  server.reset();
  server = std::make_unique<Server>(durable(empty.folder(), address));
  try {
    client.push(table, filled(1), {.rule = kAdd}).wait();
    FAIL();
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("without a checkpoint that holds table \"t\""), std::string::npos)
        << error.what();
  }
}

TEST(Durability, AServerThatStaysAwayIsAnErrorWhenTheRetryIsOver) {
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(ServerOptions{.listen = {address}, .secret = kSecret});
  Client client(retrying(address, 0, Seconds(1)));
  Table table = client.create(kIntegers);
  server.reset();
  try {
    client.push(table, filled(1), {.rule = kAdd}).wait();
    FAIL();
  } catch (const ServerLost& error) {
    EXPECT_NE(std::string(error.what()).find("has not come back within 1 s"), std::string::npos) << error.what();
  }
}

TEST(Durability, CheckpointsAreWrittenWhileTheServerServes) {
  const phalanx::testing::Scratch scratch;
  const Server server(durable(scratch.folder(), "127.0.0.1:0", Seconds(0.05)));
  Client client(retrying(server.addresses()[0]));
  Table table = client.create(kIntegers);
  Checkpoints reader(scratch.folder());
  std::int64_t sum = 0, seen = 0;
  for (int tries = 0; tries < 1000 && seen < 3; ++tries) {
    client.push(table, filled(1), {.rule = kAdd}).wait();
    ++sum;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto state = reader.newest([](const std::string&) {});  // a checkpoint may be removed while it is read
    if (!state) continue;
    const at::Tensor& values = state->tensors.at(0).second;
    const auto value = values[0].item<std::int64_t>();
    EXPECT_TRUE(values.equal(filled(value)));
    EXPECT_LE(value, sum);
    if (value > 0) ++seen;
  }
  EXPECT_EQ(seen, 3);
}

TEST(Durability, AJobIsClearedOnlyWhileNoOtherClientUsesIt) {
  const Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret});
  Client client(retrying(server.addresses()[0]));
  Table table = client.create(kIntegers);
  client.push(table, filled(1), {.rule = kAdd}).wait();
  {
    Client other(retrying(server.addresses()[0], 1));
    EXPECT_THROW(other.clear(), Error);
    EXPECT_THROW(client.clear(), Error);
  }
  auto values = filled(0);
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(1)));
  client.clear();
  EXPECT_THROW(client.pull(table, values).wait(), Error);
  table = client.create(kIntegers);
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(0)));
}

}  // namespace
}  // namespace phalanx::ps
