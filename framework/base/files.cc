// SPDX-License-Identifier: Apache-2.0
#include "framework/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

#include "framework/base/atomic_file.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw DataError(path + ": " + std::generic_category().message(errno));
}

}  // namespace

std::string read_file(const std::string& path) try {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) fail(path);
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (const ssize_t count = ::read(file.get(), chunk.data(), chunk.size())) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path);
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  return text;
} catch (const std::bad_alloc&) {
  throw DataError(path + ": there is not enough memory to read it");
}

void write_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text, 0);
  file.replace();
}

}  // namespace phalanx
