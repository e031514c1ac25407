// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/checksum.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/ps/client/client.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/replication/replica_message.h"
#include "framework/ps/shards/shard_host.h"
#include "framework/ps/testing/raw_client.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

using enum testing::Rule;
using ::testing::HasSubstr;
using testing::kSecret;
using testing::RawClient;
using testing::Service;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

at::Tensor ones() { return at::full({4}, 1.0F); }

std::uint32_t create_table(RawClient& client, std::int64_t elements) {
  CreateRequest request{.table = {.name = "t", .elements = elements, .rules = {"copy"}}};
  return client.ask({.header = {.verb = Verb::kCreate}, .text = config::dump(request)}).header.table;
}

Message push_of_ones(std::uint32_t table, std::uint32_t sum) {
  Message push{.header = {.verb = Verb::kPush,
                          .table = table,
                          .dtype = static_cast<std::uint8_t>(at::kFloat),
                          .payload_bytes = ones().nbytes()},
               .payload = ones()};
  push.header.set_sum(sum);
  return push;
}

TEST(Checksums, AreOfValuesOnly) {
  Header request{.verb = Verb::kPush}, reply{.verb = Verb::kPull, .status = Status::kDone, .waited_for = 3};
  EXPECT_EQ(damage_of(request, ones()), "") << "it has none";
  request.set_sum(checksum_of(ones()));
  reply.set_sum(checksum_of(ones()) ^ 1U);
  EXPECT_EQ(request.sum(), checksum_of(ones()));
  EXPECT_EQ(reply.waited_for, 3);
  EXPECT_EQ(damage_of(request, ones()), "");
  EXPECT_THAT(damage_of(reply, ones()), StartsWith("16 bytes were damaged on the way: they were sent with CRC-32C "));
  EXPECT_EQ(checksum_of({}), 0U);
}

TEST(Checksums, OfDamagedRequestsAreRefused) {
  const Service service(1, "unix");
  RawClient client(service.address());
  const auto table = create_table(client, 4);
  const Message refused = client.ask(push_of_ones(table, checksum_of(ones()) ^ 4U));
  EXPECT_EQ(refused.header.status, Status::kRefused);
  EXPECT_THAT(refused.text, StartsWith("16 bytes were damaged on the way"));

  Message pull{.header = {.verb = Verb::kPull, .table = table, .dtype = static_cast<std::uint8_t>(at::kFloat)}};
  EXPECT_FALSE(client.ask(pull).header.summed()) << "nobody has asked for it";
  pull.header.set_sum(0);
  Message values = client.ask(pull);
  EXPECT_TRUE(values.header.summed());
  EXPECT_EQ(values.header.sum(), checksum_of(at::zeros({4}))) << "the refused update changes nothing";
  EXPECT_EQ(damage_of(values.header, values.payload), "");

  EXPECT_EQ(client.ask(push_of_ones(table, checksum_of(ones()))).header.status, Status::kDone);
  values = client.ask(pull);
  EXPECT_EQ(values.header.sum(), checksum_of(ones()));
}

TEST(Checksums, GoWithRequestsToOtherServersOfAChain) {
  const auto sent = [](std::uint32_t sum) {
    return encoded({.kind = ReplicaMessage::Kind::kApply, .client = {.job = "raw"}, .request = push_of_ones(1, sum)});
  };
  EXPECT_EQ(decoded(sent(checksum_of(ones()))).request.header.sum(), checksum_of(ones()));
  EXPECT_THAT(
      [&] { decoded(sent(checksum_of(ones()) ^ 1U)); },
      ThrowsMessage<ConnectionError>(HasSubstr("another server sent a request of which 16 bytes were damaged")));
}

// Stands between a client and a server, and takes the checksums of the server's answers away.
class WithoutSums {
 public:
  explicit WithoutSums(const std::string& server)
      : listener_(listen_at("127.0.0.1:0")), thread_([this, server] { pass_on(server); }) {}
  ~WithoutSums() {
    ends_ = true;
    thread_.join();
  }

  std::string address() const { return address_of(listener_.get()); }

 private:
  static Channel channel_over(Descriptor socket) {
    return {std::move(socket), [](const Message& begun) {
              return at::zeros({static_cast<std::int64_t>(begun.header.payload_bytes)}, at::kByte);
            }};
  }

  // Serves one client, until that or the server closes its connection.
  void pass_on(const std::string& server) {
    Descriptor accepted;
    while (!(accepted = accept_from(listener_.get())).valid()) {
      if (ends_) return;
      pause();
    }
    Channel to_client = channel_over(std::move(accepted)), to_server = channel_over(connect_to(server, 10));
    try {
      for (; !ends_; pause()) {
        while (auto request = to_client.receive()) to_server.send(*std::move(request));
        while (auto reply = to_server.receive()) {
          reply->header.flags &= static_cast<std::uint8_t>(~kSummed);
          to_client.send(*std::move(reply));
        }
        to_client.flush();
        to_server.flush();
      }
    } catch (const ConnectionError&) {
      return;  // one of them has left
    }
  }

  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

  const Descriptor listener_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

TEST(Checksums, MustNotBeMissingInAnswersWithValues) {
  const Service service(1, "tcp");
  for (const std::int64_t elements : {4, 100'003}) {
    SCOPED_TRACE(elements);
    const WithoutSums link(service.address());
    Client client({.servers = {{link.address()}}, .secret = kSecret, .timeout = Seconds(30), .checksums = true});
    Table table = client.create({.name = std::to_string(elements), .elements = elements, .rules = {"copy"}});
    auto values = at::full({elements}, 1.0F);
    client.push(table, values, {.rule = kCopy}).wait();
    EXPECT_THAT([&] { client.pull(table, values).wait(); },
                ThrowsMessage<CommError>(HasSubstr("has no checksum, although the request asked for one")));
  }
}

// Values travel through the connection, or are accessed in memory.
TEST(Checksums, DoNotChangeValues) {
  for (const std::string transport : {"unix", "tcp"}) {
    const Service service(2, transport);
    ClientOptions options{.secret = kSecret, .timeout = Seconds(30), .checksums = true};
    for (int i = 0; i < 2; ++i) options.servers.push_back({service.address(i)});
    Client client(options);
    for (const std::int64_t elements : {1, 10, 100'003}) {
      Table table = client.create({.name = std::to_string(elements), .elements = elements, .rules = {"copy", "add"}});
      const auto numbers = at::arange(elements, at::kFloat);
      auto got = at::full({elements}, -1, at::kFloat);
      client.push(table, numbers, {.rule = kCopy}).wait();
      client.pull(table, got).wait();
      EXPECT_TRUE(at::equal(got, numbers)) << transport << " " << elements;
      client.exchange(table, got, {.rule = kAdd}).wait();
      EXPECT_TRUE(at::equal(got, numbers * 2)) << transport << " " << elements;
    }
  }
}

}  // namespace
}  // namespace phalanx::ps
