// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// A file in a tar archive.
struct TarEntry {
  std::string name;
  std::int64_t offset = 0;  // offset of the content in the archive
  std::int64_t size = 0;    // bytes
};

/// Returns the regular files of an uncompressed archive, in their order. Reads only the headers: POSIX ustar and pax
/// (`path`, `linkpath` and `size`), and GNU's long names. A hard link becomes an entry with the content of its target.
/// Throws DataError, with the offset, for a file that is not an archive, is damaged or ends early, and for a link whose
/// target does not precede it.
std::vector<TarEntry> index_tar(const std::filesystem::path& file);

}  // namespace phalanx
