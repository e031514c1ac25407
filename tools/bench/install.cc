// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/install.h"

#include <cstdio>

#include "framework/base/cache_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kComplete = "complete";

fs::path place_of(const Installation& installation) {
  const std::string cache = user_cache_folder();
  if (!cache.empty()) return fs::path(cache) / "phalanx" / installation.folder;
  throw ConfigError(installation.flag + ": HOME is not set, so " + installation.what + " cannot be installed" +
                    installation.remedy);
}

}  // namespace

fs::path install_once(const Installation& installation, const std::function<void(const fs::path&)>& fill) {
  fs::path folder = place_of(installation);
  if (fs::exists(folder / kComplete)) return folder;
  std::fprintf(stderr, "installing %s in %s ...\n", installation.what.c_str(), folder.c_str());
  fs::remove_all(folder);
  fs::create_directories(folder);
  try {
    fill(folder);
  } catch (...) {
    fs::remove_all(folder);
    throw;
  }
  write_atomically(folder / kComplete, "");
  return folder;
}

bool is_installed(const Installation& installation) { return fs::exists(place_of(installation) / kComplete); }

}  // namespace phalanx::bench
