// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Returns the user's folder for files that a program can make again: $XDG_CACHE_HOME, or else ~/.cache. It need not
/// exist. Empty if neither that variable nor HOME is set.
std::string user_cache_folder();

}  // namespace phalanx
