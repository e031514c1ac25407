// SPDX-License-Identifier: Apache-2.0
// Cuts the connections between a client and its server.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"
#include "framework/ps/testing/durable.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

using enum testing::Rule;
using testing::filled;
using testing::kIntegers;
using testing::kSecret;
using testing::retrying;

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

TEST(Reconnect, UpdatesAppliedBeforeTheConnectionBrokeAreNotRepeated) {
  const Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(20)});
  Cuttable network(server.addresses()[0]);
  Client client(retrying(network.address()));
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

TEST(Reconnect, WithoutRetryABrokenConnectionIsAnImmediateError) {
  const Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(20)});
  Cuttable network(server.addresses()[0]);
  Client client(retrying(network.address(), 0, Seconds(0)));
  Table table = client.create(kIntegers);
  network.cut_after(1);
  EXPECT_THROW(client.push(table, filled(1), {.rule = kAdd}).wait(), CommError);
}

TEST(Reconnect, OthersWaitForAClientWhoseConnectionBrokeUntilItsGraceIsOver) {
  Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(1)});
  TableSpec spec = kIntegers;
  spec.clients = 2, spec.staleness = 0;
  Client client(retrying(server.addresses()[0]));
  Table table = client.create(spec);
  {
    Cuttable network(server.addresses()[0]);
    Client other(retrying(network.address(), 1, Seconds(0)));
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

TEST(Reconnect, OthersDoNotWaitForAClientThatHasLeft) {
  const Server server({.listen = {"127.0.0.1:0"}, .secret = kSecret, .grace = Seconds(1000)});
  TableSpec spec = kIntegers;
  spec.clients = 2, spec.staleness = 0;
  Client client(retrying(server.addresses()[0]));
  Table table = client.create(spec);
  {
    Client(retrying(server.addresses()[0], 1)).create(spec);
  }
  client.push(table, filled(1), {.rule = kAdd, .tick = true}).wait();
  auto values = filled(0);
  client.pull(table, values).wait();
  EXPECT_TRUE(values.equal(filled(1)));
}

}  // namespace
}  // namespace phalanx::ps
