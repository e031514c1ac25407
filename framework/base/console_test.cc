// SPDX-License-Identifier: Apache-2.0
#include "framework/base/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "framework/base/files.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

class ConsoleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove(log_);
    configure_log({.file = log_, .stderr_threshold = LogLevel::kNone});
    before_ = ::signal(SIGPIPE, SIG_IGN);
  }
  void TearDown() override {
    configure_log({});
    ::signal(SIGPIPE, before_);
    for (const int file : {ours_, theirs_}) {
      if (file >= 0) ::close(file);
    }
  }

  void connect(int ours, int theirs) {
    ours_ = ours;
    theirs_ = theirs;
    ::fcntl(theirs, F_SETFL, O_NONBLOCK);
  }

  void make_pipe() {
    std::array<int, 2> files{};
    ASSERT_EQ(::pipe(files.data()), 0);
    connect(files[1], files[0]);
  }

  std::string read_all() const {
    std::string all;
    std::array<char, 4096> piece;
    for (ssize_t count; (count = ::read(theirs_, piece.data(), piece.size())) > 0;) {
      all.append(piece.data(), static_cast<std::size_t>(count));
    }
    return all;
  }

  int warnings() const {
    const std::string text = read_file(log_);
    int count = 0;
    for (auto at = text.find("WARNING"); at != text.npos; at = text.find("WARNING", at + 1)) ++count;
    return count;
  }

  // Writes far more than the other end and the console can hold together.
  static void write_much(Console& console) {
    for (int i = 0; i < 4000; ++i) console.write(std::string(99, 'x') + "\n");
  }

  const std::string log_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".log";
  int ours_ = -1, theirs_ = -1;
  void (*before_)(int) = nullptr;
};

TEST_F(ConsoleTest, WhatIsReadArrivesWholeAndInOrder) {
  make_pipe();
  Console console(ours_);
  std::string all, read;
  for (int i = 0; i < 20000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    console.write(line);
    all += line;
    if (i % 100 == 0) read += read_all();
  }
  console.flush();
  EXPECT_EQ(read + read_all(), all);
  EXPECT_EQ(warnings(), 0);
}

TEST_F(ConsoleTest, AnUnreadPipeBlocksNothingAndIsLoggedOnce) {
  make_pipe();
  Console console(ours_);
  write_much(console);
  console.flush(milliseconds(1));
  EXPECT_EQ(warnings(), 1);
  EXPECT_EQ(::fcntl(ours_, F_GETFL) & O_NONBLOCK, 0) << "others who have the pipe expect to wait";
}

TEST_F(ConsoleTest, ALateReaderGetsWhatWasKeptAndWhatFollows) {
  make_pipe();
  Console console(ours_);
  write_much(console);
  const std::string first = read_all();
  console.write("end\n");
  console.flush();
  const std::string rest = read_all();
  EXPECT_GT(rest.size(), Console::kMaxKept - 200);
  EXPECT_EQ((first + rest).find("xxx\nend\n"), (first + rest).size() - 8);
}

TEST_F(ConsoleTest, UnreadStandardErrorDoesNotBlockItsOwnWarning) {
  make_pipe();
  configure_log({});  // to standard error
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ours_, STDERR_FILENO);
  Console console(STDERR_FILENO);
  write_much(console);
  console.flush(milliseconds(1));
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  EXPECT_EQ(read_all().find("WARNING"), std::string::npos);
}

TEST_F(ConsoleTest, AClosedPipeIsLoggedOnce) {
  make_pipe();
  ::close(theirs_);
  theirs_ = -1;
  Console console(ours_);
  for (int i = 0; i < 3; ++i) console.write("text\n");
  EXPECT_FALSE(console.draw("bar"));
  console.flush();
  EXPECT_EQ(warnings(), 1);
  EXPECT_NE(read_file(log_).find("Broken pipe"), std::string::npos) << read_file(log_);
}

TEST_F(ConsoleTest, AFullDiskIsLoggedOnce) {
  ours_ = ::open("/dev/full", O_WRONLY);
  Console console(ours_);
  for (int i = 0; i < 3; ++i) console.write("text\n");
  EXPECT_EQ(warnings(), 1);
  EXPECT_NE(read_file(log_).find("No space left on device"), std::string::npos) << read_file(log_);
}

TEST_F(ConsoleTest, AnUnreadTerminalBlocksNothing) {
  int ours = -1, theirs = -1;
  ASSERT_EQ(::openpty(&theirs, &ours, nullptr, nullptr, nullptr), 0);
  connect(ours, theirs);
  Console console(ours_);
  write_much(console);
  console.flush(milliseconds(1));
  EXPECT_EQ(warnings(), 1);
}

TEST_F(ConsoleTest, ATerminalGetsNoEscapeSequencesButStyle) {
  int ours = -1, theirs = -1;
  ASSERT_EQ(::openpty(&theirs, &ours, nullptr, nullptr, nullptr), 0);
  connect(ours, theirs);
  Console console(ours_);
  console.write("\r\033[K\033[1mw\033]0;title\a\033[0m");
  const std::string expected = "\r\033[K\033[1mw\\x1b]0;title\\x07\033[0m";
  std::string shown;
  for (pollfd end{.fd = theirs_, .events = POLLIN, .revents = 0};
       shown.size() < expected.size() && ::poll(&end, 1, 10'000) > 0;) {
    shown += read_all();  // a terminal takes a moment
  }
  EXPECT_EQ(shown, expected);
}

TEST_F(ConsoleTest, APipeGetsEveryByte) {
  make_pipe();
  Console console(ours_);
  console.write("w\033]0;title\a");
  EXPECT_EQ(read_all(), "w\033]0;title\a");
}

TEST_F(ConsoleTest, AnUnreadSocketBlocksNothing) {
  std::array<int, 2> files{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()), 0);
  connect(files[0], files[1]);
  Console console(ours_);
  for (int i = 0; i < 10; ++i) write_much(console);
  console.flush(milliseconds(1));
  EXPECT_EQ(warnings(), 1);
}

TEST_F(ConsoleTest, ADrawingThatCannotBeShownNowIsLeftOut) {
  make_pipe();
  Console console(ours_);
  EXPECT_TRUE(console.draw("bar 1"));
  EXPECT_EQ(read_all(), "bar 1");
  write_much(console);
  EXPECT_FALSE(console.draw("bar 2"));
  const std::string rest = read_all();
  EXPECT_TRUE(console.draw("bar 3"));
  EXPECT_EQ((rest + read_all()).find("bar 2"), std::string::npos);
}

TEST_F(ConsoleTest, ADrawingForWhichThereIsNoRoomDoesNotComeLater) {
  make_pipe();
  ::fcntl(ours_, F_SETFL, O_NONBLOCK);
  while (::write(ours_, "x", 1) == 1) {
  }
  Console console(ours_);
  EXPECT_FALSE(console.draw("bar 1"));
  std::string all = read_all();
  console.write("line\n");
  all += read_all();
  EXPECT_EQ(all.substr(all.find_first_not_of('x')), "line\n");
}

TEST_F(ConsoleTest, FollowsARedirectedDescriptor) {
  make_pipe();
  Console console(ours_);
  console.write("before");
  std::array<int, 2> other{};
  ASSERT_EQ(::pipe(other.data()), 0);
  ::dup2(other[1], ours_);
  console.write("after");
  EXPECT_EQ(read_all(), "before");
  ::close(theirs_);
  theirs_ = other[0];
  ::fcntl(theirs_, F_SETFL, O_NONBLOCK);
  EXPECT_EQ(read_all(), "after");
  ::close(other[1]);
}

TEST_F(ConsoleTest, AForkedProcessDoesNotWriteWhatThisOneHasKept) {
  make_pipe();
  Console console(ours_);
  write_much(console);
  std::string before = read_all();
  const pid_t child = ::fork();
  if (child == 0) {
    console.write("of the child\n");
    console.flush();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_all(), "of the child\n");
}

}  // namespace
}  // namespace phalanx
