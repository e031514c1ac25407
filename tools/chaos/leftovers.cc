// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/leftovers.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

namespace phalanx::chaos {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

bool is_number(const std::string& name) { return !name.empty() && std::ranges::all_of(name, ::isdigit); }

std::vector<fs::path> entries(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    found.push_back(entry->path());
  }
  return found;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns true if a process whose files this one may see has the file open or mapped.
bool is_used(const std::string& path) {
  for (const auto& folder : entries("/proc")) {
    if (!is_number(folder.filename())) continue;
    for (const auto& descriptor : entries(folder / "fd")) {
      std::error_code none;
      if (fs::read_symlink(descriptor, none) == path) return true;
    }
    if (text_of(folder / "maps").find(path + "\n") != std::string::npos) return true;
  }
  return false;
}

bool is_own(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

}  // namespace

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& folder : entries("/proc")) {
    if (!is_number(folder.filename())) continue;
    const std::string words = text_of(folder / "cmdline");
    const pid_t process = std::stoi(folder.filename());
    if (process != ::getpid() && words.find(text) != std::string::npos) found.push_back(process);
  }
  return found;
}

int end_orphans(const std::string& text, double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  auto left = processes_with(text);
  while (!left.empty() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    left = processes_with(text);
  }
  for (const pid_t process : left) ::kill(process, SIGKILL);
  return static_cast<int>(left.size());
}

std::vector<std::string> leaks(const std::string& temporary_folder, const std::string& run_folder) {
  std::vector<std::string> found;
  for (const auto& path : entries(temporary_folder)) found.push_back(path);
  for (const auto& path : entries(run_folder + "/logs")) {
    if (path.extension() == ".failure" || path.extension() == ".lost") found.push_back(path);
  }
  for (const auto& path : entries(run_folder + "/checkpoints")) {
    if (path.extension() == ".tmp") found.push_back(path);
  }
  return found;
}

std::set<std::string> files_of_all(const std::string& folder) {
  std::set<std::string> found;
  for (const auto& path : entries(folder)) found.insert(path);
  return found;
}

std::vector<std::string> unused_files(const std::string& folder, const std::set<std::string>& before, double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    std::vector<std::string> found;
    for (const auto& path : files_of_all(folder)) {
      if (!before.contains(path) && is_own(path) && !is_used(path)) found.push_back(path);
    }
    if (found.empty() || Clock::now() >= deadline) return found;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace phalanx::chaos
