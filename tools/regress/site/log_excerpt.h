// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace phalanx::site {

/// The part of a log that a reader needs first.
struct LogExcerpt {
  std::string tail;                 // its last lines, printable
  bool whole = true;                // the tail is the whole log
  std::vector<std::string> stalls;  // the last reports that ranks waited for others, in order
};

inline constexpr std::size_t kTailLines = 40, kTailBytes = 8192, kMaxStalls = 20;

/// Reads a log, at most its last megabyte. A log that cannot be read is empty.
LogExcerpt read_excerpt(const std::string& path);

}  // namespace phalanx::site
