// SPDX-License-Identifier: Apache-2.0
// Checks the files on disk when a checkpoint gets its name, and when the previous one is deleted, since a power cut
// leaves these. The C library's fsync() is replaced by a function that first tells the test which path is synced.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "framework/base/files.h"
#include "framework/base/storage/disk.h"
#include "framework/comm/launch/host_lease.h"

namespace {

std::function<void(const std::string& path)> before_sync;  // null if no test listens

}  // namespace

extern "C" int fsync(int file) {
  if (before_sync) before_sync(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)));
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class Durability : public ::testing::Test {
 protected:
  Durability() {
    before_sync = [this](const std::string& path) {
      syncs_.push_back(fs::path(path).lexically_relative(folder_.path()).string() + ": final " +
                       weights_in(folder_.final_path(1)) + ", temporary " + weights_in(folder_.temporary_path(1)));
    };
  }
  ~Durability() override { before_sync = nullptr; }

  // Writes a checkpoint of step 1 and returns, for each sync, the path and the weights under both names.
  std::vector<std::string> syncs_of_saving(const std::string& weights) {
    syncs_.clear();
    const std::string path = folder_.temporary_path(1);
    fs::create_directories(path);
    Manifest manifest{.position = {1, 0, 1}, .ranks = 1};
    manifest.files.push_back(write_synced(path + "/weights", weights));
    folder_.commit(manifest, {});
    return syncs_;
  }

  // Saves a checkpoint in a process whose lease is over when the folder of checkpoints is synced.
  void save_and_lose_lease(const std::string& weights) {
    const auto lease = std::make_shared<HostLease>(1, boot_time() + std::chrono::hours(1));
    set_lease_of_process(lease);
    before_sync = [this, lease](const std::string& path) {
      if (path == folder_.path()) lease->set_end(boot_time());
    };
    syncs_of_saving(weights);
  }

  std::string final_weights() const { return weights_in(folder_.final_path(1)); }
  std::string temporary_weights() const { return weights_in(folder_.temporary_path(1)); }

 private:
  static std::string empty_folder() {
    const fs::path path = fs::canonical(::testing::TempDir()) / "durability";
    fs::remove_all(path);
    fs::create_directories(path);
    return path;
  }

  static std::string weights_in(const std::string& checkpoint) {
    return fs::exists(checkpoint) ? read_file(checkpoint + "/weights") : "none";
  }

  const CheckpointFolder folder_{empty_folder()};
  std::vector<std::string> syncs_;
};

TEST_F(Durability, EveryFileIsOnDiskBeforeTheCheckpointHasItsName) {
  EXPECT_THAT(syncs_of_saving("new"),
              ElementsAre("step-00000001.tmp/weights: final none, temporary new",
                          "step-00000001.tmp/manifest.json: final none, temporary new",
                          "step-00000001.tmp: final none, temporary new", ".: final new, temporary none"));
}

TEST_F(Durability, TheNewNamesAreOnDiskBeforeTheReplacedCheckpointIsDeleted) {
  syncs_of_saving("old");
  EXPECT_THAT(syncs_of_saving("new"), ElementsAre("step-00000001.tmp/weights: final old, temporary new",
                                                  "step-00000001.tmp/manifest.json: final old, temporary new",
                                                  "step-00000001.tmp: final old, temporary new",
                                                  ".: final new, temporary old",     // the exchange
                                                  ".: final new, temporary none"));  // the deletion
}

// It may have been stopped for long: the others have gone on, and write a checkpoint of this step.
TEST_F(Durability, AProcessWhoseLeaseIsOverDeletesNothing) {
  syncs_of_saving("old");
  EXPECT_EXIT(save_and_lose_lease("new"), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(final_weights(), "new");
  EXPECT_EQ(temporary_weights(), "old");
}

}  // namespace
}  // namespace phalanx
