// SPDX-License-Identifier: Apache-2.0
#include "launch/job/agree.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/testing/worlds.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;
using ::testing::ThrowsMessage;

ExperimentConfig some_config() {
  ExperimentConfig config;
  config::load_text(config, "model: mlp", "t.yaml");
  return config;
}

TEST(DifferingProcessors, AreNoneOnOneHost) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) { EXPECT_EQ(differing_processors(*world), ""); });
}

TEST(AgreeOnFolder, OneRankMakesItForAll) {
  const testing::Scratch scratch;
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Job job{.config = some_config()};
    if (world->rank() == 0) job.run_dir = scratch.path("run");
    const ClaimedFolder agreed = agree_on_folder(job, *world);
    EXPECT_EQ(agreed.folder.path(), scratch.path("run"));
    EXPECT_EQ(agreed.claim != nullptr, world->rank() == 0);
    EXPECT_TRUE(std::filesystem::exists(agreed.folder.config()));
    world->barrier().wait();
  });
}

TEST(AgreeOnFolder, AllRanksGetTheSameError) {
  const testing::Scratch scratch;
  write_atomically(scratch.path("file"), "not a folder");
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const Job job{.config = some_config(), .run_dir = scratch.path("file")};
    EXPECT_THAT([&] { (void)agree_on_folder(job, *world); },
                ThrowsMessage<ConfigError>(HasSubstr(scratch.path("file"))));
  });
}

}  // namespace
}  // namespace phalanx
