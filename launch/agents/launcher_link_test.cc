// SPDX-License-Identifier: Apache-2.0
// The test takes the place of the launcher.
#include "launch/agents/launcher_link.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using testing::becomes_true;
using ::testing::ElementsAre;

class Link : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    launcher_ = Descriptor(ends[0]);
    agent_ = Descriptor(ends[1]);
  }

  void tell(const std::string& text) {
    ASSERT_EQ(::send(launcher_.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  std::vector<std::int64_t> beats() {
    std::array<char, 4096> part;
    const ssize_t count = ::recv(launcher_.get(), part.data(), part.size(), MSG_DONTWAIT);
    return count > 0 ? reader_.read({part.data(), static_cast<std::size_t>(count)}).beats : std::vector<std::int64_t>();
  }

  static bool has_news(const LauncherLink& link) {
    pollfd news{.fd = link.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&news, 1, 0) == 1;
  }

  Descriptor launcher_, agent_;
  BeatReader reader_;
};

TEST_F(Link, SendsBeatsAndTakesAnswersWithoutItsOwner) {
  Console console(agent_.get());
  LauncherLink link(agent_.get(), console, std::chrono::seconds(3), 4);
  link.start();
  std::vector<std::int64_t> all;
  EXPECT_TRUE(becomes_true(
      [&] {  // for longer than the first lease
        for (const auto beat : beats()) {
          all.push_back(beat);
          tell("alive " + std::to_string(beat) + "\nended " + std::to_string(beat % 4) + "\n");
        }
        return all.size() >= 11;
      },
      20));
  EXPECT_TRUE(link.lease()->holds());
  EXPECT_TRUE(link.lease()->has_ended(3));
  EXPECT_FALSE(has_news(link)) << "beats and the ends of other ranks are no orders";
}

TEST_F(Link, PassesOrdersOnInTheirOrder) {
  Console console(agent_.get());
  LauncherLink link(agent_.get(), console, std::chrono::seconds(20), 4);
  link.start();
  tell("stop\nki");
  EXPECT_TRUE(becomes_true([&] { return has_news(link); }));
  EXPECT_THAT(link.take().orders, ElementsAre("stop"));
  EXPECT_FALSE(has_news(link));
  tell("ll\nend\n");
  EXPECT_TRUE(becomes_true([&] { return has_news(link); }));
  const auto news = link.take();
  EXPECT_THAT(news.orders, ElementsAre("kill", "end"));
  EXPECT_FALSE(news.ended || news.lease_is_over);
  launcher_.close();
  EXPECT_TRUE(becomes_true([&] { return has_news(link); }));
  EXPECT_TRUE(link.take().ended);
}

TEST_F(Link, SaysThatTheLeaseIsOver) {
  Console console(agent_.get());
  LauncherLink link(agent_.get(), console, milliseconds(50), 4);
  link.start();
  EXPECT_TRUE(becomes_true([&] { return has_news(link); }));
  EXPECT_TRUE(link.take().lease_is_over);
  EXPECT_TRUE(link.take().lease_is_over);
}

}  // namespace
}  // namespace phalanx
