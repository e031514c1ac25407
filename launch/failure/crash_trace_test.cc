// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/crash_trace.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

[[gnu::noinline]] void divide_the_indivisible() { ::raise(SIGFPE); }

[[gnu::noinline]] int overflow_the_stack(int depth) {  // NOLINT(misc-no-recursion)
  volatile char much[4096] = {};
  much[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow_the_stack(depth + 1) + much[0];
}

class CrashTrace : public ::testing::Test {
 protected:
  // Returns the signal that has ended a process which calls `crash`.
  int signal_of(const std::function<void()>& crash) {
    std::ofstream(log_path(scratch_.folder(), 3)) << "the log\n";
    const pid_t child = ::fork();
    if (child == 0) {
      trace_crashes(scratch_.folder(), 3, log_path(scratch_.folder(), 3), false);
      crash();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizers print traces of their own";
#endif
  }

  bool has_frame(const std::string& name) const {
    const auto frames = crash_frames(scratch_.folder(), 3);
    return std::ranges::any_of(frames, [&](const auto& frame) { return frame.find(name) != std::string::npos; });
  }

  testing::Scratch scratch_;
};

TEST_F(CrashTrace, NamesOurFunctionAndEndsByTheSameSignal) {
  EXPECT_EQ(signal_of(divide_the_indivisible), SIGFPE);
  EXPECT_TRUE(has_frame("phalanx::(anonymous namespace)::divide_the_indivisible"))
      << testing::text_of(crash_path(scratch_.folder(), 3));
  const auto log = testing::text_of(log_path(scratch_.folder(), 3));
  EXPECT_EQ(log.find("the log\n"), 0U);
  EXPECT_NE(log.find("SIGFPE"), std::string::npos) << log;
  EXPECT_NE(log.find("divide_the_indivisible"), std::string::npos) << log;
}

TEST_F(CrashTrace, IsWrittenWhenTheStackOverflows) {
  EXPECT_EQ(signal_of([] { overflow_the_stack(0); }), SIGSEGV);
  EXPECT_TRUE(has_frame("overflow_the_stack"));
}

TEST_F(CrashTrace, LeavesSIGTERMAlone) {
  EXPECT_EQ(signal_of([] { ::raise(SIGTERM); }), SIGTERM);
  EXPECT_TRUE(crash_frames(scratch_.folder(), 3).empty());
}

TEST_F(CrashTrace, IsPartOfTheReport) {
  EXPECT_EQ(signal_of(divide_the_indivisible), SIGFPE);
  ::testing::internal::CaptureStderr();
  report(
      {.status = 3, .cause = Failure{.rank = 3, .message = "It was killed by signal 8 (SIGFPE)."}, .unexplained = true},
      4, scratch_.folder());
  const auto text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("Stack trace:"), std::string::npos) << text;
  EXPECT_NE(text.find("divide_the_indivisible"), std::string::npos) << text;
}

}  // namespace
}  // namespace phalanx
