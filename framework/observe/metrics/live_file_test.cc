// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/live_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "framework/base/files.h"
#include "framework/observe/testing/metrics_record.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::timed_record;

class LiveFileTest : public ::testing::Test {
 protected:
  std::string path_ = ::testing::TempDir() + "/live_file_test.prom";
};

TEST_F(LiveFileTest, HasTheStateOfTheRunUntilItsEnd) {
  {
    LiveFile file(path_, {.run = "a", .ranks = 2});
    EXPECT_FALSE(std::filesystem::exists(path_));
    file.add(timed_record());
    EXPECT_THAT(read_file(path_), AllOf(StartsWith("# HELP phalanx_run_info"), HasSubstr("\nphalanx_step 300\n")));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(LiveFileTest, TheFileOfAKilledRunIsRemoved) {
  std::ofstream(path_) << "phalanx_step 7\n";
  const LiveFile file(path_, {.run = "a", .ranks = 2});
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(LiveFileTest, IsNotWrittenAtEveryMeasurement) {
  LiveFile file(path_, {.run = "a", .ranks = 2});
  auto record = timed_record();
  for (record.step = 1; record.step <= 3; ++record.step) file.add(record);
  EXPECT_THAT(read_file(path_), HasSubstr("\nphalanx_step 1\n"));
}

TEST_F(LiveFileTest, AFolderThatIsGoneDoesNotDisturbTheRun) {
  LiveFile file("/proc/absent/live.prom", {.run = "a", .ranks = 2});
  EXPECT_NO_THROW(file.add(timed_record()));
}

}  // namespace
}  // namespace phalanx
