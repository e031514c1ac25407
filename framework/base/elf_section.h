// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace phalanx {

/// Reads the section of this name from a 64-bit ELF file, without loading or running any of it. Returns nothing if the
/// file has no such section, if the section is longer than `longest` bytes, or if the file is damaged or no ELF file of
/// this machine's byte order. Throws DataError, "PATH: why", if the file cannot be read.
std::optional<std::string> read_elf_section(const std::string& path, const std::string& name, std::size_t longest);

}  // namespace phalanx
