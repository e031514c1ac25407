// SPDX-License-Identifier: Apache-2.0
#include "launch/local/launch_local.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/print_to_console.h"
#include "launch/signals/stop_signal.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using testing::becomes_true;
using testing::is_running;
using testing::LauncherProcess;
using testing::text_of;

// Gives each test its own log folder and TMPDIR. No files may be left in TMPDIR.
class Launches : public ::testing::Test {
 protected:
  Launches() {
    std::filesystem::create_directory(scratch_.path("tmp"));
    ::setenv("TMPDIR", scratch_.path("tmp").c_str(), 1);
  }

  ~Launches() override {
    EXPECT_TRUE(becomes_true([&] { return std::filesystem::is_empty(scratch_.path("tmp")); })) << "a folder is left";
    ::unsetenv("TMPDIR");
  }

  testing::Scratch scratch_;
};

class LaunchLocal : public Launches {
 protected:
  ~LaunchLocal() override { EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left"; }

  int launch(int ranks, const std::function<int(int)>& body) {
    ::testing::internal::CaptureStderr();
    const auto start = std::chrono::steady_clock::now();
    const int status = launch_local({.ranks = ranks, .log_folder = log_folder_}, body);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    error_ = ::testing::internal::GetCapturedStderr();
    return status;
  }

  std::string log_folder_ = scratch_.folder();
  std::string error_;
  double seconds_ = 0;
};

std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value ? value : "";
}

TEST_F(LaunchLocal, RunsEachRankInItsEnvironment) {
  const int status = launch(3, [&](int rank) {
    const std::string rendezvous = variable("PHALANX_RENDEZVOUS");
    const bool right = variable("RANK") == std::to_string(rank) && variable("WORLD_SIZE") == "3" &&
                       variable("LOCAL_RANK") == std::to_string(rank) && variable("LOCAL_WORLD_SIZE") == "3" &&
                       variable("PHALANX_LAUNCHER") == "local" && rendezvous.starts_with("file:///");
    if (rank == 0) std::ofstream(rendezvous.substr(7)) << "all may write here";
    return right ? 0 : 1;
  });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "");
  EXPECT_EQ(variable("RANK"), "");
}

TEST_F(LaunchLocal, OnlyRank0Prints) {
  std::ofstream(scratch_.path("rank1.log")) << "before\n";
  launch(2, [](int rank) {
    std::fprintf(stderr, "error of %d\n", rank);
    if (rank == 1) std::printf("output of 1\n");
    return std::getchar() == EOF ? 0 : 1;
  });
  EXPECT_EQ(error_, "error of 0\n");
  EXPECT_EQ(text_of(scratch_.path("rank1.log")), "before\nerror of 1\noutput of 1\n");
}

TEST_F(LaunchLocal, LeavesTheOutputOfItsRanksAloneIfAsked) {
  ::testing::internal::CaptureStderr();
  const Verdict verdict = run_local({.ranks = 2, .log_folder = log_folder_, .redirect_output = false}, [](int rank) {
    if (rank == 1) std::fprintf(stderr, "error of 1\n");
    if (rank == 1) throw std::runtime_error("it failed");
    return 0;
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error of 1\n") << "and no report of the failure";
  ASSERT_TRUE(verdict.cause.has_value());
  EXPECT_EQ(verdict.cause->rank, 1);
  EXPECT_EQ(verdict.cause->message, "it failed");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("rank1.log")));
}

TEST_F(LaunchLocal, EveryRankReachesTheConsole) {
  EXPECT_EQ(launch(2,
                   [](int rank) {
                     if (rank == 1) print_to_console("rank 0 hangs");
                     return 0;
                   }),
            kDone);
  EXPECT_EQ(error_, "rank 0 hangs\n");
}

TEST_F(LaunchLocal, RanksInheritNoDescriptorOfTheLauncher) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const int status = launch(2, [&](int rank) {
    const auto here = open_files();
    // One more file for the standard error captured by this test; and two for the console, if the rank has a log.
    const auto expected = before + (rank == 0 ? 1 : 3);
    if (here > expected) std::fprintf(stderr, "%td, was %td\n", here, before);
    return here <= expected ? 0 : 1;
  });
  EXPECT_EQ(status, 0) << error_;
  EXPECT_EQ(open_files(), before);
}

TEST_F(LaunchLocal, AnExceptionIsReportedOnce) {
  const int status = launch(2, [](int rank) -> int {
    if (rank == 1) throw std::runtime_error("loss is not finite");
    ::usleep(20'000);
    throw CommError(CommError::Kind::kPeerLost, "rank 1 is gone");
  });
  EXPECT_EQ(status, kFailed);
  EXPECT_NE(error_.find("Rank 1 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ loss is not finite\n"), std::string::npos) << error_;
  EXPECT_NE(error_.find("Log: " + scratch_.path("rank1.log")), std::string::npos) << error_;
  EXPECT_NE(error_.find("1 other rank ended with it."), std::string::npos) << error_;
  EXPECT_EQ(error_.find("is gone"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AReasonIsReportedEvenIfTheLogFolderIsFull) {
  log_folder_ = scratch_.path("logs");
  std::filesystem::create_directory(log_folder_);
  const int status = launch(2, [&](int rank) -> int {
    if (rank == 0) return 0;
    std::filesystem::remove_all(log_folder_);
    throw std::runtime_error("step-00000001.tmp/state: No space left on device");
  });
  EXPECT_EQ(status, kFailed);
  EXPECT_NE(error_.find("│ step-00000001.tmp/state: No space left on device\n"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("without giving a reason"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AConfigErrorIsAUsageError) {
  EXPECT_EQ(launch(2, [](int) -> int { throw ConfigError("no such model"); }), kUsage);
}

TEST_F(LaunchLocal, AnUnmetExpectationHasAStatusOfItsOwn) {
  EXPECT_EQ(launch(2, [](int) -> int { throw ExpectationError("expect.test.loss.max: wanted <= 1, got 2"); }),
            kExpectationFailed);
  EXPECT_NE(error_.find("│ expect.test.loss.max: wanted <= 1, got 2\n"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, UnexpectedExitStatusIsADeath) {
  EXPECT_EQ(launch(2, [](int rank) { return rank == 1 ? 7 : 0; }), kRankDied);
  EXPECT_NE(error_.find("exit status 7"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AKilledRankIsTheCauseEvenIfItsEchoComesFirst) {
  const int status = launch(2, [&](int rank) -> int {
    if (rank == 0) {
      write_failure(scratch_.folder(), {.rank = 0, .message = "rank 1 is gone", .secondary = true, .time = 1});
      return kFailed;
    }
    std::fprintf(stderr, "what it last did\n");
    ::usleep(50'000);
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(status, kRankDied);
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
  EXPECT_NE(error_.find("out-of-memory"), std::string::npos) << error_;
  EXPECT_NE(error_.find("Last lines of its log:\n│   what it last did\n"), std::string::npos) << error_;
  EXPECT_LT(seconds_, 2);
}

TEST_F(LaunchLocal, RankThatHangsIsAskedAndThenKilled) {
  const int status = launch(3, [&](int rank) {
    if (rank == 0) ::raise(SIGABRT);
    if (rank == 2) ::signal(SIGTERM, SIG_IGN);
    if (rank == 1) install_stop_signal(StopOn::kLauncher);
    while (!stop_requested()) ::usleep(1000);
    std::ofstream(scratch_.path("stopped")) << rank;
    return static_cast<int>(kInterrupted);
  });
  EXPECT_EQ(status, kRankDied);
  EXPECT_EQ(text_of(scratch_.path("stopped")), "1");
  EXPECT_NE(error_.find("Rank 0 of 3"), std::string::npos) << error_;
  EXPECT_NE(error_.find("SIGABRT"), std::string::npos) << error_;
  EXPECT_NE(error_.find("2 other ranks ended with it."), std::string::npos) << error_;
  EXPECT_GT(seconds_, 2);
  EXPECT_LT(seconds_, 10);
  std::printf("death of a rank to the end of a job that hangs: %.2f s\n", seconds_);
}

// Ranks that go on without those that are lost, as far as the launcher can see.
class GoesOn : public LaunchLocal {
 protected:
  int launch(int ranks, const std::function<int(int)>& body, bool threads = false) {
    ::testing::internal::CaptureStderr();
    const LocalLaunch options{
        .ranks = ranks, .threads = threads, .log_folder = log_folder_, .goes_on = true, .lost_after = 0.3};
    const auto start = std::chrono::steady_clock::now();
    const int status = launch_local(options, [&](int rank) {
      if (trains_) note_training(log_folder_);
      return body(rank);
    });
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    error_ = ::testing::internal::GetCapturedStderr();
    return status;
  }

  // Waits until the reason for the end of a rank is known, and returns it. Another rank may have noted it by then.
  std::string reason_of(int rank) const {
    std::string reason;
    (void)becomes_true([&] {
      for (const auto& failures : {read_failures(log_folder_), lost_notes(log_folder_)}) {
        for (const auto& failure : failures) {
          if (failure.rank == rank) reason = failure.message;
        }
      }
      return !reason.empty();
    });
    return reason;
  }

  // Returns what a rank returns that goes on without `lost`, if that rank has ended for a reason that contains `text`.
  int go_on_without(int lost, const std::string& text) const {
    const std::string reason = reason_of(lost);
    if (reason.find(text) == std::string::npos) return kFailed;
    mark_lost(log_folder_, {.rank = lost, .message = reason});
    return kDone;
  }

  bool trains_ = true;  // training has begun
};

TEST_F(GoesOn, ALostRankDoesNotEndTheOthers) {
  EXPECT_EQ(launch(3,
                   [this](int rank) {
                     if (rank == 1) ::raise(SIGKILL);
                     const int status = go_on_without(1, "killed by signal 9 (SIGKILL)");
                     ::usleep(2'500'000);  // longer than the others have if they do not go on
                     return status;
                   }),
            kDone)
      << error_;
  EXPECT_EQ(error_, "");
  EXPECT_TRUE(lost_ranks(log_folder_).empty());
  EXPECT_TRUE(read_failures(log_folder_).empty());
}

TEST_F(GoesOn, ALaterFailureIsNotBlamedOnTheLostRank) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     (void)go_on_without(1, "SIGKILL");
                     throw std::runtime_error("out of paper");
                   }),
            kFailed);
  EXPECT_NE(error_.find("Rank 0 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ out of paper\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossThatNobodySurvivesIsTheCause) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     (void)reason_of(1);
                     throw CommError(CommError::Kind::kPeerLost, "rank 1 is gone");
                   }),
            kRankDied);
  EXPECT_NE(error_.find("Rank 1 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossThatNobodyNoticesDoesNotSpoilTheEnd) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     return reason_of(1).empty() ? kFailed : kDone;
                   }),
            kDone);
  EXPECT_EQ(error_,
            "Rank 1 of 2 was lost when the others did not need it any more: It was killed by signal 9 (SIGKILL).\n");
}

TEST_F(GoesOn, AnErrorThatNobodyNoticesIsTheCause) {
  EXPECT_EQ(launch(2,
                   [](int rank) -> int {
                     if (rank == 1) throw std::runtime_error("out of paper");
                     return kDone;
                   }),
            kFailed);
  EXPECT_NE(error_.find("│ out of paper\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossOfAllRanksIsTheCause) {
  EXPECT_EQ(launch(2, [](int) -> int { return ::raise(SIGKILL); }), kRankDied);
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
}

TEST_F(GoesOn, ARankThatIsStoppedForTooLongIsKilled) {
  EXPECT_EQ(launch(2,
                   [this](int rank) {
                     if (rank == 0) ::raise(SIGSTOP);
                     return go_on_without(0, "stopped for 0.3 s (faults.lost_after)");
                   }),
            kDone)
      << error_;
}

TEST_F(GoesOn, ALostRankThatHangsIsKilledWhenTheOthersHaveEnded) {
  EXPECT_EQ(launch(2,
                   [this](int rank) -> int {
                     if (rank == 1) {
                       ::signal(SIGTERM, SIG_IGN);
                       for (;;) ::pause();
                     }
                     mark_lost(log_folder_, {.rank = 1});
                     return kDone;
                   }),
            kDone)
      << error_;
}

TEST_F(GoesOn, ARankThatGivesUpOnOneThatHangsEndsTheJob) {
  for (const bool threads : {false, true}) {
    EXPECT_EQ(launch(
                  2,
                  [](int rank) -> int {
                    if (rank == 0) throw CommError(CommError::Kind::kTimeout, "waited 4 s for rank 1");
                    for (;;) ::pause();
                  },
                  threads),
              kFailed);
    EXPECT_NE(error_.find("│ waited 4 s for rank 1\n"), std::string::npos) << error_;
    EXPECT_LT(seconds_, 30) << threads;
  }
}

TEST_F(GoesOn, ARankThatHasEndedTheJobIsTheCauseEvenIfItIsNotedAsLost) {
  EXPECT_EQ(launch(3,
                   [this](int rank) -> int {
                     if (rank == 0) throw CommError(CommError::Kind::kTimeout, "waited 4 s for rank 2");
                     if (rank == 1 && !reason_of(0).empty()) ::usleep(500'000);
                     if (rank == 1) mark_lost(log_folder_, {.rank = 0});
                     return kInterrupted;
                   }),
            kFailed);
  EXPECT_NE(error_.find("│ waited 4 s for rank 2\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ALossBeforeTrainingEndsTheOthers) {
  trains_ = false;
  EXPECT_EQ(launch(2,
                   [](int rank) -> int {
                     if (rank == 1) ::raise(SIGKILL);
                     for (;;) ::pause();  // until rank 1 comes
                   }),
            kRankDied);
  EXPECT_NE(error_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << error_;
}

TEST_F(GoesOn, AnErrorOfAllRanksEndsAll) {
  EXPECT_EQ(launch(2, [](int) -> int { throw ConfigError("no such model"); }), kUsage);
  EXPECT_NE(error_.find("│ no such model\n"), std::string::npos) << error_;
}

TEST_F(GoesOn, ThreadsGoOnToo) {
  EXPECT_EQ(launch(
                2,
                [this](int rank) -> int {
                  if (rank == 1) throw std::runtime_error("out of paper");
                  const int status = go_on_without(1, "out of paper");
                  ::usleep(4'000'000);  // longer than they have if they do not go on
                  return status;
                },
                /*threads=*/true),
            kDone)
      << error_;
}

TEST_F(GoesOn, ALostThreadThatHangsDoesNotKeepTheProcess) {
  EXPECT_EQ(launch(
                2,
                [this](int rank) -> int {
                  if (rank == 0) mark_lost(log_folder_, {.rank = 1});
                  while (rank == 1) ::pause();
                  return kDone;
                },
                /*threads=*/true),
            kDone)
      << error_;
}

TEST_F(LaunchLocal, EachChildIsPreparedBeforeItsRankBegins) {
  int prepared = 0;
  ::testing::internal::CaptureStderr();
  const LocalLaunch options{.ranks = 2, .log_folder = log_folder_, .prepare = [&] { ++prepared; }};
  const int status = launch_local(options, [&](int) { return prepared == 1 ? 0 : 1; });
  error_ = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(prepared, 0) << "the launcher itself is no rank";
}

TEST_F(LaunchLocal, FailuresOfAnEarlierJobAreDropped) {
  write_failure(scratch_.folder(), {.rank = 0, .message = "old"});
  EXPECT_EQ(launch(2, [](int) { return 0; }), kDone);
}

TEST_F(LaunchLocal, ALogThatCannotBeOpenedIsReported) {
  std::filesystem::create_directory(scratch_.path("rank1.log"));
  EXPECT_EQ(launch(2, [](int) { return 0; }), kFailed);
  EXPECT_NE(error_.find("rank1.log: Is a directory"), std::string::npos) << error_;
}

TEST_F(LaunchLocal, AddsLittleTime) {
  EXPECT_EQ(launch(2, [](int) { return 0; }), kDone);
  std::printf("start and end of 2 ranks that do nothing: %.1f ms\n", seconds_ * 1e3);
  EXPECT_LT(seconds_, 2);
}

// Tests of ranks that are threads of one child process.
class LaunchThreads : public LaunchLocal {
 protected:
  int launch(int ranks, const std::function<int(int)>& body, const std::function<void()>& prepare = {}) {
    ::testing::internal::CaptureStderr();
    const LocalLaunch options{.ranks = ranks, .threads = true, .log_folder = log_folder_, .prepare = prepare};
    const int status = launch_local(options, body);
    error_ = ::testing::internal::GetCapturedStderr();
    return status;
  }
};

TEST_F(LaunchThreads, ShareOneChildProcess) {
  std::atomic<int> arrived = 0;
  const pid_t launcher = ::getpid();
  const int status = launch(3, [&](int) {
    ++arrived;
    return becomes_true([&] { return arrived == 3; }) && ::getpid() != launcher ? 0 : 1;
  });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(arrived, 0) << "the child has its own memory";
}

TEST_F(LaunchThreads, ArePreparedOnceBeforeTheyBegin) {
  std::atomic<int> prepared = 0;
  EXPECT_EQ(launch(2, [&](int) { return prepared == 1 ? 0 : 1; }, [&] { ++prepared; }), kDone);
}

TEST_F(LaunchThreads, AFailureToPrepareIsReportedAsThatOfRank0) {
  EXPECT_EQ(launch(2, [](int) { return 0; }, [] { throw std::runtime_error("no data"); }), kFailed);
  EXPECT_NE(error_.find("Rank 0 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ no data\n"), std::string::npos) << error_;
}

TEST_F(LaunchThreads, AnExceptionIsReportedWithItsRank) {
  EXPECT_EQ(launch(2,
                   [](int rank) -> int {
                     if (rank == 1) throw ConfigError("no such model");
                     return 0;
                   }),
            kUsage);
  EXPECT_NE(error_.find("Rank 1 of 2 on "), std::string::npos) << error_;
  EXPECT_NE(error_.find("│ no such model\n"), std::string::npos) << error_;
}

TEST_F(LaunchThreads, HaveTheMostSeriousOfTheirStatuses) {
  const auto status_of = [&](const std::vector<int>& statuses) {
    return launch(static_cast<int>(statuses.size()),
                  [&](int rank) { return statuses[static_cast<std::size_t>(rank)]; });
  };
  EXPECT_EQ(status_of({kDone, kTimeUp}), kTimeUp);
  EXPECT_EQ(status_of({kTimeUp, kInterrupted}), kInterrupted);
  EXPECT_EQ(status_of({kInterrupted, kFailed, kDone}), kFailed);
  EXPECT_EQ(status_of({kDone, kExpectationFailed}), kExpectationFailed);
  EXPECT_EQ(status_of({kFailed, kUsage}), kUsage);
  EXPECT_EQ(status_of({kDone, 7}), kRankDied) << "an unexpected status is a death";
}

TEST_F(LaunchThreads, AThreadThatHangsDoesNotHideTheFailureOfAnother) {
  const int status = launch(2, [](int rank) -> int {
    if (rank == 0) throw std::runtime_error("out of paper");
    for (;;) ::pause();
  });
  EXPECT_EQ(status, kFailed);
  EXPECT_NE(error_.find("out of paper"), std::string::npos) << error_;
}

// Tests of signals sent to a launcher.
class LocalSignals : public Launches {
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

// Ranks whose places others take. Newcomers end with status 0 once they are ranks.
class Replaces : public LaunchLocal {
 protected:
  // Rank 0 lets all newcomers take part, and ends after `awaited` have done so or been given up.
  int launch(int replacements, int awaited, const std::function<int(const Newcomer&)>& newcomer) {
    ::testing::internal::CaptureStderr();
    const LocalLaunch options{.ranks = 2,
                              .log_folder = log_folder_,
                              .goes_on = true,
                              .replacements = replacements,
                              .replacement_delay = 0.02};
    const int status = launch_local(options, [&](int rank) -> int {
      const MeetingFolder meeting(::getenv(kMeetingFolder));
      if (const char* self = ::getenv(kNewcomer)) {
        EXPECT_EQ(parse_newcomer(self).number, rank);
        EXPECT_EQ(::getenv("RANK"), std::to_string(rank));
        return newcomer(parse_newcomer(self));
      }
      note_training(log_folder_);
      if (rank == 1) {
        if (!leaves_) ::raise(SIGKILL);
        mark_lost(log_folder_, {.rank = 1, .message = "its replica has lost a rank"});
        return kDone;
      }
      for (int number = 2; number < 2 + awaited; ++number) {
        if (!becomes_true([&] { return !meeting.waiting().empty() || meeting.has_ended(number); })) return kFailed;
        const auto waiting = meeting.waiting();
        if (waiting.empty()) continue;
        meeting.note_part(meeting.invite({0}, waiting));
        mark_lost(log_folder_, {.rank = waiting[0].in_place_of, .message = "lost"});
      }
      return kDone;
    });
    error_ = ::testing::internal::GetCapturedStderr();
    return status;
  }

  static int take_part(const Newcomer& self) {
    const MeetingFolder meeting(::getenv(kMeetingFolder));
    meeting.wait(self);
    return becomes_true([&] { return meeting.takes_part(self.number); }) ? kDone : kFailed;
  }

  bool leaves_ = false;  // rank 1 leaves instead of being killed
};

TEST_F(Replaces, StartsAProcessInPlaceOfALostRank) {
  const int status = launch(
      1, 1, [](const Newcomer& self) { return self.in_place_of == 1 && self.place == 1 ? take_part(self) : kFailed; });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "");
}

// Its end is no failure.
TEST_F(Replaces, StartsAProcessInPlaceOfARankThatLeaves) {
  leaves_ = true;
  const int status =
      launch(1, 1, [](const Newcomer& self) { return self.in_place_of == 1 ? take_part(self) : kFailed; });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "");
}

TEST_F(Replaces, StartsAnotherOneForANewcomerThatFails) {
  const int status = launch(2, 2, [](const Newcomer& self) -> int {
    if (self.number == 2) throw std::runtime_error("out of paper");
    return self.in_place_of == 1 && self.place == 1 ? take_part(self) : kFailed;
  });
  EXPECT_EQ(status, kDone) << error_;
  EXPECT_EQ(error_, "Rank 2, which was to take the place of a lost one, has failed: out of paper\n");
}

TEST_F(Replaces, TellsTheRanksOfANewcomerThatLeavesWithoutAFailure) {
  for (const int leaves : {kDone, kInterrupted}) {
    const int status = launch(1, 1, [&](const Newcomer& self) {
      mark_lost(log_folder_, {.rank = self.in_place_of, .message = "lost"});
      return leaves;
    });
    EXPECT_EQ(status, kDone) << "rank 0 has waited for it in vain: " << error_;
    EXPECT_EQ(error_, "");
  }
}

TEST_F(Replaces, GivesUpAfterTheLastReplacement) {
  const int status = launch(2, 2, [](const Newcomer&) -> int { throw std::runtime_error("out of paper"); });
  EXPECT_NE(error_.find("No process takes the place of rank 1: 2 have been started already"), std::string::npos)
      << error_;
  EXPECT_EQ(status, kDone) << error_;
}

TEST_F(Replaces, EndsNewcomersThatStillWait) {
  const int status = launch(1, 1, [](const Newcomer& self) {
    const MeetingFolder meeting(::getenv(kMeetingFolder));
    meeting.note_end(self.number);  // rank 0 gives it up
    ::pause();
    return kFailed;
  });
  EXPECT_EQ(status, kDone) << error_;
}

}  // namespace
}  // namespace phalanx
