// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/backend_plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/loaded_library.h"

namespace phalanx {

std::string backend_plugin_path(const std::string& name) { return plugin_folder() + "/backend_" + name + ".so"; }

bool has_backend_plugin(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(backend_plugin_path(name), ignored);
}

bool load_backend_plugin(const std::string& name) {
  if (!has_backend_plugin(name)) return false;
  // The library of the backend may need its symbols to be visible to components that it loads itself.
  if (::dlopen(backend_plugin_path(name).c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) != nullptr) return true;
  throw ConfigError("backend plug-in " + name + " cannot be loaded: " + link_error() +
                    "; if a library is not found, name its folder in LD_LIBRARY_PATH");
}

}  // namespace phalanx
