// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/hydra.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProxy = "hydra_pmi_proxy";

struct ProcessEntry {
  std::string name{};
  pid_t parent = 0;
  std::string start{};  // in clock ticks since the system was started
};

// Reads /proc/PID/stat: "PID (NAME) STATE PARENT ...", where the name may contain spaces and parentheses, and the start
// time is the 20th word after it.
std::optional<ProcessEntry> read_process(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos) return std::nullopt;
  ProcessEntry entry{.name = text.substr(open + 1, close - open - 1)};
  std::istringstream words(text.substr(close + 1));
  std::string word;
  constexpr int kParent = 2, kStart = 20;
  for (int i = 1; i <= kStart && words >> word; ++i) {
    if (i == kParent) entry.parent = static_cast<pid_t>(std::stol(word));
    if (i == kStart) entry.start = word;
  }
  return entry;
}

}  // namespace

std::string HydraProxy::prefix() const { return program.empty() ? "" : fs::path(program).parent_path().parent_path(); }

std::optional<HydraProxy> find_hydra_proxy() {
  for (pid_t process = ::getppid(); process > 1;) {
    const auto entry = read_process(process);
    if (!entry) return std::nullopt;
    if (entry->name == kProxy) {
      std::error_code hidden;
      const std::string number = std::to_string(process);
      return HydraProxy{.program = fs::read_symlink("/proc/" + number + "/exe", hidden),
                        .id = number + "-" + entry->start};
    }
    process = entry->parent;
  }
  return std::nullopt;
}

}  // namespace phalanx
