// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx::chaos {

/// Damages one file of a checkpoint, at a place that follows from the seed: "checkpoint_torn" removes the file,
/// "checkpoint_truncated" cuts it, and "checkpoint_flipped" changes one bit. Returns the file's path. Throws Error if
/// the checkpoint has no files, and DataError if a file cannot be changed.
std::string damage(const std::string& checkpoint, const std::string& how, std::uint64_t seed);

}  // namespace phalanx::chaos
