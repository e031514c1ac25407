// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <string>

namespace phalanx::testing {

/// Converts `text` to the name of a file or a test, or a part of one: all characters except letters and digits become
/// underscores.
inline std::string file_name(const std::string& text) {
  std::string name;
  for (const char letter : text) name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  return name;
}

}  // namespace phalanx::testing
