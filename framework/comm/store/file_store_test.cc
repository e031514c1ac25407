// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/store/store.h"
#include "framework/comm/testing/store.h"

namespace phalanx {
namespace {

using testing::comm_error_of;
using testing::expect_timeout;
using testing::keep_notes;
using testing::kLong;
using testing::kShort;

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string new_path(const std::string& name) {
  const auto path = ::testing::TempDir() + "store_test-" + std::to_string(::getpid()) + "-" + name;
  std::filesystem::remove(path);
  return path;
}

TEST(FileStore, WaitsNoLongerThanItMay) { expect_timeout(*make_file_store(new_path("waits"), 1, kShort)); }

TEST(FileStore, EndsAWaitWhenItsCheckThrows) {
  int calls = 0;
  const auto store = make_file_store(new_path("checked"), 1, kLong, [&] {
    if (++calls == 3) throw CommError(CommError::Kind::kSystem, "enough");
  });
  EXPECT_STREQ(comm_error_of([&] { store->get("absent"); }).what(), "enough");
}

TEST(FileStore, StoresValuesAndIsRemovedByTheLastRank) {
  const auto path = new_path("notes");
  auto one = make_file_store(path, 2, kLong);
  auto two = make_file_store(path, 2, kLong);
  keep_notes(*one, *two);
  one.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
  two.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, IsAccessibleToItsOwnerOnly) {
  const auto path = new_path("private");
  const auto store = make_file_store(path, 1, kLong);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(FileStore, DoesNotFollowALink) {
  const auto path = new_path("link");
  std::filesystem::create_symlink("/dev/null", path);
  const auto error = comm_error_of([&] { make_file_store(path, 1, kLong); });
  EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
  EXPECT_THAT(error.what(), HasSubstr(path));
  std::filesystem::remove(path);
}

// Joins the store of `ranks`, sets a value there, and is killed.
void be_killed_as_rank(const std::string& path, int ranks) {
  const pid_t rank = ::fork();
  if (rank == 0) {
    const auto store = make_file_store(path, ranks, kLong);
    store->set("address", "of the dead run");
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(rank, nullptr, 0), rank);
  ASSERT_GT(std::filesystem::file_size(path), 0U);
}

TEST(FileStore, ReplacesTheFileOfADeadRun) {
  const auto path = new_path("stale");
  be_killed_as_rank(path, 2);
  be_killed_as_rank(path, 2);
  auto one = make_file_store(path, 2, kShort);
  expect_timeout(*one);
  EXPECT_THROW(one->get("address"), CommError);
  auto two = make_file_store(path, 2, kLong);
  one->set("address", "of this run");
  EXPECT_EQ(two->get("address"), "of this run");
  one.reset();
  two.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, ReplacesAnyFileThatNoProcessUses) {
  const auto path = new_path("old");
  std::ofstream(path) << "left by a crash";
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto store = make_file_store(path, 1, kLong);
  store->set("key", "value");
  EXPECT_EQ(store->get("key"), "value");
}

TEST(FileStore, KeepsTheValuesOfARunningRank) {
  const auto path = new_path("living");
  const auto one = make_file_store(path, 3, kLong);
  one->set("address", "of this run");
  be_killed_as_rank(path, 3);
  EXPECT_EQ(make_file_store(path, 3, kLong)->get("address"), "of the dead run") << "which was a rank of this run";
}

TEST(FileStore, RanksThatStartTogetherAgreeOnOneFile) {
  for (int round = 0; round < 20; ++round) {
    const auto path = new_path("race" + std::to_string(round));
    be_killed_as_rank(path, 4);
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&] {
        const auto store = make_file_store(path, 4, kLong);
        store_barrier(*store, "all", 4);
      });
    }
  }
}

TEST(FileStore, DoesNotWaitForEverForItsLock) {
  const auto path = new_path("locked");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  const auto error = comm_error_of([&] { make_file_store(path, 1, kShort); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr("0.05 s"), HasSubstr("lock")));
  ::close(file);
  std::filesystem::remove(path);
}

TEST(FileStore, SaysWhyAFileCannotBeCreated) {
  const auto error = comm_error_of([] { make_file_store("/no/such/folder/store", 1, kLong); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("/no/such/folder/store"), HasSubstr("No such file or directory")));
}

TEST(FileStore, SaysSoonThatItsFolderIsGone) {
  const auto folder = new_path("gone");
  std::filesystem::create_directory(folder);
  const auto store = make_file_store(folder + "/store", 1, kLong);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(comm_error_of([&] { store->get("a"); }).kind(), CommError::Kind::kSystem);
}

}  // namespace
}  // namespace phalanx
