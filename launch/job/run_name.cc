// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <filesystem>
#include <regex>
#include <utility>

#include "launch/job/prepare_folder.h"

namespace phalanx {

std::string choose_run_dir(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  const std::string first = "runs/" + name + "-" + stamp;
  std::string path = first;
  std::error_code unknown;
  for (int i = 2; std::filesystem::exists(path, unknown); ++i) path = first + "-" + std::to_string(i);
  return path;
}

std::string newest_run_dir(const std::string& name) {
  const std::regex form("-[0-9]{8}-[0-9]{6}(-[0-9]+)?");
  std::error_code none;
  std::pair<std::string, int> newest;  // time stamp, and number within that second
  std::string path;
  std::error_code end_of_list;
  for (std::filesystem::directory_iterator entry("runs", end_of_list), end; !end_of_list && entry != end;
       entry.increment(end_of_list)) {
    const std::string folder = entry->path().filename();
    if (!folder.starts_with(name) || !std::regex_match(folder.substr(name.size()), form)) continue;
    if (!std::filesystem::exists(entry->path() / "checkpoints", none)) continue;
    const std::string stamp = folder.substr(name.size() + 1, 15), rest = folder.substr(name.size() + 16);
    const std::pair candidate{stamp, rest.empty() ? 1 : std::stoi(rest.substr(1))};
    if (!path.empty() && candidate < newest) continue;
    newest = candidate;
    path = entry->path();
  }
  return path;
}

}  // namespace phalanx
