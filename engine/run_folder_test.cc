// SPDX-License-Identifier: Apache-2.0
#include "engine/run_folder.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(path_); }

  const std::string path_ = ::testing::TempDir() + "runs/first";
};

TEST_F(RunFolderTest, IsCreatedWithItsLogsAndTheFoldersAbove) {
  EXPECT_EQ(RunFolder::create(path_).path(), path_);
  EXPECT_TRUE(fs::is_directory(path_ + "/logs"));
}

TEST_F(RunFolderTest, IsUsedByOneRunAtATime) {
  const auto folder = RunFolder::create(path_);
  auto claim = folder.claim();
  EXPECT_THAT([&] { (void)RunFolder(path_).claim(); },
              ThrowsMessage<ConfigError>("another run is using the run folder " + path_ +
                                         "; wait for it, stop it, or choose another folder"));
  claim.reset();
  claim = folder.claim();
  std::FILE* program = ::popen("cat >/dev/null", "w");  // like an mpirun that outlives the run
  claim.reset();
  EXPECT_THROW((void)folder.claim(), ConfigError);
  ::pclose(program);
  EXPECT_NO_THROW((void)folder.claim());
}

TEST_F(RunFolderTest, HasThePromisedNames) {
  const RunFolder folder("runs/a");
  EXPECT_EQ(folder.config(), "runs/a/config.yaml");
  EXPECT_EQ(folder.metrics(), "runs/a/metrics.jsonl");
  EXPECT_EQ(folder.summary(), "runs/a/summary.json");
  EXPECT_EQ(folder.log(12), "runs/a/logs/rank12.log");
}

TEST_F(RunFolderTest, AFolderThatHoldsARunIsRefusedAndLeftUnchanged) {
  for (const char* file : {"/metrics.jsonl", "/summary.json"}) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    std::ofstream(path_ + file) << "precious";
    EXPECT_THAT([&] { RunFolder::create(path_); },
                ThrowsMessage<ConfigError>("run folder " + path_ + " already holds a run (" + path_ + file +
                                           "); choose another folder, or resume the run (--resume auto)"));
    EXPECT_FALSE(fs::exists(path_ + "/logs"));
  }
}

TEST_F(RunFolderTest, AFolderThatHoldsOnlyCheckpointsIsRefused) {
  fs::create_directories(path_ + "/checkpoints");
  EXPECT_NO_THROW(RunFolder(path_).refuse_if_held()) << "there is no checkpoint in it";
  fs::create_directories(path_ + "/checkpoints/step-00000004");
  EXPECT_THAT([&] { RunFolder::create(path_); },
              ThrowsMessage<ConfigError>(HasSubstr("already holds a run (" + path_ + "/checkpoints)")));
  EXPECT_NO_THROW(RunFolder::create(path_, true));
}

TEST_F(RunFolderTest, AFolderWithoutARunIsUsed) {
  RunFolder::create(path_);
  std::ofstream(path_ + "/notes.txt") << "mine";
  EXPECT_NO_THROW(RunFolder::create(path_));
  EXPECT_TRUE(fs::exists(path_ + "/notes.txt"));
}

TEST_F(RunFolderTest, AFolderThatCannotBeCreatedIsNamed) {
  const std::string file = ::testing::TempDir() + "a_file";
  std::ofstream(file) << "x";
  for (const std::string& place : {std::string("/proc/run"), file + "/run", "/proc/" + std::string(5000, 'x')}) {
    EXPECT_THAT([&] { RunFolder::create(place); },
                ThrowsMessage<ConfigError>(StartsWith("run folder " + place + " cannot be created: ")));
  }
}

}  // namespace
}  // namespace phalanx
