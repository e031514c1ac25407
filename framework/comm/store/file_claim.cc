// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/file_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/file_identity.h"
#include "framework/comm/store/polling.h"

namespace phalanx {
namespace {

// Magic numbers of file systems that keep flock() separate from locks of byte ranges. NFS and others merge them.
constexpr std::uint32_t kLocal[] = {
    0xEF53,      // ext4
    0x58465342,  // XFS
    0x9123683E,  // Btrfs
    0xF2F52010,  // F2FS
    0x2FC12FC1,  // ZFS
    0x01021994,  // tmpfs
    0x794C7630,  // overlayfs
};

// A byte beyond the end of any store.
constexpr off_t kClaimedByte = off_t{1} << 62;

[[noreturn]] void refuse_call(const std::string& path, const char* call) {
  refuse_file(path, std::string("cannot ") + call + ": " + std::strerror(errno));
}

// c10d itself would make the file readable by everybody and follow a link that somebody else made.
Descriptor open_own(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) refuse_call(path, "open");
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) refuse_call(path, "stat");
  if (status.st_uid != ::geteuid()) refuse_file(path, "belongs to another user; name a file of your own");
  return file;
}

struct flock claim_of(short type) {
  return {.l_type = type, .l_whence = SEEK_SET, .l_start = kClaimedByte, .l_len = 1, .l_pid = 0};
}

bool keeps_claims(int file) {
  struct statfs system{};
  if (::fstatfs(file, &system) != 0) return false;
  auto any = claim_of(F_WRLCK);
  return std::ranges::count(kLocal, static_cast<std::uint32_t>(system.f_type)) > 0 &&
         ::fcntl(file, F_OFD_GETLK, &any) == 0;
}

// Decides only by age: ranks that have waited for a whole timeout have given up.
void refuse_old(const std::string& path, int file, Seconds timeout) {
  struct stat status{};
  if (::fstat(file, &status) != 0) refuse_call(path, "stat");
  const Seconds age(std::difftime(std::time(nullptr), status.st_mtime));
  if (status.st_size > 0 && age > timeout + Seconds(1)) {  // times of files may be rounded to seconds
    refuse_file(path, "an earlier run left it, last written " + in_seconds(age) + " ago; remove it or name another");
  }
}

// Takes the lock that c10d takes for each operation.
void lock(const std::string& path, int file, Seconds timeout) {
  const auto locked = [&] {
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) refuse_call(path, "lock");
    return false;
  };
  if (poll_until(locked, timeout)) return;
  throw CommError(CommError::Kind::kTimeout,
                  "file store " + path + ": waited " + in_seconds(timeout) + " for its lock; another process holds it");
}

}  // namespace

FileClaim::FileClaim(const std::string& path, Seconds timeout) {
  for (;;) {
    Descriptor file = open_own(path);
    if (!keeps_claims(file.get())) {
      refuse_old(path, file.get(), timeout);
      return;
    }
    lock(path, file.get(), timeout);
    if (FileIdentity::of(path) != FileIdentity::of(file.get())) continue;  // it was removed before it was locked
    auto claims = claim_of(F_WRLCK), own = claim_of(F_RDLCK);
    if (::fcntl(file.get(), F_OFD_GETLK, &claims) != 0) refuse_call(path, "read the claims");
    if (claims.l_type == F_UNLCK && ::ftruncate(file.get(), 0) != 0) refuse_call(path, "empty");
    if (::fcntl(file.get(), F_OFD_SETLK, &own) != 0) refuse_call(path, "claim");
    ::flock(file.get(), LOCK_UN);
    file_ = std::move(file);
    return;
  }
}

void refuse_file(const std::string& path, const std::string& why) {
  throw CommError(CommError::Kind::kSystem, "file store " + path + ": " + why);
}

}  // namespace phalanx
