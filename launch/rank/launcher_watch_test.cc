// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/launcher_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr pid_t kLauncher = 24296;

class SessionFolder : public ::testing::Test {
 protected:
  std::string make(const std::string& name, fs::perms permissions = fs::perms::owner_all) {
    const std::string path = scratch_.path(name);
    fs::create_directories(path);
    fs::permissions(path, permissions);
    return path;
  }

  testing::Scratch scratch_;
};

TEST_F(SessionFolder, IsWhatOpenMpiMakesForItsProcess) {
  EXPECT_TRUE(is_session_folder(make("ompi.24296"), kLauncher));
  EXPECT_TRUE(is_session_folder(make("prte.node1.24296.1000"), kLauncher));
}

TEST_F(SessionFolder, IsNoFolderOfAnotherProcessOrProgram) {
  EXPECT_FALSE(is_session_folder(make("ompi.242960"), kLauncher));
  EXPECT_FALSE(is_session_folder(make("results.24296"), kLauncher));
  EXPECT_FALSE(is_session_folder(make("ompi.24296/results"), kLauncher));
  EXPECT_FALSE(is_session_folder(scratch_.folder(), kLauncher));
  EXPECT_FALSE(is_session_folder("/", kLauncher));
  EXPECT_FALSE(is_session_folder("", kLauncher));
}

TEST_F(SessionFolder, IsNeitherALinkNorAFileNorOpenToOthers) {
  fs::create_directory_symlink(make("results"), scratch_.path("ompi.24296"));
  EXPECT_FALSE(is_session_folder(scratch_.path("ompi.24296"), kLauncher));
  std::ofstream(scratch_.path("prte.24296")) << "text";
  EXPECT_FALSE(is_session_folder(scratch_.path("prte.24296"), kLauncher));
  EXPECT_FALSE(is_session_folder(make("ompi.0.24296", fs::perms::all), kLauncher));
  EXPECT_FALSE(is_session_folder(scratch_.path("ompi.1.24296"), kLauncher)) << "the folder does not exist";
}

TEST_F(SessionFolder, IsNamedByAnAbsolutePath) {
  make("ompi.24296");
  EXPECT_FALSE(is_session_folder("ompi.24296", kLauncher));
  EXPECT_FALSE(is_session_folder(scratch_.path("x/../ompi.24296"), kLauncher));
  EXPECT_FALSE(is_session_folder(scratch_.path("ompi.24296/."), kLauncher));
}

}  // namespace
}  // namespace phalanx
