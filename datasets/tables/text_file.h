// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx {

/// Returns the text of a file without its byte order mark. A gzip-compressed file, whatever its name, is decompressed
/// and its checksum verified. Throws DataError, which names the file, if it cannot be read, is damaged or truncated, or
/// is not UTF-8 text.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace phalanx
