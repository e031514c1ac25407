// SPDX-License-Identifier: Apache-2.0
// The test takes the place of the launcher.
#include "launch/agents/agent.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <string>

#include "framework/base/descriptor.h"
#include "framework/base/files.h"
#include "framework/comm/launch/host_lease.h"
#include "launch/failure/failure.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;
using testing::becomes_true;

// An agent with one rank of four, which writes a file once it knows that rank 3 has ended, and another one if it is
// there for much longer than a lease.
class AnAgent : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    socket_ = Descriptor(ends[0]);
    const Descriptor input(ends[1]);
    pid_ = ::fork();
    if (pid_ > 0) return;
    ::dup2(input.get(), STDIN_FILENO);
    const AgentOrder order{.first_rank = 0, .ranks = 1, .ranks_of_job = 4, .rendezvous = "file:///nowhere"};
    ::_exit(run_agent({.log_folder = scratch_.folder(), .goes_on = true, .lost_after = 1}, order, [this](int) {
      while (!is_known_to_have_ended(3)) ::usleep(1000);
      write_atomically(scratch_.path("known"), is_known_to_have_ended(2) ? "2 and 3" : "3");
      ::sleep(8);
      write_atomically(scratch_.path("late"), "");
      return 0;
    }));
  }

  // Reads what the agent has sent. Returns the beats.
  std::vector<std::int64_t> beats() {
    std::array<char, 4096> part;
    const ssize_t count = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
    return count > 0 ? reader_.read({part.data(), static_cast<std::size_t>(count)}).beats : std::vector<std::int64_t>();
  }

  void answer() {
    for (const auto beat : beats()) tell("alive " + std::to_string(beat));
  }

  void tell(const std::string& order) {
    EXPECT_GT(::send(socket_.get(), (order + "\n").data(), order.size() + 1, MSG_NOSIGNAL), 0);
  }

  bool has(const std::string& file) const { return std::filesystem::exists(scratch_.path(file)); }

  bool has_ended() { return ::waitpid(pid_, &status_, WNOHANG) == pid_; }

  testing::Scratch scratch_;
  Descriptor socket_;
  BeatReader reader_;
  pid_t pid_ = 0;
  int status_ = 0;
};

TEST_F(AnAgent, EndsItsRanksWhenItsLeaseIsOverAndWritesNothing) {
  const auto start = Clock::now();
  while (Clock::now() - start < seconds(1)) {
    answer();
    ::usleep(1000);
  }
  tell("ended 3");
  EXPECT_TRUE(becomes_true([&] { return has("known"); }));
  EXPECT_EQ(read_file(scratch_.path("known")), "3");
  EXPECT_FALSE(has_ended());
  EXPECT_TRUE(becomes_true([&] { return has_ended(); }, 10));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(5200)) << "answers have extended the lease";
  ASSERT_TRUE(WIFEXITED(status_)) << status_;
  EXPECT_EQ(WEXITSTATUS(status_), kWithoutLease);
  EXPECT_TRUE(read_failures(scratch_.folder()).empty());
  EXPECT_FALSE(has("late"));
}

}  // namespace
}  // namespace phalanx
