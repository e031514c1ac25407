#include "datasets/root.h"

#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// An empty variable is as good as none: that is how shells and containers unset one.
fs::path folder_from(const char* variable) { return environment(variable).value_or(""); }

fs::path find_one(const fs::path& root, const std::string& name, const std::vector<std::string>& suffixes) {
  for (const auto& suffix : suffixes) {
    std::error_code unreadable;  // counts as missing: opening it would fail as well
    if (const auto path = root / (name + suffix); fs::exists(path, unreadable)) return path;
  }
  return {};
}

std::string any_of(const std::vector<std::string>& suffixes, const std::string& name) {
  std::string text;
  for (const auto& suffix : suffixes) text += (text.empty() ? "" : " or ") + name + suffix;
  return text;
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

}  // namespace phalanx
