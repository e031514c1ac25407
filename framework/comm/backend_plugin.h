// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

// Parts of backends whose libraries may be absent are plug-ins of libphalanx.so, which does not contain them.

/// Returns the path at which the plug-in `name` is installed: backend_NAME.so in plugin_folder()
/// (framework/base/loaded_library.h).
std::string backend_plugin_path(const std::string& name);

/// Returns true if the plug-in is installed.
bool has_backend_plugin(const std::string& name);

/// Loads the plug-in if it is installed; its static initializers register what it contains. Returns true if it is.
///
/// Throws ConfigError if it cannot be loaded, usually because the library of the backend is not found. Must not be
/// called while other threads use the registry of backends.
bool load_backend_plugin(const std::string& name);

}  // namespace phalanx
