// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/backend_plugin.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/loaded_library.h"

// //tests/cpp loads a real one.
namespace phalanx {
namespace {

TEST(BackendPlugin, WithoutAFileNothingIsLoaded) {
  EXPECT_FALSE(load_backend_plugin("carrier_pigeons"));
  EXPECT_FALSE(load_backend_plugin("../../etc/passwd"));
}

TEST(BackendPlugin, ThatCannotBeLoadedIsAnErrorThatSaysWhy) {
  const std::string path = plugin_folder() + "/backend_broken.so";
  std::error_code error;
  std::filesystem::create_directories(plugin_folder(), error);
  if (!std::ofstream(path) || error) GTEST_SKIP() << plugin_folder() << " cannot be written";
  try {
    load_backend_plugin("broken");
    FAIL() << "an empty file was loaded";
  } catch (const ConfigError& refused) {
    EXPECT_NE(std::string(refused.what()).find("backend plug-in broken cannot be loaded: " + path), std::string::npos)
        << refused.what();
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace phalanx
