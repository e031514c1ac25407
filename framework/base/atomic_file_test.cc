// SPDX-License-Identifier: Apache-2.0
#include "framework/base/atomic_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class AtomicFileTest : public ::testing::Test {
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

TEST_F(AtomicFileTest, PartsMayComeInAnyOrder) {
  AtomicFile file(path_);
  file.write("def", 3);
  file.write("", 100);
  file.write("abc", 0);
  file.replace();
  EXPECT_EQ(read_file(path_), "abcdef");
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFileTest, TheOldFileRemainsUntilItIsReplaced) {
  write_atomically(path_, "old");
  {
    AtomicFile file(path_);
    file.write("new", 0);
    EXPECT_EQ(read_file(path_), "old");
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(entries(), 1) << "what was begun is gone";
}

TEST_F(AtomicFileTest, NothingIsWrittenThroughAnExistingLink) {
  const std::string unrelated = folder_ + "/unrelated";
  write_atomically(unrelated, "kept");
  // The links have the next names that this process will use, however many it has used before.
  for (int number = 0; number < 200; ++number) {
    fs::create_symlink(unrelated, path_ + "." + std::to_string(::getpid()) + "." + std::to_string(number) + ".tmp");
  }
  write_atomically(path_, "new");
  EXPECT_EQ(read_file(unrelated), "kept");
  EXPECT_EQ(read_file(path_), "new");
}

TEST_F(AtomicFileTest, AnUnwritablePathIsNamed) {
  const std::string absent = folder_ + "/absent/file";
  EXPECT_THAT([&] { const AtomicFile file(absent); }, ThrowsMessage<DataError>(absent + ": No such file or directory"));
  AtomicFile taken(folder_);
  EXPECT_THAT([&] { taken.replace(); }, ThrowsMessage<DataError>(StartsWith(folder_ + ": ")));
}

}  // namespace
}  // namespace phalanx
