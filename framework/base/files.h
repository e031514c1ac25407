// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// Returns the contents of a file. Throws DataError: "PATH: why".
std::string read_file(const std::string& path);

/// Replaces the file in one step: a reader sees either the old text or all of the new one, even after a crash or a
/// power cut. Blocks until the text is on disk. The folder must exist. Throws DataError and leaves the old file in
/// place if that fails.
void write_atomically(const std::string& path, std::string_view text);

}  // namespace phalanx
