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

/// Returns the regular files of an archive that is not compressed, in their order, of which only the headers are read:
/// POSIX ustar and pax (`path`, `linkpath` and `size`), and GNU's long names. A hard link is an entry with the content
/// of the file that it names. Throws DataError, with the offset, for what is no archive, is damaged or ends early, and
/// for a link to a file that does not come before it.
std::vector<TarEntry> index_tar(const std::filesystem::path& file);

}  // namespace phalanx
