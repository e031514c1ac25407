// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/folder.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/random.h"
#include "framework/base/storage/disk.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class Folder : public ::testing::Test {
 protected:
  Folder() { fs::remove_all(folder_.path()); }

  // Writes a checkpoint of two files that depend on the step.
  void write(std::int64_t step, const Retention& retention = {}, double accuracy = 0, bool tested = true) const {
    const std::string path = folder_.temporary_path(step);
    fs::create_directories(path);
    Manifest manifest{.position = {step, 0, step},
                      .ranks = 1,
                      .metrics = {{"accuracy", accuracy}},
                      .tested_at = tested ? step : step - 1};
    for (const char* name : {"weights", "state"}) {
      manifest.files.push_back(write_synced(path + "/" + name, std::string(40, static_cast<char>('a' + step)) + name));
    }
    folder_.commit(manifest, retention);
  }

  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const auto& one : folder_.list([](const std::string&) {})) steps.push_back(one.manifest.position.step);
    return steps;
  }

  std::int64_t newest_intact() {
    reasons_.clear();
    const auto found = folder_.newest_intact([this](const std::string& reason) { reasons_.push_back(reason); });
    return found.path.empty() ? -1 : found.manifest.position.step;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename());
    return names;
  }

  const CheckpointFolder folder_{::testing::TempDir() + "/checkpoints"};
  std::vector<std::string> reasons_;
};

TEST_F(Folder, WithoutCheckpointsThereIsNoNewest) {
  EXPECT_EQ(newest_intact(), -1);
  EXPECT_THAT(reasons_, IsEmpty());
}

TEST_F(Folder, AFolderThatCannotBeListedIsAnError) {
  const std::string loop = folder_.path() + "-loop";
  fs::remove(loop);
  fs::create_symlink(loop, loop);
  EXPECT_THAT([&] { (void)CheckpointFolder(loop).list([](const std::string&) {}); },
              ThrowsMessage<DataError>(StartsWith(loop + ": cannot be listed: ")));
}

TEST_F(Folder, TheNewestIsFound) {
  for (const std::int64_t step : {5, 20, 10}) write(step);
  EXPECT_EQ(newest_intact(), 20);
  EXPECT_THAT(reasons_, IsEmpty());
  EXPECT_THAT(steps(), ElementsAre(20, 10, 5));
}

TEST_F(Folder, TheNewestIsFoundByContentNotByName) {
  write(5);
  write(6);
  fs::rename(folder_.final_path(5), folder_.path() + "/step-99999999");
  fs::rename(folder_.final_path(6), folder_.path() + "/a copy");
  EXPECT_EQ(newest_intact(), 6);
}

TEST_F(Folder, EveryTruncationIsRefusedAndThePreviousCheckpointIsTaken) {
  write(1);
  write(2);
  for (const char* name : {"weights", "state", "manifest.json"}) {
    const std::string path = folder_.final_path(2) + "/" + name, whole = read_file(path);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      write_atomically(path, whole.substr(0, length));
      ASSERT_EQ(newest_intact(), 1) << name << " cut at " << length;
      ASSERT_THAT(reasons_, ElementsAre(StartsWith(path + ": ")));
    }
    fs::remove(path);
    ASSERT_EQ(newest_intact(), 1);
    ASSERT_THAT(reasons_, ElementsAre(StartsWith(path + ": ")));
    write_atomically(path, whole);
  }
  EXPECT_EQ(newest_intact(), 2);
}

TEST_F(Folder, EveryFlippedBitIsRefused) {
  write(1);
  write(2);
  for (const char* name : {"weights", "state", "manifest.json"}) {
    const std::string path = folder_.final_path(2) + "/" + name, whole = read_file(path);
    for (std::uint64_t trial = 0; trial < 200; ++trial) {
      const auto bit = mix(trial, 0) % (8 * whole.size());
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      write_atomically(path, damaged);
      ASSERT_EQ(newest_intact(), 1) << name << ", bit " << bit;
      ASSERT_THAT(reasons_, ElementsAre(AllOf(StartsWith(path + ": "), HasSubstr("damaged"))));
    }
    write_atomically(path, whole);
  }
}

TEST_F(Folder, ALongerFileIsRefused) {
  write(2);
  const std::string path = folder_.final_path(2) + "/weights";
  write_atomically(path, read_file(path) + "x");
  EXPECT_EQ(newest_intact(), -1);
  EXPECT_THAT(reasons_, ElementsAre(path + ": has 48 bytes, but was written with 47"));
}

TEST_F(Folder, HalfWrittenCheckpointsAreNeitherFoundNorKept) {
  write(1);
  fs::create_directories(folder_.temporary_path(2));
  write_atomically(folder_.temporary_path(2) + "/weights", "half");
  EXPECT_EQ(newest_intact(), 1);
  EXPECT_THAT(reasons_, IsEmpty());
  folder_.remove_temporary();
  EXPECT_THAT(names(), ElementsAre("step-00000001"));
}

TEST_F(Folder, TheLastAreKept) {
  for (std::int64_t step = 1; step <= 6; ++step) write(step, {.keep_last = 2});
  EXPECT_THAT(steps(), ElementsAre(6, 5));
  EXPECT_EQ(names().size(), 2u) << "nothing of the others is left";
}

TEST_F(Folder, TheBestAreKeptInAddition) {
  const Retention retention{.keep_last = 1, .keep_best = 2, .best_by = "accuracy"};
  const std::vector<double> accuracies{0.5, 0.9, 0.7, 0.8, std::numeric_limits<double>::quiet_NaN(), 0.1};
  for (std::size_t i = 0; i < accuracies.size(); ++i) write(static_cast<std::int64_t>(i), retention, accuracies[i]);
  EXPECT_THAT(steps(), ElementsAre(5, 3, 1));
}

TEST_F(Folder, TheBestMayBeTheLowest) {
  const Retention retention{.keep_last = 1, .keep_best = 1, .best_by = "accuracy", .highest = false};
  for (std::int64_t step = 1; step <= 4; ++step) write(step, retention, static_cast<double>(step));
  EXPECT_THAT(steps(), ElementsAre(4, 1));
}

TEST_F(Folder, OnlyTheWeightsThatWereTestedAreAmongTheBest) {
  const Retention retention{.keep_last = 1, .keep_best = 1, .best_by = "accuracy"};
  write(1, retention, 0.5);
  write(2, retention, 0.9, /*tested=*/false);
  write(3, retention, 0.1, /*tested=*/false);
  EXPECT_THAT(steps(), ElementsAre(3, 1));
}

TEST_F(Folder, CheckpointsAfterTheResumedOneAreSetAside) {
  for (const std::int64_t step : {1, 2, 3}) write(step);
  write_atomically(folder_.final_path(1) + "/manifest.json", "torn");
  folder_.set_aside_after(2);
  EXPECT_THAT(steps(), ElementsAre(2));
  EXPECT_THAT(names(),
              ::testing::UnorderedElementsAre("step-00000002", "set-aside-step-00000001", "set-aside-step-00000003"));
  write(3);
  folder_.set_aside_after(2);
  EXPECT_TRUE(fs::exists(folder_.path() + "/set-aside-step-00000003-2")) << "nothing is overwritten";
}

TEST_F(Folder, ACheckpointOfTheSameStepIsReplaced) {
  write(1);
  write(1, {}, 0.5);
  EXPECT_EQ(newest_intact(), 1);
  EXPECT_THAT(names(), ElementsAre("step-00000001"));
  EXPECT_EQ(read_checkpoint(folder_.final_path(1)).manifest.metrics.at(0).second, 0.5);
}

TEST_F(Folder, ACheckpointHasAnAgeUntilItIsRemoved) {
  write(1);
  const auto checkpoint = read_checkpoint(folder_.final_path(1));
  fs::last_write_time(checkpoint.path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_NEAR(age_of(checkpoint).value(), 3600, 60);
  fs::remove_all(checkpoint.path);
  EXPECT_EQ(age_of(checkpoint), std::nullopt);
}

TEST_F(Folder, FoldersOfTheUserAreLeftAlone) {
  fs::create_directories(folder_.path() + "/notes");
  write(1, {.keep_last = 1});
  folder_.set_aside_after(0);
  EXPECT_EQ(newest_intact(), -1);
  EXPECT_THAT(reasons_, IsEmpty());
  EXPECT_TRUE(fs::exists(folder_.path() + "/notes"));
}

}  // namespace
}  // namespace phalanx
