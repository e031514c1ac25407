// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace phalanx {

/// Returns the secret that the user has given the processes of a job: the value of PHALANX_JOB_SECRET, or the first
/// line of the file that PHALANX_JOB_SECRET_FILE names (read_secret()). Returns nothing if neither is set. Throws
/// ConfigError if both are set, if the file cannot be used, or if the secret has fewer than kMinSecretBytes characters.
std::optional<std::string> job_secret();

}  // namespace phalanx
