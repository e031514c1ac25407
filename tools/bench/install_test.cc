// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/install.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/temporary_folder.h"

namespace phalanx::bench {
namespace {

using ::testing::ThrowsMessage;

class Install : public ::testing::Test {
 protected:
  Install() { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  ~Install() override { ::unsetenv("XDG_CACHE_HOME"); }

  TemporaryFolder cache_;
  Installation installation_{.folder = "x-1", .what = "x==1", .flag = "--against x", .remedy = "; use y"};
};

TEST_F(Install, FillsTheFolderOnce) {
  int fills = 0;
  const auto fill = [&](const std::filesystem::path& folder) {
    ++fills;
    write_atomically(folder / "file", "text");
  };
  EXPECT_FALSE(is_installed(installation_));
  const auto folder = install_once(installation_, fill);
  EXPECT_EQ(folder, std::filesystem::path(cache_.path()) / "phalanx" / "x-1");
  EXPECT_TRUE(is_installed(installation_));
  EXPECT_EQ(install_once(installation_, fill), folder);
  EXPECT_EQ(fills, 1);
  EXPECT_EQ(read_file(folder / "file"), "text");
}

TEST_F(Install, LeavesNothingOfAnInstallationThatFails) {
  const auto fail = [](const std::filesystem::path& folder) {
    write_atomically(folder / "half", "");
    throw ConfigError("no network");
  };
  EXPECT_THAT([&] { install_once(installation_, fail); }, ThrowsMessage<ConfigError>("no network"));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(cache_.path()) / "phalanx" / "x-1"));
}

TEST_F(Install, FillsAFolderAgainThatWasNotCompleted) {
  const auto folder = std::filesystem::path(cache_.path()) / "phalanx" / "x-1";
  std::filesystem::create_directories(folder);
  write_atomically(folder / "half", "");
  install_once(installation_, [](const std::filesystem::path&) {});
  EXPECT_FALSE(std::filesystem::exists(folder / "half"));
}

TEST_F(Install, NeedsACache) {
  const char* const home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_THAT([&] { is_installed(installation_); },
              ThrowsMessage<ConfigError>("--against x: HOME is not set, so x==1 cannot be installed; use y"));
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace phalanx::bench
