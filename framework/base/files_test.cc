// SPDX-License-Identifier: Apache-2.0
#include "framework/base/files.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const std::string folder_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/file";
};

TEST_F(FilesTest, ReadsBackWhatItWrote) {
  const std::string text("a\0b\n", 4);
  write_atomically(path_, text);
  EXPECT_EQ(read_file(path_), text);
  write_atomically(path_, "");
  EXPECT_EQ(read_file(path_), "");
}

TEST_F(FilesTest, LeavesNoTemporaryFiles) {
  write_atomically(path_, "x");
  EXPECT_EQ(entries(), 1);
  fs::create_directory(folder_ + "/taken");
  EXPECT_THROW(write_atomically(folder_ + "/taken", "x"), DataError);
  EXPECT_EQ(entries(), 2);
}

TEST_F(FilesTest, SaysWhyItFails) {
  const auto reason = [](auto call) {
    try {
      call();
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string absent = folder_ + "/absent/file";
  EXPECT_EQ(reason([&] { read_file(absent); }), absent + ": No such file or directory");
  EXPECT_EQ(reason([&] { read_file(folder_); }), folder_ + ": Is a directory");
  EXPECT_EQ(reason([&] { write_atomically(absent, "x"); }), absent + ": No such file or directory");
  EXPECT_EQ(reason([&] { write_atomically(folder_, "x"); }), folder_ + ": Is a directory");
}

TEST_F(FilesTest, AReaderNeverSeesHalfAFile) {
  const std::string first(100000, 'a'), second(50000, 'b');
  write_atomically(path_, first);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 30; ++i) write_atomically(path_, i % 2 == 0 ? second : first);
    done = true;
  });
  bool whole = true;
  while (!done) {
    const std::string text = read_file(path_);
    whole = whole && (text == first || text == second);
  }
  writer.join();
  EXPECT_TRUE(whole);
}

}  // namespace
}  // namespace phalanx
