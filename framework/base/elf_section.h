// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace phalanx {

/// Reads a section of a 64-bit ELF file, by its name, without loading or running any of it. None if the file has no
/// such section, if the section is longer than `longest` bytes, and if the file is no ELF file of this machine's byte
/// order or is damaged. Throws DataError, "PATH: why", if the file cannot be read.
std::optional<std::string> read_elf_section(const std::string& path, const std::string& name, std::size_t longest);

}  // namespace phalanx
