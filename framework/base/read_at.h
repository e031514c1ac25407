// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace phalanx {

/// Reads the `bytes` bytes that begin at `offset` of an open file. Returns the number of bytes read, which is smaller
/// only if the file ends before, or -1 if the file cannot be read, and sets errno. Thread-safe: the file has no current
/// position that changes.
inline std::int64_t read_at(int file, void* to, std::size_t bytes, std::int64_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file, static_cast<char*>(to) + done, bytes - done,
                                static_cast<off_t>(offset + static_cast<std::int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<std::int64_t>(done);
}

}  // namespace phalanx
