// SPDX-License-Identifier: Apache-2.0
// Tests of servers that forget the clients of a process that is lost.
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "framework/base/error.h"
#include "framework/ps/client/client.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/server/server.h"
#include "framework/ps/testing/raw_client.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

using testing::filled;
using testing::kAdd;
using testing::kIntegers;
using testing::kSecret;
using testing::RawClient;

// Clients wait for others at each clock, and for ten minutes for one whose connection has broken.
class LostProcess : public ::testing::Test {
 protected:
  LostProcess()
      : server_({.listen = {testing::unix_address()}, .secret = kSecret, .grace = Seconds(600), .presences = "ranks"}) {
    spec_.clients = 2;
    spec_.staleness = 0;
  }

  std::unique_ptr<Client> client(const std::string& job, int number) {
    return std::make_unique<Client>(ClientOptions{.servers = {server_.addresses()},
                                                  .job = job,
                                                  .number = number,
                                                  .secret = kSecret,
                                                  .timeout = Seconds(30),
                                                  .leaves = false});
  }

  // Returns the values after this client's first clock, which client 1 must have reached, or be forgotten.
  at::Tensor read_after_tick(Client& own) {
    Table table = own.create(spec_);
    own.push(table, filled(0), {.rule = kAdd, .tick = true}).wait();
    const at::Tensor values = at::zeros({spec_.elements}, at::kLong);
    own.pull(table, values).wait();
    return values;
  }

  // Returns true once the client has lost a server, and false after 30 s.
  static bool becomes_lost(const Client& client) {
    const auto deadline = after(Seconds(30));
    while (!client.has_lost_server()) {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  Server server_;
  TableSpec spec_ = kIntegers;
};

TEST_F(LostProcess, OthersDoNotWaitForItsClients) {
  const auto own = client("default", 0);
  auto lost = client("default", 1), presence = client("ranks 1", 1);
  (void)lost->create(spec_);
  lost.reset();
  presence.reset();
  EXPECT_TRUE(at::equal(read_after_tick(*own), filled(0)));
}

TEST_F(LostProcess, ItsConnectionsMayEndInAnyOrder) {
  const auto own = client("default", 0);
  auto lost = client("default", 1), presence = client("ranks 1", 1);
  Table table = lost->create(spec_);
  lost->push(table, filled(3), {.rule = kAdd}).wait();
  presence.reset();
  lost.reset();
  EXPECT_TRUE(at::equal(read_after_tick(*own), filled(3)));
}

TEST_F(LostProcess, UpdatesCountIfTheyHaveArrivedWhole) {
  const auto own = client("default", 0);
  const Table table = own->create(spec_);
  auto presence = client("ranks 1", 1);
  auto whole = std::make_unique<RawClient>(server_.addresses()[0], 1);
  const at::Tensor update = filled(5);
  const Header push{.verb = Verb::kPush,
                    .table = 1,
                    .rule = kAdd,
                    .dtype = static_cast<std::uint8_t>(at::kLong),
                    .payload_bytes = update.nbytes()};
  whole->send({.header = push, .payload = update});
  whole->send_header(push);
  presence.reset();
  whole.reset();
  EXPECT_TRUE(at::equal(read_after_tick(*own), filled(5)));
}

TEST_F(LostProcess, OtherProcessesLearnOfIt) {
  const auto other = client("ranks 1", 0), of_another_job = client("ranks 2", 5);
  auto lost = client("ranks 1", 1);
  EXPECT_FALSE(other->has_lost_server());
  lost.reset();
  server_.wait_until_left_or_lost("ranks 1");
  EXPECT_TRUE(server_.has_lost("ranks 1"));
  EXPECT_TRUE(becomes_lost(*other));
  EXPECT_THROW(client("ranks 1", 2), CommError);
  EXPECT_FALSE(of_another_job->has_lost_server());
  EXPECT_FALSE(server_.has_lost("ranks 2"));
}

TEST_F(LostProcess, AProcessThatLeavesIsNotLost) {
  auto one = client("ranks 1", 0), other = client("ranks 1", 1);
  one->leave();
  one.reset();
  EXPECT_FALSE(other->has_lost_server());
  other->leave();
  other.reset();
  server_.wait_until_left_or_lost("ranks 1");
  EXPECT_FALSE(server_.has_lost("ranks 1"));
}

TEST_F(LostProcess, ItsNumberMayBelongToAnotherProcessLater) {
  auto lost = client("ranks 1", 1);
  lost.reset();
  server_.wait_until_left_or_lost("ranks 1");
  const auto presence = client("ranks 2", 1), next = client("default", 1), own = client("default", 0);
  Table table = next->create(spec_);
  Table same = own->create(spec_);
  own->push(same, filled(0), {.rule = kAdd, .tick = true}).wait();
  const at::Tensor values = at::zeros({spec_.elements}, at::kLong);
  Work read = own->pull(same, values);
  EXPECT_FALSE(read.done()) << "waits for a client that is connected";
  next->push(table, filled(2), {.rule = kAdd, .tick = true}).wait();
  read.wait();
  EXPECT_TRUE(at::equal(values, filled(2)));
}

}  // namespace
}  // namespace phalanx::ps
