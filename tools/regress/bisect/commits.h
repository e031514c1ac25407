// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx::regress {

/// A commit of a git repository.
struct Commit {
  std::string hash{};
  std::string subject{};

  std::string short_hash() const { return hash.substr(0, 12); }
};

/// Returns the commits from `good` to `bad`, both included, along first parents, the oldest first. Throws ConfigError
/// for a name that git does not know, and if `good` is not an ancestor of `bad`.
std::vector<Commit> commits_between(const std::string& repository, const std::string& good, const std::string& bad);

/// The commands that build a commit, and the folders that they use.
struct BuildOptions {
  std::string repository{};
  std::string folder{};   // for worktrees and the logs of builds
  std::string build{};    // shell command, run in the worktree
  std::string program{};  // the train that it builds, relative to the worktree
  std::string clean{};    // shell command, run before the worktree is removed
};

/// A commit that has been built in a separate git worktree. Destroying it cleans the build and removes the worktree.
class BuiltCommit {
 public:
  /// Blocks until the build has ended. A worktree that an earlier process left is used again. Throws Error, which names
  /// the log, if the build fails.
  BuiltCommit(const Commit& commit, const BuildOptions& options);
  ~BuiltCommit();
  BuiltCommit(const BuiltCommit&) = delete;
  BuiltCommit& operator=(const BuiltCommit&) = delete;

  const Commit& commit() const { return commit_; }

  /// Returns the absolute path of the program.
  std::string program() const { return folder_ + "/" + options_.program; }

 private:
  Commit commit_;
  BuildOptions options_;
  std::string folder_;  // of the worktree
};

}  // namespace phalanx::regress
