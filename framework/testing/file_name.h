// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <string>

namespace phalanx::testing {

/// `text` as the name of a file or of a test, or part of one: what is no letter or digit becomes an underscore.
inline std::string file_name(const std::string& text) {
  std::string name;
  for (const char letter : text) name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  return name;
}

}  // namespace phalanx::testing
