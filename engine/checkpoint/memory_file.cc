// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/memory_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/write_all.h"

namespace phalanx {

MemoryFile::MemoryFile(std::string_view contents) : file_(::memfd_create("phalanx-carried", MFD_CLOEXEC)) {
  const int error = file_.valid() ? write_all(file_.get(), contents) : errno;
  if (error != 0) throw DataError("state cannot be kept in memory: " + std::generic_category().message(error));
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

}  // namespace phalanx
