#pragma once

#include <string>

namespace phalanx::ps {

/// The secret of a server that does not belong to one job: the first line of a file that nobody but its owner may read.
/// Throws ConfigError where the file is missing, empty, or can be read by others.
std::string read_secret(const std::string& path);

}  // namespace phalanx::ps
