// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"

namespace phalanx::chaos {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

}  // namespace

std::string enter_own_mounts() {
  if (::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return "";
  return "file systems cannot be mounted here (" + reason_of(errno) + "); run it as root, with CAP_SYS_ADMIN";
}

SmallDisk::SmallDisk(std::string folder, std::int64_t bytes) : folder_(std::move(folder)) {
  const std::string size = "mode=1777,size=" + std::to_string(bytes);
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, size.c_str()) == 0) return;
  throw Error("cannot mount a file system at " + folder_ + ": " + reason_of(errno));
}

SmallDisk::~SmallDisk() { ::umount2(folder_.c_str(), MNT_DETACH); }

void SmallDisk::fill() {
  const Descriptor file(::open(ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid() && errno != ENOSPC) throw Error(ballast() + ": " + reason_of(errno));
  // Ever smaller pieces, down to single bytes: no line of a log fits any more.
  for (std::size_t size = 1 << 16; file.valid() && size > 0; size /= 16) {
    const std::string piece(size, '\0');
    while (::write(file.get(), piece.data(), piece.size()) > 0) {
    }
  }
}

void SmallDisk::free() {
  if (::unlink(ballast().c_str()) != 0 && errno != ENOENT) throw Error(ballast() + ": " + reason_of(errno));
}

}  // namespace phalanx::chaos
