// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/backend_plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/loaded_library.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

bool is_known(const std::string& name) {
  const auto names = Backends::global().names();
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

bool load_backend_plugin(const std::string& name) {
  if (is_known(name)) return true;
  const std::string path = plugin_folder() + "/backend_" + name + ".so";
  std::error_code ignored;
  if (name.find('/') != std::string::npos || !std::filesystem::exists(path, ignored)) return false;
  // The library of the backend may need its symbols to be visible to components that it loads itself.
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) == nullptr) {
    throw ConfigError("backend " + name + " cannot be loaded: " + link_error() +
                      "; if a library is not found, name its folder in LD_LIBRARY_PATH");
  }
  return is_known(name);
}

}  // namespace phalanx
