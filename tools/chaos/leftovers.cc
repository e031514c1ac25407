// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/leftovers.h"

#include <signal.h>
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

}  // namespace

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& folder : entries("/proc")) {
    if (!is_number(folder.filename())) continue;
    std::ifstream file(folder / "cmdline", std::ios::binary);
    const std::string words((std::istreambuf_iterator<char>(file)), {});
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
    if (path.extension() == ".failure") found.push_back(path);
  }
  for (const auto& path : entries(run_folder + "/checkpoints")) {
    if (path.extension() == ".tmp") found.push_back(path);
  }
  return found;
}

}  // namespace phalanx::chaos
