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

TEST_F(GitCommit, IsThatOfAWorktree) {
  const std::string worktree = ::testing::TempDir() + "/worktree";
  std::filesystem::create_directories(worktree);
  std::filesystem::create_directories(folder_ + "/.git/worktrees/one");
  std::ofstream(worktree + "/.git") << "gitdir: " << folder_ << "/.git/worktrees/one\n";
  write("worktrees/one/HEAD", "ref: refs/heads/topic\n");
  write("worktrees/one/commondir", "../..\n");
  write("refs/heads/topic", "6789abcd\n");
  EXPECT_EQ(git_commit(worktree), "6789abcd");
}

TEST_F(GitCommit, IsEmptyOutsideOfARepository) { EXPECT_EQ(git_commit(folder_ + "/.git/refs"), ""); }

TEST(Provenance, HasVersionsConfigHostCommandAndTime) {
  const auto words = provenance("abc");
  for (const char* key : {"phalanx", "libtorch", "commit", "host", "kernels", "command", "time"}) {
    EXPECT_THAT(words, Contains(Key(key)));
  }
  // The example of FIPS 180-4.
  EXPECT_THAT(words,
              Contains(Pair("config_sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")));
  EXPECT_THAT(words, Contains(Pair("command", HasSubstr("checkpoint_test"))));
}

}  // namespace
}  // namespace phalanx
