// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx::testing {

using Bytes = std::vector<std::uint8_t>;

/// Returns a well-formed IDX file of unsigned bytes.
Bytes idx_bytes(const std::vector<std::uint32_t>& shape, const Bytes& values);

/// Creates an empty folder with this name in the folder for test files. The name must be unique among all tests.
std::filesystem::path fresh_folder(const std::string& name);

void write_plain(const std::filesystem::path& path, const Bytes& bytes);
void write_gzip(const std::filesystem::path& path, const Bytes& bytes);

Bytes read_all(const std::filesystem::path& path);

}  // namespace phalanx::testing
