#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// A file inside of a tar archive.
struct TarEntry {
  std::string name;
  std::int64_t offset = 0;  // of its content in the archive
  std::int64_t size = 0;    // bytes
};

/// The regular files of an archive that is not compressed, in their order, of which only the headers are read: POSIX
/// ustar and pax (`path` and `size`), and GNU's long names. Throws DataError, with the offset, for what is no archive,
/// is damaged or ends early.
std::vector<TarEntry> index_tar(const std::filesystem::path& file);

}  // namespace phalanx
