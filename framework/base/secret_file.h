// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Returns the secret that several processes share: the first line of a file that only its owner may read, without
/// surrounding space. Throws ConfigError if the file is missing or can be read by others, or if the secret is shorter
/// than kMinSecretBytes.
std::string read_secret(const std::string& path);

}  // namespace phalanx
