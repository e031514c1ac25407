// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/table_versions.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace phalanx::ps {
namespace {

// Calls `ask` with the client's end of a connection to a server that answers each request as `answer` says.
void with_server(const std::function<void(Message& reply)>& answer, const std::function<void(Channel& channel)>& ask) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets.data()), 0);
  Channel client(Descriptor(sockets[0]), nullptr), server(Descriptor(sockets[1]), nullptr);
  const std::jthread serving([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (auto request = server.receive()) {
        Message reply = *std::move(request);
        reply.header.status = Status::kDone;
        answer(reply);
        server.send(std::move(reply));
      }
      std::this_thread::yield();
    }
  });
  ask(client);
}

const std::atomic<bool> kNeverStops = false;

TEST(TableVersions, CountWhatAServerThatWasRestartedHasLost) {
  TableVersions versions;
  versions.add(1, "a");
  versions.add(2, "b");
  versions.advance(1, 10);
  versions.advance(2, 20);
  versions.advance(2, 15);  // replies may overtake each other
  versions.advance(3, 30);  // not a table of this client
  with_server([](Message& reply) { reply.header.version = reply.text == "a" ? 7 : 25; },
              [&](Channel& channel) { versions.ask(channel, after(Seconds(30)), kNeverStops); });
  EXPECT_EQ(versions.lost_updates(), 3);
}

TEST(TableVersions, MergeKeepsTablesThatWereRemovedInTheMeantimeRemoved) {
  TableVersions versions;
  versions.add(1, "a");
  versions.add(2, "b");
  versions.advance(1, 10);
  versions.advance(2, 10);
  TableVersions renewed = versions;
  const auto lose_four = [](Message& reply) { reply.header.version = 6; };
  with_server(lose_four, [&](Channel& channel) { renewed.ask(channel, after(Seconds(30)), kNeverStops); });
  versions.remove(2);
  versions.merge(renewed);
  EXPECT_EQ(versions.lost_updates(), 8);
  // Only table 1 is left, at version 6, and no more of its updates are lost.
  int asked = 0;
  with_server(
      [&](Message& reply) {
        ++asked;
        reply.header.version = 6;
      },
      [&](Channel& channel) { versions.ask(channel, after(Seconds(30)), kNeverStops); });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(versions.lost_updates(), 8);
}

TEST(TableVersions, ReportATableThatTheServerDoesNotHave) {
  TableVersions versions;
  versions.add(1, "a");
  const auto refuse = [](Message& reply) {
    reply.header.status = Status::kRefused;
    reply.text = "no such table";
  };
  with_server(refuse, [&](Channel& channel) {
    try {
      versions.ask(channel, after(Seconds(30)), kNeverStops);
      ADD_FAILURE() << "the missing table was not reported";
    } catch (const TableMissing& error) {
      EXPECT_STREQ(error.what(), "it was restarted without a checkpoint that holds table \"a\": no such table");
    }
  });
}

}  // namespace
}  // namespace phalanx::ps
