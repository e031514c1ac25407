// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx::config {

/// Returns the text of a config file. Throws ConfigError if the file cannot be read, is not a regular file (a FIFO, a
/// device) or is larger than kLargestConfig; none of it is read in the last two cases.
std::string read_config(const std::string& path);

inline constexpr std::int64_t kLargestConfig = 4 << 20;  // bytes

}  // namespace phalanx::config
