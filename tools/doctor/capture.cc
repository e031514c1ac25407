// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/capture.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "framework/base/argv.h"
#include "framework/base/error.h"

namespace phalanx::doctor {
namespace {

using Clock = std::chrono::steady_clock;

/// A file in memory. Unlike a pipe it never blocks the writer, and it does not matter who keeps it open.
class Sink {
 public:
  Sink() : file_(::memfd_create("phalanx-doctor", MFD_CLOEXEC)) {
    if (file_ < 0) throw Error("cannot make a file in memory: " + std::generic_category().message(errno));
  }
  ~Sink() { ::close(file_); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  int file() const { return file_; }
  std::string text() const {
    std::string text;
    char chunk[4096];
    for (ssize_t count; (count = ::pread(file_, chunk, sizeof(chunk), static_cast<off_t>(text.size()))) > 0;) {
      text.append(chunk, static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  int file_;
};

int spawn(pid_t& process, const std::vector<std::string>& command, const Sink& output, const Sink& errors) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.file(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.file(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const auto argv = argv_of(command);
  const int status = ::posix_spawnp(&process, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return status;
}

}  // namespace

ProgramOutput capture(const std::vector<std::string>& command, std::chrono::seconds time) {
  const Sink output, errors;
  pid_t process = -1;
  if (const int problem = spawn(process, command, output, errors); problem != 0) {
    return {.status = 127, .output = {}, .errors = command.at(0) + ": " + std::generic_category().message(problem)};
  }
  int status = 0;
  bool late = false;
  for (const auto deadline = Clock::now() + time; ::waitpid(process, &status, WNOHANG) == 0;) {
    if (!late && Clock::now() > deadline) {
      late = true;
      ::kill(-process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .late = late,
          .output = output.text(),
          .errors = errors.text()};
}

}  // namespace phalanx::doctor
