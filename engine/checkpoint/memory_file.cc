// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/memory_file.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/write_all.h"

namespace phalanx {

namespace {

// Lets this process open as many files as the system permits: a large world has more shares than the usual limit.
void raise_limit_of_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int create_memory_file() {
  raise_limit_of_files();
  return ::memfd_create("phalanx-carried", MFD_CLOEXEC);
}

}  // namespace

MemoryFile::MemoryFile(std::string_view contents) : file_(create_memory_file()) {
  const int error = file_.valid() ? write_all(file_.get(), contents) : errno;
  if (error == 0) return;
  const std::string advice = error == EMFILE ? "; raise the hard limit of open files on this host (ulimit -Hn)" : "";
  throw DataError("state cannot be kept in memory: " + std::generic_category().message(error) + advice);
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

}  // namespace phalanx
