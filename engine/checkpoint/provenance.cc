// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/provenance.h"

#include <torch/version.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "framework/base/environment.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/version.h"
#include "framework/kernels/kernels.h"

namespace phalanx {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns `path`, which is relative to `folder` unless it is absolute.
std::string in_folder(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).string();
}

// In a worktree, .git is a file with the line "gitdir: PATH".
std::string git_folder(const std::string& folder) {
  constexpr std::string_view kElsewhere = "gitdir: ";
  const std::string line = first_line(folder + "/.git");
  return line.starts_with(kElsewhere) ? in_folder(folder, line.substr(kElsewhere.size())) : folder + "/.git";
}

// Returns the folder with the branches: for a worktree, that of the repository.
std::string shared_folder(const std::string& git) {
  const std::string common = first_line(git + "/commondir");
  return common.empty() ? git : in_folder(git, common);
}

// Looks for a line of .git/packed-refs: "<commit> <reference>".
std::string packed(const std::string& git, const std::string& reference) {
  std::ifstream file(git + "/packed-refs");
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with(" " + reference)) return line.substr(0, line.find(' '));
  }
  return {};
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), {});
  if (words.ends_with('\0')) words.pop_back();
  std::ranges::replace(words, '\0', ' ');
  return words;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

std::string git_commit(const std::string& folder) {
  const std::string git = git_folder(folder), head = first_line(git + "/HEAD");
  constexpr std::string_view kReference = "ref: ";
  if (!head.starts_with(kReference)) return head;  // a detached head is the commit itself
  const std::string reference = head.substr(kReference.size()), shared = shared_folder(git);
  const std::string commit = first_line(shared + "/" + reference);
  return commit.empty() ? packed(shared, reference) : commit;
}

Manifest::Strings provenance(const std::string& config) {
  std::error_code none;
  const auto here = environment("BUILD_WORKSPACE_DIRECTORY").value_or(std::filesystem::current_path(none).string());
  return {{"phalanx", kVersion},        {"libtorch", TORCH_VERSION},
          {"commit", git_commit(here)}, {"config_sha256", sha256(config)},
          {"host", host_name()},        {"kernels", kernels::kernels_in_use()},
          {"command", command_line()},  {"time", utc_now()}};
}

}  // namespace phalanx
