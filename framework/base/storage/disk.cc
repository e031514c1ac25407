// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/write_all.h"

namespace phalanx {
namespace {

[[noreturn]] void fail(const std::string& path, int reason) {
  throw DataError(path + ": " + std::generic_category().message(reason));
}

// Returns 0 or an errno.
int write_and_sync(int file, std::string_view text) {
  if (const int reason = write_all(file, text); reason != 0) return reason;
  return ::fsync(file) == 0 ? 0 : errno;
}

}  // namespace

FileRecord write_synced(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) fail(path, errno);
  int reason = write_and_sync(file, text);
  // Network file systems report some failures only when a file is closed.
  if (::close(file) != 0 && reason == 0) reason = errno;
  if (reason != 0) fail(path, reason);
  return {std::filesystem::path(path).filename(), text.size(), crc32c(text.data(), text.size())};
}

void sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail(path, errno);
  const int reason = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  if (reason == EIO || reason == ENOSPC) fail(path, reason);
}

void check_file(const std::string& folder, const FileRecord& record) {
  const std::string path = folder + "/" + record.name;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(path + ": is missing, or cannot be read");
  std::vector<char> chunk(1 << 20);
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    const auto count = static_cast<std::size_t>(file.gcount());
    crc = crc32c(chunk.data(), count, crc);
    bytes += count;
  }
  if (file.bad()) throw DataError(path + ": cannot be read");
  if (bytes != record.bytes) {
    throw DataError(path + ": has " + std::to_string(bytes) + " bytes, but was written with " +
                    std::to_string(record.bytes));
  }
  if (crc != record.crc) throw DataError(path + ": is damaged: its checksum does not match");
}

}  // namespace phalanx
