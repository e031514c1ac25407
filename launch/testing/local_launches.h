// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "framework/testing/scratch.h"
#include "launch/local/launch_local.h"
#include "launch/testing/launcher_process.h"

namespace phalanx::testing {

/// A test that starts ranks on this host. It has its own log folder and its own TMPDIR, in which no file may be left.
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

  Scratch scratch_;
};

/// A test of launch_local() in this process. No child may be left.
class LaunchLocal : public Launches {
 protected:
  ~LaunchLocal() override { EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left"; }

  /// Runs the ranks and returns the status of the job. Fills `error_` and `seconds_`.
  int launch(int ranks, const std::function<int(int)>& body) { return launch({.ranks = ranks}, body); }

  /// Does the same with these options and `log_folder_`.
  int launch(LocalLaunch options, const std::function<int(int)>& body) {
    options.log_folder = log_folder_;
    ::testing::internal::CaptureStderr();
    const auto start = std::chrono::steady_clock::now();
    const int status = launch_local(options, body);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    error_ = ::testing::internal::GetCapturedStderr();
    return status;
  }

  std::string log_folder_ = scratch_.folder();
  std::string error_;   // what was printed to standard error
  double seconds_ = 0;  // until the job had ended
};

}  // namespace phalanx::testing
