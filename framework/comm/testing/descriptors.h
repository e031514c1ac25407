// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "framework/base/descriptor.h"

// Faults of file descriptors, for the tests of servers in this process.
namespace phalanx::testing {

/// Limits this process to the files that are already open, as long as this object exists.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(::dup(0)), .rlim_max = before_.rlim_max};
    ::close(static_cast<int>(none.rlim_cur));
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

/// Makes the descriptors that the loops of servers wait on unusable.
inline void break_loops() {
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != "anon_inode:[eventpoll]") continue;
    ::dup2(nothing.get(), std::stoi(entry.path().filename()));
  }
}

}  // namespace phalanx::testing
