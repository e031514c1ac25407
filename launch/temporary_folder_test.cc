// SPDX-License-Identifier: Apache-2.0
#include "launch/temporary_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

TEST(TemporaryFolder, IsPrivateAndRemovedWithAllItHolds) {
  std::string path;
  {
    const TemporaryFolder folder(TemporaryFolder::Removal::kAlways);
    path = folder.path();
    std::ofstream(path + "/store") << "text";
    struct stat status;
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(TemporaryFolder, IsRemovedWhenItsProcessIsKilled) {
  const testing::Scratch scratch;
  ::setenv("TMPDIR", scratch.folder().c_str(), 1);
  testing::LauncherProcess process(scratch, [] {
    const TemporaryFolder folder(TemporaryFolder::Removal::kAlways);
    std::ofstream(folder.path() + "/store") << "text";
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  EXPECT_EQ(process.wait(), 128 + SIGKILL);
  // Only the output of the process is left.
  EXPECT_TRUE(testing::becomes_true(
      [&] { return std::distance(std::filesystem::directory_iterator(scratch.folder()), {}) == 1; }));
  ::unsetenv("TMPDIR");
}

TEST(TemporaryFolder, SaysWhereItCannotBeMade) {
  ::setenv("TMPDIR", "/no/such/folder", 1);
  try {
    TemporaryFolder folder;
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/folder"), std::string::npos);
  }
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace phalanx
