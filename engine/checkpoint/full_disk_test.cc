// SPDX-License-Identifier: Apache-2.0
// Tests checkpoints that cannot be written.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <functional>
#include <string>

#include "engine/testing/checkpoints.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::Checkpoints;
using ::testing::HasSubstr;
using testing::Rank;
using testing::run_ranks;
using testing::Sharing;

// Writing files beyond a limit fails as on a full disk.
class FullDisk : public Checkpoints {
 protected:
  void limit(rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk() { previous_ = ::signal(SIGXFSZ, SIG_IGN); }
  ~FullDisk() override {
    limit(RLIM_INFINITY);
    ::signal(SIGXFSZ, previous_);
  }

 private:
  void (*previous_)(int);
};

TEST_F(FullDisk, AllRanksAbandonTheCheckpointAndTheNextOneSucceeds) {
  save(2, Sharing::kReplicas, 1, 1);
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.fill(2);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    if (world->rank() == 0) limit(60);
    world->barrier().wait();
    checkpointer.save(at_step(2), true);
    checkpointer.settle();
    EXPECT_THAT(checkpointer.failure(), HasSubstr("File too large"));
    EXPECT_EQ(checkpointer.failed(), 1);
    world->barrier().wait();
    if (world->rank() == 0) {
      EXPECT_FALSE(fs::exists(folder_.temporary_path(2))) << "nothing of it is left";
      EXPECT_EQ(folder_.newest_intact([](const std::string&) {}).path, folder_.final_path(1));
      limit(RLIM_INFINITY);
    }
    world->barrier().wait();
    checkpointer.save(at_step(3), true);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "");
  });
  expect_loads(2, Sharing::kReplicas, 2);
}

TEST_F(FullDisk, AllRanksGetTheReasonWhyOneCouldNotWrite) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    const std::string taken = folder_.temporary_path(2) + "/" + state_file(1, 2);
    if (world->rank() == 1) fs::create_directories(taken);
    checkpointer.save(at_step(2), true);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), taken + ": Is a directory");
  });
}

TEST_F(Checkpoints, SavingFailsWhileTheRunFolderIsRenamed) {
  const auto run = fs::path(folder_.path()).parent_path();
  const fs::path renamed = run.string() + "-renamed";
  fs::remove_all(renamed);
  fs::create_directories(run);
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    const auto save_after = [&](const std::function<void()>& change) {
      world->barrier().wait();
      if (world->rank() == 0) change();
      world->barrier().wait();
      checkpointer.save(at_step(2), true);
      checkpointer.settle();
      return checkpointer.failure();
    };
    const std::string why = run.string() + ": was removed or renamed during the run";
    EXPECT_EQ(save_after([&] { fs::rename(run, renamed); }), why);
    EXPECT_FALSE(fs::exists(run)) << "it was not created again";
    EXPECT_EQ(save_after([&] { fs::create_directories(run); }), why) << "another folder of the same name";
    EXPECT_EQ(save_after([&] {
                fs::remove_all(run);
                fs::rename(renamed, run);
              }),
              "");
  });
}

TEST_F(FullDisk, AManifestThatCannotBeWrittenIsAFailureOnAllRanks) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    Manifest manifest = at_step(2);
    manifest.provenance = {{"command", std::string(5000, 'x')}};
    if (world->rank() == 0) limit(4000);
    world->barrier().wait();
    checkpointer.save(manifest, true);
    checkpointer.settle();
    EXPECT_NE(checkpointer.failure(), "");
    EXPECT_EQ(checkpointer.written(), 0);
  });
  EXPECT_EQ(folder_.newest_intact([](const std::string&) {}).path, "");
}

}  // namespace
}  // namespace phalanx
