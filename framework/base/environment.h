// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace phalanx {

/// Returns the value of an environment variable, or nothing if it is not set. Thread-safe while no one changes the
/// environment.
std::optional<std::string> environment(const std::string& name);

/// Returns an environment variable as a decimal integer, or nothing if it is not set. Throws a ConfigError that names
/// the variable and its value if that is no integer.
std::optional<std::int64_t> environment_int(const std::string& name);

/// Returns the name of this host as the operating system reports it, or "localhost" if it does not.
std::string host_name();

}  // namespace phalanx
