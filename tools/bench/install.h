// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace phalanx::bench {

/// A folder in the user's cache.
struct Installation {
  std::string folder;  // name of the folder, with the version of its contents
  std::string what;    // names the installed software in messages
  std::string flag;    // the flag that requires it; begins errors
  std::string remedy;  // ends errors: what to do instead; may be empty
};

/// Returns the folder. The first call has `fill` fill it. The file "complete" is written last, so a folder whose
/// installation was interrupted is filled again; one whose `fill` throws is removed. Throws ConfigError if there is no
/// cache.
std::filesystem::path install_once(const Installation& installation,
                                   const std::function<void(const std::filesystem::path&)>& fill);

/// Returns true if install_once() would not call `fill`.
bool is_installed(const Installation& installation);

}  // namespace phalanx::bench
