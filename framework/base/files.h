// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// The whole file. Throws DataError: "PATH: why".
std::string read_file(const std::string& path);

/// Replaces the file in one step: a reader, and what is left after a crash or a power cut, has either the old text or
/// all of the new one. Blocks until the text is on disk. The folder must exist. Throws DataError, and leaves the old
/// file then.
void write_atomically(const std::string& path, std::string_view text);

}  // namespace phalanx
