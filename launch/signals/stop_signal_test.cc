// SPDX-License-Identifier: Apache-2.0
#include "launch/signals/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "launch/exit_status.h"

namespace phalanx {
namespace {

// Runs each test in its own process, since a stop cannot be undone.
#define EXPECT_IN_PROCESS(statement, status) \
  EXPECT_EXIT(                               \
      {                                      \
        handle_signals();                    \
        statement;                           \
        ::_exit(100);                        \
      },                                     \
      ::testing::ExitedWithCode(status), "")

// The tests may have been started with ignored signals, for example by nohup.
void handle_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) ::signal(signal, SIG_DFL);
}

void leave(bool as_expected) { ::_exit(as_expected ? 0 : 1); }

TEST(StopSignal, IsRequestedByASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    EXPECT_IN_PROCESS(
        {
          install_stop_signal(StopOn::kInterrupt);
          if (stop_requested()) leave(false);
          ::raise(signal);
          leave(stop_requested());
        },
        0);
  }
}

TEST(StopSignal, SecondInterruptEndsTheProcess) {
  EXPECT_IN_PROCESS(
      {
        install_stop_signal(StopOn::kInterrupt);
        ::raise(SIGINT);
        ::usleep(250'000);
        ::raise(SIGINT);
      },
      kInterrupted);
}

TEST(StopSignal, IsAnsweredAtOnceByAProcessThatPrints) {
  EXPECT_EXIT(
      {
        handle_signals();
        install_stop_signal(StopOn::kInterrupt, {.after_step = true}, true);
        ::raise(SIGINT);
        ::_exit(0);
      },
      ::testing::ExitedWithCode(0), "Stopping after this step; press Ctrl-C again to end it now");
}

TEST(StopSignal, IsHandledIfStandardErrorIsClosed) {
  EXPECT_IN_PROCESS(
      {
        int ends[2];
        if (::pipe(ends) != 0) leave(false);
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        install_stop_signal(StopOn::kInterrupt, {.after_step = true}, true);
        ::raise(SIGINT);
        leave(stop_requested());
      },
      0);
}

TEST(StopSignal, SigtermLeavesALimitedTime) {
  EXPECT_EXIT(
      {
        install_stop_signal(StopOn::kInterrupt, {.after_step = true, .grace = std::chrono::seconds(1)}, true);
        ::raise(SIGTERM);
        for (;;) ::pause();
      },
      ::testing::ExitedWithCode(kInterrupted),
      "SIGTERM: stopping after this step, within 1 s \\(launch.grace\\)\n"
      "Ended 1 s after SIGTERM \\(launch.grace\\), before the run had stopped; what it has learned");
}

TEST(StopSignal, OneInterruptMayArriveTwice) {
  EXPECT_IN_PROCESS(
      {
        install_stop_signal(StopOn::kInterrupt);
        ::raise(SIGINT);
        ::raise(SIGINT);
        leave(stop_requested());
      },
      0);
}

TEST(StopSignal, RanksOfALauncherLeaveTheTerminalsSignalsToIt) {
  EXPECT_IN_PROCESS(
      {
        install_stop_signal(StopOn::kLauncher);
        ::raise(SIGINT);
        ::raise(SIGHUP);
        if (stop_requested()) leave(false);
        ::raise(SIGTERM);
        leave(stop_requested());
      },
      0);
}

TEST(StopSignal, IgnoredSignalStaysIgnored) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    EXPECT_IN_PROCESS(
        {
          ::signal(signal, SIG_IGN);
          install_stop_signal(StopOn::kInterrupt);
          ::raise(signal);
          leave(!stop_requested());
        },
        0);
  }
}

TEST(StopSignal, ALauncherReachesItsRanksEvenIfTheyIgnoreSignals) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    EXPECT_IN_PROCESS(
        {
          ::signal(signal, SIG_IGN);
          install_stop_signal(StopOn::kLauncher);
          ::raise(signal);
          leave(stop_requested());
        },
        0);
  }
}

}  // namespace
}  // namespace phalanx
