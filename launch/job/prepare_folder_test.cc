// SPDX-License-Identifier: Apache-2.0
#include "launch/job/prepare_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class PrepareFolder : public ::testing::Test {
 protected:
  PrepareFolder() {
    config::load_text(job_.config, "model: mlp", "t.yaml");
    job_.run_dir = scratch_.path("run");
  }

  testing::Scratch scratch_;
  Job job_;
};

TEST_F(PrepareFolder, WritesTheConfigAndClaimsTheFolder) {
  job_.config.name = "first";
  const ClaimedFolder claimed = prepare_folder(job_);
  EXPECT_EQ(claimed.folder.path(), job_.run_dir);
  EXPECT_THAT(read_file(claimed.folder.config()), HasSubstr("first"));
  EXPECT_THAT([&] { (void)prepare_folder(job_); }, ThrowsMessage<ConfigError>(HasSubstr("another run is using")));
}

TEST_F(PrepareFolder, RefusesAFolderThatHoldsARun) {
  write_atomically(prepare_folder(job_).folder.summary(), "{}");
  EXPECT_THAT([&] { (void)prepare_folder(job_); }, ThrowsMessage<ConfigError>(HasSubstr("already holds a run")));
}

TEST_F(PrepareFolder, KeepsTheConfigOfARunThatGoesOn) {
  job_.config.name = "first";
  (void)prepare_folder(job_);
  job_.config.name = "second";
  job_.config.checkpoint.resume = "auto";
  const ClaimedFolder claimed = prepare_folder(job_);
  EXPECT_THAT(read_file(claimed.folder.config()), HasSubstr("first"));
  write_config(job_.config, claimed.folder);
  EXPECT_THAT(read_file(claimed.folder.config()), HasSubstr("second"));
}

TEST_F(PrepareFolder, RefusesToResumeFromAFolderThatIsNoCheckpoint) {
  job_.config.checkpoint.resume = scratch_.path("no such");
  EXPECT_THAT([&] { (void)prepare_folder(job_); }, ThrowsMessage<ConfigError>(HasSubstr("does not exist")));
  job_.config.checkpoint.resume = scratch_.folder();
  EXPECT_THAT([&] { (void)prepare_folder(job_); }, ThrowsMessage<ConfigError>(HasSubstr("is not a checkpoint")));
  EXPECT_FALSE(std::filesystem::exists(job_.run_dir)) << "nothing is created for a job that cannot run";
}

}  // namespace
}  // namespace phalanx
