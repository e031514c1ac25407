// SPDX-License-Identifier: Apache-2.0
#include "datasets/root.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "datasets/testing/idx_files.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

class DatasetRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("PHALANX_DATA");
    unsetenv("BUILD_WORKING_DIRECTORY");
  }
};

TEST_F(DatasetRoot, IsWhatTheConfigSays) {
  setenv("PHALANX_DATA", "/data", 1);
  EXPECT_EQ(dataset_root("/elsewhere/digits", "mnist"), "/elsewhere/digits");
}

TEST_F(DatasetRoot, IsBelowTheDataFolder) {
  setenv("PHALANX_DATA", "/data", 1);
  EXPECT_EQ(dataset_root("", "mnist"), "/data/mnist");
}

TEST_F(DatasetRoot, IsInDataByDefault) {
  EXPECT_EQ(dataset_root("", "mnist"), fs::current_path() / "data/mnist");
  setenv("PHALANX_DATA", "", 1);
  EXPECT_EQ(dataset_root("", "mnist"), fs::current_path() / "data/mnist");
}

TEST_F(DatasetRoot, StartsAtTheCallersFolder) {
  setenv("BUILD_WORKING_DIRECTORY", "/home/someone", 1);
  EXPECT_EQ(dataset_root("", "mnist"), "/home/someone/data/mnist");
  EXPECT_EQ(dataset_root("../mine", "mnist"), "/home/mine");
  EXPECT_EQ(dataset_root("/absolute", "mnist"), "/absolute");
  setenv("PHALANX_DATA", "sets", 1);
  EXPECT_EQ(dataset_root("", "mnist"), "/home/someone/sets/mnist");
}

TEST(FindFiles, TakesTheFirstSuffixThatExists) {
  const auto root = testing::fresh_folder("find_files");
  for (const auto* name : {"a.gz", "b", "b.gz"}) testing::write_plain(root / name, {});
  const DatasetFiles files{.dataset = "toy", .names = {"b", "a"}, .suffixes = {"", ".gz"}, .how_to_get = ""};
  EXPECT_EQ(find_files(files, root), (std::vector{root / "b", root / "a.gz"}));
}

TEST(FindFiles, ListsEveryMissingFileAtOnce) {
  const auto root = testing::fresh_folder("find_files");
  testing::write_plain(root / "b", {});
  try {
    find_files({.dataset = "toy", .names = {"a", "b", "c"}, .how_to_get = "Make them."}, root);
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), "dataset \"toy\": files are missing from " + root.string() + ":\n  a\n  c\nMake them.");
  }
}

}  // namespace
}  // namespace phalanx
