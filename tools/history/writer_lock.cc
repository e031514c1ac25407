// SPDX-License-Identifier: Apache-2.0
#include "tools/history/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx::history {
namespace {

// Returns the text that the owner of the lock has written: "process 1234 on node7".
std::string owner_of(int file) {
  std::array<char, 256> text{};
  const ssize_t bytes = ::pread(file, text.data(), text.size(), 0);
  return bytes > 0 ? std::string(text.data(), static_cast<std::size_t>(bytes)) : "a process that is just starting";
}

// The text is only for messages, so a full disk does not matter.
void sign(int file) {
  const std::string owner = "process " + std::to_string(::getpid()) + " on " + host_name();
  if (::ftruncate(file, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(file, owner.data(), owner.size(), 0);
}

}  // namespace

WriterLock::WriterLock(const std::string& database) {
  const std::string path = database + ".lock";
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_.valid()) throw ConfigError(path + ": cannot be opened: " + std::strerror(errno));
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
    sign(file_.get());
    return;
  }
  const int problem = errno;
  if (problem != EWOULDBLOCK) throw ConfigError(path + ": cannot be locked: " + std::strerror(problem));
  throw ConfigError(database + ": " + owner_of(file_.get()) +
                    " writes to this database; wait for it, stop it, or use another folder");
}

}  // namespace phalanx::history
