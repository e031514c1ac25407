// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/take_overrides.h"

#include "framework/base/error.h"
#include "tools/flags/parse_flags.h"

namespace phalanx {

std::vector<std::string> take_overrides(std::vector<std::string>& words) {
  std::vector<std::string> overrides, rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto flag = as_flag(words[i]);
    if (!flag || flag->name != "set") {
      rest.push_back(words[i]);
      continue;
    }
    if (!flag->value && i + 1 == words.size()) throw ConfigError("--set needs key=value after it");
    overrides.push_back(flag->value ? *flag->value : words[++i]);
  }
  words = rest;
  return overrides;
}

}  // namespace phalanx
