// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx {

/// What a file must be.
struct FileRecord {
  std::string name;  // in its folder
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;  // CRC-32C
};

/// Writes the file and waits until it is on disk. Its name is there for good after sync_folder(). Throws DataError:
/// "PATH: why".
FileRecord write_synced(const std::string& path, std::string_view text);

/// Waits until the names in a folder are on disk. File systems that cannot do so are let off.
void sync_folder(const std::string& path);

/// Throws DataError where the file in `folder` is not what the record says: it is missing, cut, longer or damaged.
void check_file(const std::string& folder, const FileRecord& record);

}  // namespace phalanx
