// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/sockets.h"
#include "framework/ps/checkpoints/checkpoints.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"
#include "framework/ps/server_lost.h"
#include "framework/ps/sparse/sparse_table.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

namespace fs = std::filesystem;

using enum testing::Rule;
using testing::filled;
using testing::kIntegers;
using testing::kSecret;
using testing::unix_address;

ClientOptions options_for(const std::string& address, int number = 0, Seconds retry = Seconds(20)) {
  return {.servers = {{address}}, .number = number, .secret = kSecret, .timeout = Seconds(20), .retry = retry};
}

// A temporary folder, removed at the end.
struct Folder {
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  const std::string path = ::testing::TempDir() + "ps-" + random_text().substr(0, 12);
};

// A proxy between a client and a server on TCP that can cut their connections at any byte, as a network failure does.
class Cuttable {
 public:
  explicit Cuttable(std::string server) : server_(std::move(server)), listener_(listen_at("127.0.0.1:0")) {
    thread_ = std::thread([this] { run(); });
  }
  ~Cuttable() {
    stopping_ = true;
    thread_.join();
  }

  std::string address() const { return address_of(listener_.get()); }

  /// Cuts all connections after `bytes` more bytes from the server.
  void cut_after(std::int64_t bytes) { left_ = bytes; }
  int cuts() const { return cuts_; }

 private:
  using Pair = std::pair<Descriptor, Descriptor>;  // to the client and to the server

  // Returns false if the connection has ended.
  bool forward(int from, int to, bool counts) {
    std::vector<char> bytes(4096);
    const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
    if (count < 0) return not_ready();
    if (count == 0) return false;
    const std::int64_t left = left_;
    const ssize_t passes = counts && left >= 0 ? std::min<ssize_t>(count, left) : count;
    for (ssize_t sent = 0; sent < passes;) {
      const ssize_t now = ::send(to, bytes.data() + sent, static_cast<std::size_t>(passes - sent), MSG_NOSIGNAL);
      if (now < 0 && !not_ready()) return false;
      sent += std::max<ssize_t>(now, 0);
    }
    if (!counts || left < 0) return true;
    left_ = left - passes;
    if (left_ > 0) return true;
    left_ = -1;
    ++cuts_;
    return false;
  }

  void run() {
    std::vector<Pair> pairs;
    while (!stopping_) {
      std::vector<pollfd> ready{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (const auto& [client, server] : pairs) {
        ready.push_back({.fd = client.get(), .events = POLLIN, .revents = 0});
        ready.push_back({.fd = server.get(), .events = POLLIN, .revents = 0});
      }
      ::poll(ready.data(), ready.size(), 10);
      std::vector<Pair> kept;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const int client = pairs[i].first.get(), server = pairs[i].second.get();
        const bool goes_on = (ready[1 + 2 * i].revents == 0 || forward(client, server, false)) &&
                             (ready[2 + 2 * i].revents == 0 || forward(server, client, true));
        if (goes_on) kept.push_back(std::move(pairs[i]));
      }
      pairs = std::move(kept);
      if (Descriptor client = accept_from(listener_.get()); client.valid()) {
        pairs.emplace_back(std::move(client), connect_to(server_, 5));
      }
    }
  }

  std::string server_;
  Descriptor listener_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::int64_t> left_ = -1;
  std::atomic<int> cuts_ = 0;
  std::thread thread_;
};

TEST(Durability, UpdatesAppliedBeforeTheConnectionBrokeAreNotRepeated) {
  const Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(20)});
  Cuttable network(server.addresses()[0]);
  Client client(options_for(network.address()));
  Table table = client.create(kIntegers);
  auto values = filled(0);
  std::int64_t sum = 0;
  for (int round = 1; round <= 60; ++round) {
    // This cuts the reply to the push, which has been applied by then, or the values.
    network.cut_after(round * 997 % 60'000 + 1);
    client.push(table, filled(round), {.rule = kAdd}).wait();
    sum += round;
    values.fill_(1000 * round);
    client.exchange(table, values, {.rule = kAdd}).wait();
    sum += 1000 * round;
    ASSERT_TRUE(values.equal(filled(sum))) << "round " << round;
  }
  EXPECT_GT(network.cuts(), 30);
  EXPECT_EQ(client.lost_updates(), 0);
}

TEST(Durability, WithoutRetryABrokenConnectionIsAnImmediateError) {
  const Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(20)});
  Cuttable network(server.addresses()[0]);
  Client client(options_for(network.address(), 0, Seconds(0)));
  Table table = client.create(kIntegers);
  network.cut_after(1);
  EXPECT_THROW(client.push(table, filled(1), {.rule = kAdd}).wait(), CommError);
}

TEST(Durability, OthersWaitForAClientWhoseConnectionBrokeUntilItsGraceIsOver) {
  Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(1)});
  TableSpec spec = kIntegers;
  spec.clients = 2, spec.staleness = 0;
  Client client(options_for(server.addresses()[0]));
  Table table = client.create(spec);
  {
    Cuttable network(server.addresses()[0]);
    Client other(options_for(network.address(), 1, Seconds(0)));
    Table its = other.create(spec);
    network.cut_after(1);
    EXPECT_THROW(other.push(its, filled(1), {.rule = kAdd}).wait(), CommError);
  }
  client.push(table, filled(1), {.rule = kAdd, .tick = true}).wait();
  auto values = filled(0);
  const auto begin = std::chrono::steady_clock::now();
  client.pull(table, values).wait();
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
  EXPECT_TRUE(values.equal(filled(2)));
}

TEST(Durability, OthersDoNotWaitForAClientThatHasLeft) {
  const Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(1000)});
  TableSpec spec = kIntegers;
  spec.clients = 2, spec.staleness = 0;
  Client client(options_for(server.addresses()[0]));
  Table table = client.create(spec);
  {
    Client(options_for(server.addresses()[0], 1)).create(spec);
  }
  client.push(table, filled(1), {.rule = kAdd, .tick = true}).wait();
  auto values = filled(0);
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(1)));
}

ServerOptions durable(const std::string& folder, const std::string& address, Seconds every = Seconds(1000)) {
  return {
      .listen = {address}, .secret = kSecret, .grace = Seconds(20), .checkpoint = {.folder = folder, .every = every}};
}

TEST(Durability, NothingIsLostWhenAServerEndsNormallyAndComesBack) {
  const Folder folder;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(folder.path, address));
  constexpr int kClients = 3, kRounds = 60;
  std::atomic<int> rounds = 0;
  std::vector<std::thread> clients;
  for (int number = 0; number < kClients; ++number) {
    clients.emplace_back([&, number] {
      try {
        Client client(options_for(address, number));
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
    server = std::make_unique<Server>(durable(folder.path, address));
  }
  for (auto& client : clients) client.join();
  Client client(options_for(address));
  Table table = client.create(kIntegers);
  auto sum = filled(0);
  client.pull(table, sum).wait();
  EXPECT_TRUE(sum.equal(filled(2 * kClients * kRounds))) << sum[0].item<std::int64_t>();
}

// A server that was killed resumes from an older copy of its folder.
TEST(Durability, UpdatesAfterTheCheckpointAreCountedAsLost) {
  const Folder folder, earlier;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(folder.path, address));
  Client client(options_for(address));
  Table table = client.create(kIntegers);
  for (int i = 0; i < 7; ++i) client.push(table, filled(1), {.rule = kAdd}).wait();
  server.reset();
  fs::copy(folder.path, earlier.path, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  server = std::make_unique<Server>(durable(folder.path, address));
  for (int i = 0; i < 4; ++i) client.push(table, filled(100), {.rule = kAdd}).wait();
  EXPECT_EQ(client.lost_updates(), 0);
  server.reset();
  server = std::make_unique<Server>(durable(earlier.path, address));
  auto values = filled(0);
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(7)));
  EXPECT_EQ(client.lost_updates(), 4);
  client.push(table, filled(1), {.rule = kAdd}).wait();
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(8)));
}

TEST(Durability, EmbeddingsAndTheStateOfTheirRuleAreRestored) {
  const Folder folder;
  const std::string address = unix_address();
  const TableSpec spec{.name = "rows", .rules = {"adagrad"}, .dim = 4, .sparse = {.capacity = 1000}};
  const at::Tensor keys = at::full({3}, 7, at::kLong), ones = at::full({3, 4}, 1.0F);
  at::Tensor rows = at::zeros({3, 4}), expected = at::zeros({3, 4});
  const auto push = [&](SparseTable& table) { table.push(keys, ones, {.scale = 0.1}).wait(); };
  auto server = std::make_unique<Server>(durable(folder.path, address));
  Client client(options_for(address)), other(options_for(address, 1));
  SparseTable table(client, spec);
  TableSpec twin = spec;
  twin.name = "twin";
  push(table), push(table);
  server.reset();
  server = std::make_unique<Server>(durable(folder.path, address));
  push(table);
  table.pull(keys, rows).wait();
  SparseTable unbroken(other, twin);
  for (int i = 0; i < 3; ++i) push(unbroken);
  unbroken.pull(keys, expected).wait();
  EXPECT_TRUE(rows.equal(expected)) << rows << expected;
  EXPECT_NE(rows[0][0].item<float>(), 0);
}

TEST(Durability, ClientsWhoseTicksWereLostDoNotWaitForEachOther) {
  const Folder folder, earlier;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(folder.path, address));
  TableSpec spec = kIntegers;
  spec.clients = 2, spec.staleness = 0;
  Client a(options_for(address, 0)), b(options_for(address, 1));
  Table of_a = a.create(spec), of_b = b.create(spec);
  const auto step = [&] {
    a.push(of_a, filled(1), {.rule = kAdd, .tick = true}).wait();
    b.push(of_b, filled(1), {.rule = kAdd, .tick = true}).wait();
  };
  step();
  server.reset();
  fs::copy(folder.path, earlier.path, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  server = std::make_unique<Server>(durable(folder.path, address));
  step();
  server.reset();
  server = std::make_unique<Server>(durable(earlier.path, address));
  auto first = filled(0), second = filled(0);
  Work one = a.pull(of_a, first), other = b.pull(of_b, second);
  one.wait();
  other.wait();
  EXPECT_TRUE(first.equal(filled(2)));
  EXPECT_TRUE(second.equal(filled(2)));
}

TEST(Durability, AServerThatComesBackWithoutTheTableIsAnErrorThatSaysSo) {
  const Folder folder, empty;
  const std::string address = unix_address();
  auto server = std::make_unique<Server>(durable(folder.path, address));
  Client client(options_for(address));
  Table table = client.create(kIntegers);
  server.reset();
  server = std::make_unique<Server>(durable(empty.path, address));
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
  Client client(options_for(address, 0, Seconds(1)));
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
  const Folder folder;
  const Server server(durable(folder.path, "127.0.0.1:0", Seconds(0.05)));
  Client client(options_for(server.addresses()[0]));
  Table table = client.create(kIntegers);
  Checkpoints reader(folder.path);
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
  Client client(options_for(server.addresses()[0]));
  Table table = client.create(kIntegers);
  client.push(table, filled(1), {.rule = kAdd}).wait();
  {
    Client other(options_for(server.addresses()[0], 1));
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

HostState state_of(std::int64_t value) {
  return {.description = "state " + std::to_string(value), .tensors = {{"1/values", filled(value)}}};
}

TEST(Checkpoints, KeepTwoAndLoadTheNewestCompleteOne) {
  const Folder folder;
  Checkpoints checkpoints(folder.path);
  std::string file;
  for (int i = 1; i <= 4; ++i) {
    Checkpoints::lay_out(state_of(i), file);
    checkpoints.write(file);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 4) << "two files of each";
  std::vector<std::string> refused;
  const auto newest = [&] {
    refused.clear();
    return Checkpoints(folder.path).newest([&](const std::string& why) { refused.push_back(why); });
  };
  ASSERT_TRUE(newest());
  EXPECT_EQ(newest()->description, "state 4");
  EXPECT_TRUE(newest()->tensors.at(0).second.equal(filled(4)));
  EXPECT_TRUE(refused.empty());

  const std::string last = folder.path + "/shards-0000000004.safetensors";
  {
    std::fstream damage(last, std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(1000);
    damage.put('\x55');
  }
  ASSERT_TRUE(newest());
  EXPECT_EQ(newest()->description, "state 3");
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find(last), std::string::npos) << refused[0];

  fs::resize_file(folder.path + "/shards-0000000003.safetensors", 100);
  EXPECT_FALSE(newest());
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_THROW(Server(durable(folder.path, "127.0.0.1:0")), Error) << "starting from the beginning would hide the loss";
}

TEST(Checkpoints, AFullDiskDoesNotEndTheServer) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  const Folder folder;
  // The file of the next checkpoint is a link to a disk without space.
  const std::string next = folder.path + "/shards-0000000001.safetensors.tmp";
  auto server = std::make_unique<Server>(durable(folder.path, "127.0.0.1:0", Seconds(0.05)));
  fs::create_symlink("/dev/full", next);
  Client client(options_for(server->addresses()[0]));
  Table table = client.create(kIntegers);
  client.push(table, filled(1), {.rule = kAdd}).wait();
  // The failed attempt removes the link, so the next one succeeds.
  for (int tries = 0; tries < 1000 && !fs::exists(folder.path + "/shards-0000000001.json"); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(fs::is_symlink(next));
  EXPECT_TRUE(Checkpoints(folder.path).newest([](const std::string& why) { ADD_FAILURE() << why; }));
  client.push(table, filled(1), {.rule = kAdd}).wait();
}

TEST(Checkpoints, AServerThatCannotWriteItsLastOneSaysWhy) {
  auto folder = std::make_unique<Folder>();
  Server server(durable(folder->path, "127.0.0.1:0", Seconds(3600)));
  {
    Client client(options_for(server.addresses()[0]));
    Table table = client.create(kIntegers);
    client.push(table, filled(1), {.rule = kAdd}).wait();
  }
  fs::remove_all(folder->path);
  try {
    server.stop();
    FAIL() << "the last checkpoint was lost without an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace phalanx::ps
