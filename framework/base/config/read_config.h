// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx::config {

/// The text of a config file. Throws ConfigError for what cannot be read, what is not a regular file (a FIFO, a device)
/// and what is larger than kLargestConfig, without reading any of it.
std::string read_config(const std::string& path);

inline constexpr std::int64_t kLargestConfig = 4 << 20;  // bytes

}  // namespace phalanx::config
