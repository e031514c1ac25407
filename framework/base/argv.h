// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Returns words in the form in which exec and posix_spawn take arguments or an environment: pointers to the words, and
/// a null pointer. They are valid as long as `words` does not change.
inline std::vector<char*> argv_of(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));  // the callee does not write there
  argv.push_back(nullptr);
  return argv;
}

}  // namespace phalanx
