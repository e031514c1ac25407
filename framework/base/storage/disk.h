// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx {

/// The size and checksum that a file must have.
struct FileRecord {
  std::string name;  // without its folder
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;  // CRC-32C
};

/// Writes the file and waits until its contents are on disk. Its name is on disk only after sync_folder(). Throws
/// DataError: "PATH: why".
FileRecord write_synced(const std::string& path, std::string_view text);

/// Waits until the names in a folder are on disk. File systems that cannot sync a folder are tolerated.
void sync_folder(const std::string& path);

/// Throws DataError unless the file in `folder` matches the record: if it is missing, cut, longer or damaged.
void check_file(const std::string& folder, const FileRecord& record);

}  // namespace phalanx
