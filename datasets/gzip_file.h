// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace phalanx {

/// Reads a file from front to back. A file that is compressed by gzip, whatever its name, is decompressed and its
/// checksum verified; any other file is returned unchanged. Not thread-safe.
class GzipFile {
 public:
  /// Throws DataError if the file cannot be opened.
  explicit GzipFile(const std::filesystem::path& path);
  ~GzipFile() { gzclose(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Fills `bytes`, which are fewer than 2^31, and returns their number, which is smaller only at the end of the file.
  /// Throws DataError if the file cannot be read, is damaged or is truncated.
  std::size_t read(std::span<std::uint8_t> bytes);

  /// Returns the number of bytes that were read, after decompression.
  std::int64_t offset() const { return offset_; }

 private:
  std::string path_;
  gzFile file_;
  std::int64_t offset_ = 0;
  bool truncated_ = false;
};

}  // namespace phalanx
