// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Makes the backend `name` known if it is installed as a plug-in of libphalanx.so, which does not contain the backends
/// whose libraries may be absent: plugin_folder() (framework/base/loaded_library.h) then has backend_NAME.so, which
/// registers the backend when it is loaded. Does nothing if the backend is known already. Returns true if it is known
/// now.
///
/// Throws ConfigError if the plug-in cannot be loaded, usually because the library of the backend is not found. Must
/// not be called while other threads use the registry of backends.
bool load_backend_plugin(const std::string& name);

}  // namespace phalanx
