// SPDX-License-Identifier: Apache-2.0
#include "datasets/root.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// An empty variable counts as unset, because shells and containers often unset a variable that way.
fs::path folder_from(const char* variable) { return environment(variable).value_or(""); }

fs::path find_one(const fs::path& root, const std::string& name, const std::vector<std::string>& suffixes) {
  for (const auto& suffix : suffixes) {
    std::error_code unreadable;  // an unreadable path counts as missing: opening it would fail, too
    if (const auto path = root / (name + suffix); fs::exists(path, unreadable)) return path;
  }
  return {};
}

std::string any_of(const std::vector<std::string>& suffixes, const std::string& name) {
  std::string text;
  for (const auto& suffix : suffixes) text += (text.empty() ? "" : " or ") + name + suffix;
  return text;
}

std::vector<std::string> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

bool is_like(const std::string& name, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

fs::path dataset_root(const std::string& configured, const std::string& name) {
  fs::path root = configured;
  if (root.empty()) {
    const auto data = folder_from("PHALANX_DATA");
    root = (data.empty() ? "data" : data) / name;
  }
  const auto caller = folder_from("BUILD_WORKING_DIRECTORY");
  return ((caller.empty() ? fs::current_path() : caller) / root).lexically_normal();
}

std::vector<fs::path> find_files(const DatasetFiles& files, const fs::path& root) {
  std::vector<fs::path> found;
  std::string missing;
  for (const auto& name : files.names) {
    found.push_back(find_one(root, name, files.suffixes));
    if (found.back().empty()) missing += "\n  " + any_of(files.suffixes, name);
  }
  if (missing.empty()) return found;
  std::error_code unreadable;
  throw DataError("dataset \"" + files.dataset + "\": files are missing from " + root.string() +
                  (fs::is_directory(root, unreadable) ? "" : " (no such folder)") + ":" + missing + "\n" +
                  files.how_to_get);
}

bool has_file_like(const std::string& pattern, const fs::path& root) {
  std::error_code unreadable;
  return std::ranges::any_of(names_in(root, unreadable), [&](const auto& name) { return is_like(name, pattern); });
}

std::vector<fs::path> files_like(const std::vector<std::string>& patterns, const fs::path& root,
                                 const std::string& key) {
  std::error_code error;
  auto names = names_in(root, error);
  if (error) throw DataError(root.string() + ": " + error.message());
  std::ranges::sort(names);
  std::vector<fs::path> found;
  for (const auto& pattern : patterns) {
    const auto before = found.size();
    bool any = false;
    for (const auto& name : names) {
      if (!is_like(name, pattern)) continue;
      any = true;
      const auto path = root / name;
      if (std::find(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(before), path) ==
          found.begin() + static_cast<std::ptrdiff_t>(before)) {
        found.push_back(path);
      }
    }
    if (!any) throw DataError(key + ": no file in " + root.string() + " matches \"" + pattern + "\"");
  }
  return found;
}

}  // namespace phalanx
