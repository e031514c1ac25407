// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/bisect/commits.h"

#include <filesystem>
#include <sstream>

#include "framework/base/error.h"
#include "tools/regress/places/process.h"

namespace phalanx::regress {
namespace {

namespace fs = std::filesystem;

constexpr double kBuildSeconds = 4 * 3600, kCleanSeconds = 300;

std::string git(const std::string& folder, std::vector<std::string> words) {
  words.insert(words.begin(), "git");
  const auto done = capture(words, folder);
  if (done.status != 0) throw ConfigError("git " + words.at(1) + ": " + done.errors);
  return done.output;
}

std::string hash_of_commit(const std::string& repository, const char* flag, const std::string& name) {
  const auto found =
      capture({"git", "rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"}, repository);
  if (found.status != 0) throw ConfigError(std::string(flag) + " " + name + ": there is no such commit");
  return found.output;
}

// Runs a shell command in a folder, with all its output in a file. Returns its status.
int run_in(const std::string& folder, const std::string& command, const std::string& log, double seconds) {
  Process process({.command = {"/bin/sh", "-c", command + " 2>&1"}, .folder = folder, .output = log, .errors = log});
  return process.wait(seconds).value_or(124);
}

}  // namespace

std::vector<Commit> commits_between(const std::string& repository, const std::string& good, const std::string& bad) {
  const std::string first = hash_of_commit(repository, "--good", good);
  const std::string last = hash_of_commit(repository, "--bad", bad);
  if (capture({"git", "merge-base", "--is-ancestor", first, last}, repository).status != 0) {
    throw ConfigError("--good " + good + " is not an ancestor of --bad " + bad);
  }
  std::vector<Commit> commits{{.hash = first, .subject = git(repository, {"log", "-1", "--format=%s", first})}};
  std::istringstream lines(
      git(repository, {"log", "--first-parent", "--reverse", "--format=%H %s", first + ".." + last}));
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    commits.push_back({.hash = line.substr(0, space), .subject = space == line.npos ? "" : line.substr(space + 1)});
  }
  if (commits.size() < 2) throw ConfigError("--good and --bad are the same commit");
  return commits;
}

BuiltCommit::BuiltCommit(const Commit& commit, const BuildOptions& options)
    : commit_(commit), options_(options), folder_(options.folder + "/worktrees/" + commit.short_hash()) {
  std::error_code none;
  fs::create_directories(options_.folder + "/worktrees", none);
  fs::create_directories(options_.folder + "/logs", none);
  const auto left = capture({"git", "rev-parse", "HEAD"}, fs::exists(folder_ + "/.git", none) ? folder_ : "/");
  if (left.status != 0 || left.output != commit_.hash) {
    git(options_.repository, {"worktree", "prune"});
    git(options_.repository, {"worktree", "add", "--force", "--detach", folder_, commit_.hash});
  }
  const std::string log = options_.folder + "/logs/build-" + commit_.short_hash() + ".log";
  if (run_in(folder_, options_.build, log, kBuildSeconds) != 0 || !fs::exists(program(), none)) {
    throw Error(commit_.short_hash() + " cannot be built: see " + log);
  }
}

BuiltCommit::~BuiltCommit() {
  try {
    run_in(folder_, options_.clean, options_.folder + "/logs/clean.log", kCleanSeconds);
    git(options_.repository, {"worktree", "remove", "--force", folder_});
  } catch (const Error&) {  // the worktree stays, and is used again by the next bisection in this folder
  }
}

}  // namespace phalanx::regress
