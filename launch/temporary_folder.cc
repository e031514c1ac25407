// SPDX-License-Identifier: Apache-2.0
#include "launch/temporary_folder.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "framework/base/blocked_signals.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr int kParentEnded = SIGUSR2;

void remove(const std::string& path) noexcept {
  std::error_code ignored;  // files that cannot be removed were not created by this program
  std::filesystem::remove_all(path, ignored);
}

// Only SIGKILL can end this process before its parent: signals for the whole group, such as Ctrl-C, are not meant for
// it.
[[noreturn]] void clean_up_after(const std::string& path, pid_t parent) {
  ::close_range(0, ~0U, 0);  // a reader of the parent's output must not wait for this process
  ::prctl(PR_SET_NAME, "phalanx-tidy");
  ::prctl(PR_SET_PDEATHSIG, kParentEnded);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, kParentEnded);
  while (::getppid() == parent) ::sigwaitinfo(&set, nullptr);
  remove(path);
  ::_exit(0);
}

}  // namespace

void TemporaryFolder::make() {
  const std::string place = environment("TMPDIR").value_or("/tmp");
  path_ = place + "/phalanx-XXXXXX";
  if (!::mkdtemp(path_.data())) {
    throw ConfigError("cannot create a folder in " + place + ": " + std::generic_category().message(errno) +
                      ". Set TMPDIR to a writable folder.");
  }
}

TemporaryFolder::TemporaryFolder(Removal removal) {
  if (removal == Removal::kAtItsEnd) {
    make();
    return;
  }
  const pid_t parent = ::getpid();
  const BlockedSignals blocked;  // no signal may end this process between the next two calls
  make();
  cleaner_ = ::fork();
  if (cleaner_ == 0) clean_up_after(path_, parent);
}

TemporaryFolder::~TemporaryFolder() {
  remove(path_);
  if (cleaner_ <= 0) return;
  ::kill(cleaner_, SIGKILL);
  while (::waitpid(cleaner_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace phalanx
