// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "launch/exit_status.h"
#include "launch/local/launch_local.h"
#include "launch/signals/stop_signal.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/local_launches.h"

namespace phalanx {
namespace {

using testing::becomes_true;
using testing::is_running;
using testing::LauncherProcess;

// Tests of signals sent to a launcher.
class LocalSignals : public testing::Launches {
 protected:
  LauncherProcess in_background(const std::function<int(int)>& body, const StopPolicy& stop_policy = {}) {
    return LauncherProcess(scratch_, [&] {
      return launch_local({.ranks = 2,
                           .log_folder = scratch_.folder(),
                           .stop_policy = stop_policy,
                           .describe_saved = [] { return std::string("step 7 is kept"); }},
                          body);
    });
  }

  void mark(const std::string& name) const { std::ofstream(scratch_.path(name)) << "here"; }
  bool marked(const std::string& name) const { return std::filesystem::exists(scratch_.path(name)); }
  bool both_ready() const {
    return becomes_true([&] { return marked("ready0") && marked("ready1"); });
  }

  // Runs a rank that stops when asked.
  int train(int rank) const {
    install_stop_signal(StopOn::kLauncher);
    mark("ready" + std::to_string(rank));
    while (!stop_requested()) ::usleep(1000);
    mark("stopped" + std::to_string(rank));
    return kInterrupted;
  }

  // Runs a rank that ignores requests to stop.
  int hang(int rank) const {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    mark("ready" + std::to_string(rank));
    for (;;) ::pause();
  }
};

TEST_F(LocalSignals, InterruptStopsAllRanks) {
  const std::pair<int, std::string> answers[] = {{SIGINT, "Stopping; press Ctrl-C again to end it now"},
                                                 {SIGTERM, "SIGTERM: stopping"},
                                                 {SIGUSR1, "SIGUSR1: stopping"},
                                                 {SIGHUP, "SIGHUP: stopping"}};
  for (const auto& [signal, answer] : answers) {
    std::filesystem::remove(scratch_.path("ready0"));
    std::filesystem::remove(scratch_.path("ready1"));
    auto launcher = in_background([&](int rank) { return train(rank); });
    ASSERT_TRUE(both_ready());
    launcher.signal(signal);
    EXPECT_EQ(launcher.wait(), kInterrupted);
    EXPECT_TRUE(marked("stopped0") && marked("stopped1"));
    EXPECT_TRUE(launcher.output().ends_with(answer + "\n")) << launcher.output();
  }
}

TEST_F(LocalSignals, WhatTheLauncherIgnoresDoesNotStopItsRanks) {
  LauncherProcess launcher(scratch_, [&] {
    for (const int signal : {SIGHUP, SIGINT}) ::signal(signal, SIG_IGN);
    return launch_local({.ranks = 2, .log_folder = scratch_.folder()}, [&](int rank) { return train(rank); });
  });
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGHUP);
  launcher.signal(SIGINT);
  ::usleep(300'000);  // so that a second SIGINT would count
  launcher.signal(SIGINT);
  launcher.signal(SIGUSR1);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_EQ(launcher.output(), "SIGUSR1: stopping\n");
}

TEST_F(LocalSignals, SecondInterruptKills) {
  auto launcher = in_background([&](int rank) { return hang(rank); });
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGINT);
  launcher.signal(SIGINT);  // still counts as the first
  ::usleep(300'000);
  EXPECT_GE(launcher.descendants().size(), 3u);
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_EQ(launcher.output(),
            "Stopping; press Ctrl-C again to end it now\n"
            "Ended at once, as requested, before the run had stopped; step 7 is kept\n");
}

TEST_F(LocalSignals, AreAnsweredAtOnceEvenWhileARankHangs) {
  auto launcher = in_background([&](int rank) { return hang(rank); }, {.after_step = true});
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGINT);
  EXPECT_TRUE(becomes_true(
      [&] { return launcher.output() == "Stopping after this step; press Ctrl-C again to end it now\n"; }));
}

TEST_F(LocalSignals, SigtermLeavesALimitedTime) {
  auto launcher = in_background([&](int rank) { return rank == 0 ? train(rank) : hang(rank); },
                                {.after_step = true, .grace = std::chrono::milliseconds(500)});
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGTERM);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_EQ(launcher.output(),
            "SIGTERM: stopping after this step, within 0.5 s (launch.grace)\n"
            "Ended 0.5 s after SIGTERM (launch.grace), before the run had stopped; step 7 is kept\n");
}

TEST_F(LocalSignals, CtrlCOfARankThatSavesItselfHasNoLimit) {
  const auto slow = [&](int rank) {
    install_stop_signal(StopOn::kLauncher);
    mark("ready" + std::to_string(rank));
    while (!stop_requested()) ::usleep(1000);
    ::usleep(500'000);
    return static_cast<int>(kInterrupted);
  };
  auto launcher = in_background(slow, {.after_step = true, .grace = std::chrono::milliseconds(50)});
  ASSERT_TRUE(both_ready());
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(), kInterrupted);
  EXPECT_EQ(launcher.output(), "Stopping after this step; press Ctrl-C again to end it now\n");
}

TEST_F(LocalSignals, LeaveNoProcessAfterAKilledLauncher) {
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
