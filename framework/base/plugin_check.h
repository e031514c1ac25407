// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Compares the stamp of a plug-in (plugin_stamp.h) with this program's. Returns the problem with the plug-in, without
/// its path, or an empty string. Reads the file, because loading a library runs its initialisers, which share classes
/// with this program. Throws DataError for a file that is no library.
std::string stamp_problem(const std::string& path);

}  // namespace phalanx
