// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phalanx {

/// The directory of a zip archive whose entries are stored without compression, as torch.save() writes it (APPNOTE.TXT
/// 6.3.10 of PKWARE, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16). Archives above 4 GB (zip64) are supported. Opening one
/// reads only the directory. All functions throw a DataError with the file and the offset if the archive is cut off,
/// compressed or damaged.
class StoredZip {
 public:
  struct Entry {
    std::string name;
    std::uint64_t header = 0;  // offset of its local header
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
  };

  explicit StoredZip(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;  // null if there is no such entry

  /// Reads an entry into `into`, which has entry.bytes bytes, and checks its checksum.
  void read(const Entry& entry, char* into) const;
  std::string read(const Entry& entry) const;

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  std::vector<Entry> entries_;
};

/// Writes such an archive into memory. Contents begin at multiples of 64 bytes.
class StoredZipWriter {
 public:
  /// `path` is for messages. Throws DataError above 4 GB.
  explicit StoredZipWriter(std::string path) : path_(std::move(path)) {}

  void add(const std::string& name, std::string_view content);
  std::string finish();

 private:
  void check_size() const;

  std::string path_, file_, directory_;
  std::uint16_t entries_ = 0;
};

}  // namespace phalanx
