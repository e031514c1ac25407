// SPDX-License-Identifier: Apache-2.0
// The test takes the place of the launcher.
#include "launch/agents/agent.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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

// An agent with the first ranks of four, whose launcher is the test.
class AnAgent : public ::testing::Test {
 protected:
  void TearDown() override {
    if (pid_ <= 0 || has_ended_) return;
    ::kill(pid_, SIGKILL);  // its ranks end with it
    ::waitpid(pid_, nullptr, 0);
  }

  void start(int ranks, const std::function<int(int rank)>& body, int replacements = 0) {
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    socket_ = Descriptor(ends[0]);
    const Descriptor input(ends[1]);
    pid_ = ::fork();
    if (pid_ > 0) return;
    ::dup2(input.get(), STDIN_FILENO);
    const AgentOrder order{.first_rank = 0, .ranks = ranks, .ranks_of_job = 4, .rendezvous = "file:///nowhere"};
    ::_exit(run_agent({.log_folder = scratch_.folder(), .goes_on = true, .lost_after = 1, .replacements = replacements},
                      order, body));
  }

  // Reads what the agent has sent. Returns the beats, and keeps the other lines.
  std::vector<std::int64_t> beats() {
    std::array<char, 4096> part;
    const ssize_t count = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (count <= 0) return {};
    const auto read = reader_.read({part.data(), static_cast<std::size_t>(count)});
    lines_.insert(lines_.end(), read.lines.begin(), read.lines.end());
    return read.beats;
  }

  bool has_said(const std::string& line) {
    answer();
    return std::ranges::find(lines_, line) != lines_.end();
  }

  void answer() {
    for (const auto beat : beats()) tell("alive " + std::to_string(beat));
  }

  void tell(const std::string& order) {
    EXPECT_GT(::send(socket_.get(), (order + "\n").data(), order.size() + 1, MSG_NOSIGNAL), 0);
  }

  bool has(const std::string& file) const { return std::filesystem::exists(scratch_.path(file)); }

  bool has_ended() { return has_ended_ = has_ended_ || ::waitpid(pid_, &status_, WNOHANG) == pid_; }

  testing::Scratch scratch_;
  Descriptor socket_;
  BeatReader reader_;
  std::vector<std::string> lines_;
  pid_t pid_ = 0;
  int status_ = 0;
  bool has_ended_ = false;
};

TEST_F(AnAgent, EndsItsRanksWhenItsLeaseIsOverAndWritesNothing) {
  start(1, [this](int) {
    while (!is_known_to_have_ended(3)) ::usleep(1000);
    write_atomically(scratch_.path("known"), is_known_to_have_ended(2) ? "2 and 3" : "3");
    ::sleep(8);
    write_atomically(scratch_.path("late"), "");
    return 0;
  });
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

// Rank 1 fails, and a file that the agent reads to learn why does not answer, as one on a shared disk that hangs.
TEST_F(AnAgent, SendsBeatsWhileItWaitsForTheDisk) {
  const std::string file = scratch_.path("rank9.failure");
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  note_training(scratch_.folder());
  start(2, [](int rank) {
    if (rank == 0) ::pause();
    return 3;
  });
  Descriptor writer;  // can be opened once the agent waits for it
  ASSERT_TRUE(becomes_true([&] {
    answer();
    writer = Descriptor(::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return writer.valid();
  }));
  answer();
  std::size_t later = 0;
  EXPECT_TRUE(becomes_true([&] { return (later += beats().size()) >= 3; }, 10));
  std::filesystem::remove(file);
  writer.close();
  socket_.close();  // the launcher is gone, so the agent ends
  EXPECT_TRUE(becomes_true([&] { return has_ended(); }));
}

// Nothing would end a process that is started after the last signal to the others.
TEST_F(AnAgent, StartsNoProcessOnceItEndsItsRanks) {
  std::filesystem::create_directory(scratch_.path("meeting"));
  start(
      1,
      [this](int rank) {
        if (rank > 0) write_atomically(scratch_.path("started"), "");
        ::pause();
        return 0;
      },
      /*replacements=*/1);
  tell("end\nstart 4 3 3 0 1 0");
  EXPECT_TRUE(becomes_true([&] { return has_said("lost 4"); }));
  tell("kill");
  EXPECT_TRUE(becomes_true([&] { return has_ended(); }));
  EXPECT_FALSE(has("started"));
}

}  // namespace
}  // namespace phalanx
