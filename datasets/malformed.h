// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace phalanx {

/// Throws DataError with the message "FILE: byte OFFSET: PROBLEM". The offset counts bytes from the start of the file.
[[noreturn]] void throw_malformed(const std::filesystem::path& file, std::int64_t offset, const std::string& problem);

}  // namespace phalanx
