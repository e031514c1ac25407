// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx {

/// Returns the text of a file without its byte order mark. A file that gzip has compressed, whatever its name, is
/// decompressed and its checksum compared. Throws DataError that names the file if it cannot be read, is damaged or cut
/// short, or is not UTF-8 text.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace phalanx
