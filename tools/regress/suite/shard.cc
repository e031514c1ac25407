// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/suite/shard.h"

#include <cstdio>

#include "framework/base/error.h"

namespace phalanx::regress {

Shard parse_shard(const std::string& text) {
  unsigned number = 0, count = 0;
  int length = 0;
  const bool read = std::sscanf(text.c_str(), "%6u/%6u%n", &number, &count, &length) == 2 &&
                    static_cast<std::size_t>(length) == text.size();
  if (!read || number < 1 || number > count) {
    throw ConfigError("--shard=" + text + ": expected I/N with I from 1 to N, such as 1/4");
  }
  return {number, count};
}

}  // namespace phalanx::regress
