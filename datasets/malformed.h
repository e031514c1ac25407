// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace phalanx {

/// Throws the DataError "FILE: byte OFFSET: PROBLEM". The offset is where a reader of a hex dump would look.
[[noreturn]] void throw_malformed(const std::filesystem::path& file, std::int64_t offset, const std::string& problem);

}  // namespace phalanx
