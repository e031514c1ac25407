// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/provenance.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace phalanx {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Pair;

class GitCommit : public ::testing::Test {
 protected:
  GitCommit() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/.git/refs/heads");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/.git/" + name) << text;
  }

  const std::string folder_ = ::testing::TempDir() + "/repository";
};

TEST_F(GitCommit, IsTheTipOfTheBranch) {
  write("HEAD", "ref: refs/heads/main\n");
  write("refs/heads/main", "0123abcd\n");
  EXPECT_EQ(git_commit(folder_), "0123abcd");
}

TEST_F(GitCommit, IsFoundWhereReferencesArePacked) {
  write("HEAD", "ref: refs/heads/main\n");
  write("packed-refs", "# pack-refs with: peeled fully-peeled sorted\n4444 refs/heads/other\n5555 refs/heads/main\n");
  EXPECT_EQ(git_commit(folder_), "5555");
}

TEST_F(GitCommit, IsTheDetachedHead) {
  write("HEAD", "89abcdef\n");
  EXPECT_EQ(git_commit(folder_), "89abcdef");
}

TEST_F(GitCommit, IsEmptyOutsideOfARepository) { EXPECT_EQ(git_commit(folder_ + "/.git/refs"), ""); }

TEST(Provenance, HasVersionsHostCommandAndTime) {
  const auto words = provenance();
  for (const char* key : {"phalanx", "libtorch", "commit", "host", "kernels", "command", "time"}) {
    EXPECT_THAT(words, Contains(Key(key)));
  }
  EXPECT_THAT(words, Contains(Pair("command", HasSubstr("checkpoint_test"))));
}

}  // namespace
}  // namespace phalanx
