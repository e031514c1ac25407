// What signals do to a launcher of local ranks.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tools/launch/exit_status.h"
#include "tools/launch/local.h"
#include "tools/launch/stop_signal.h"
#include "tools/launch/testing.h"

namespace phalanx {
namespace {

using testing::becomes_true;
using testing::is_running;
using testing::LauncherProcess;

class LocalSignals : public ::testing::Test {
 protected:
  LocalSignals() {
    std::filesystem::create_directory(scratch_.path("tmp"));
    ::setenv("TMPDIR", scratch_.path("tmp").c_str(), 1);
  }

  ~LocalSignals() override {
    EXPECT_TRUE(becomes_true([&] { return std::filesystem::is_empty(scratch_.path("tmp")); })) << "a folder is left";
    ::unsetenv("TMPDIR");
  }

  LauncherProcess in_background(const std::function<int(int)>& body) {
    return LauncherProcess(scratch_, [&] { return launch_local({.ranks = 2, .log_folder = scratch_.folder()}, body); });
  }

  void mark(const std::string& name) const { std::ofstream(scratch_.path(name)) << "here"; }
  bool marked(const std::string& name) const { return std::filesystem::exists(scratch_.path(name)); }
  bool both_ready() const {
    return becomes_true([&] { return marked("ready0") && marked("ready1"); });
  }

  // A rank that stops when it is asked to.
  int train(int rank) const {
    install_stop_signal(StopOn::kLauncher);
    mark("ready" + std::to_string(rank));
    while (!stop_requested()) ::usleep(1000);
    mark("stopped" + std::to_string(rank));
    return kInterrupted;
  }

  // A rank that does not listen.
  int hang(int rank) const {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    mark("ready" + std::to_string(rank));
    for (;;) ::pause();
  }

  testing::Scratch scratch_;
};

TEST_F(LocalSignals, InterruptStopsAllRanks) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    std::filesystem::remove(scratch_.path("ready0"));
    std::filesystem::remove(scratch_.path("ready1"));
    auto launcher = in_background([&](int rank) { return train(rank); });
    ASSERT_TRUE(both_ready());
    launcher.signal(signal);
    EXPECT_EQ(launcher.wait(), kInterrupted);
    EXPECT_TRUE(marked("stopped0") && marked("stopped1"));
    EXPECT_EQ(launcher.output(), "");
  }
}

TEST_F(LocalSignals, SecondInterruptKills) {
  auto launcher = in_background([&](int rank) { return hang(rank); });
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGINT);
  launcher.signal(SIGINT);  // still the first
  ::usleep(300'000);
  EXPECT_GE(launcher.descendants().size(), 3u);
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_EQ(launcher.output(), "");
}

TEST_F(LocalSignals, NothingOutlivesAKilledLauncher) {
  auto launcher = in_background([&](int rank) { return hang(rank); });
  ASSERT_TRUE(both_ready());
  const auto processes = launcher.descendants();
  EXPECT_GE(processes.size(), 3u);
  launcher.signal(SIGKILL);
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  for (const pid_t process : processes) EXPECT_TRUE(becomes_true([&] { return !is_running(process); })) << process;
}

}  // namespace
}  // namespace phalanx
