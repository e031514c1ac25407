// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace phalanx {

/// The value of an environment variable; nothing when it is not set. Thread-safe while nobody changes the environment.
std::optional<std::string> environment(const std::string& name);

/// The same as a decimal integer. Throws ConfigError naming the variable and its value when it is not one.
std::optional<std::int64_t> environment_int(const std::string& name);

/// This machine's name as the operating system has it.
std::string host_name();

}  // namespace phalanx
