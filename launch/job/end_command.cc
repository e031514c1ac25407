// SPDX-License-Identifier: Apache-2.0
#include "launch/job/end_command.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <thread>

#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/base/write_all.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::optional<std::filesystem::file_time_type> time_of(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? std::nullopt : std::optional(time);
}

std::string why(int error_number) { return std::generic_category().message(error_number); }

// Returns a file in memory, at its beginning. Unlike a pipe, it does not care if the command reads it.
Descriptor file_of(std::string_view text) {
  Descriptor file(::memfd_create("summary", MFD_CLOEXEC));
  if (!file.valid()) throw Error("was not started, for want of a file in memory: " + why(errno));
  if (const int error = write_all(file.get(), text); error != 0)
    throw Error("was not started, for want of a file in memory: " + why(error));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Runs in the child, where other threads do not exist.
[[noreturn]] void become_shell(const char* command, int input) {
  constexpr unsigned kFirstOther = 3;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int ignored : {SIGPIPE, SIGXFSZ}) ::signal(ignored, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(input, STDIN_FILENO);
  ::close_range(kFirstOther, ~0U, 0);  // among them the lock of the run folder, which the command must not keep
  ::execl("/bin/sh", "sh", "-c", command, nullptr);
  ::_exit(127);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit status " + std::to_string(WEXITSTATUS(status));
}

// Throws Error if the command does not end in time, or with another status than 0.
void run_shell(const std::string& command, const std::string& input, double timeout) {
  const Descriptor file = file_of(input);
  const pid_t child = ::fork();
  if (child < 0) throw Error("could not be started: " + why(errno));
  if (child == 0) become_shell(command.c_str(), file.get());
  ::setpgid(child, child);  // fails harmlessly if the child was faster
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      throw Error(format_text("was killed because it did not end within %g s", timeout));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error(how_it_ended(status));
}

}  // namespace

EndCommand::EndCommand(const WatchConfig& watch, const std::string& name, const RunFolder& folder)
    : watch_(watch), name_(name), folder_(folder), earlier_(time_of(folder.summary())) {}

void EndCommand::run(int status, const std::string& error) const {
  if (watch_.on_end.empty()) return;
  standard_output().flush();
  try {
    run_shell(watch_.on_end, input(status, error), watch_.on_end_timeout);
  } catch (const std::exception& problem) {
    standard_error().write("Warning: watch.on_end: \"" + watch_.on_end + "\" " + problem.what() +
                           "; the run itself is not affected\n");
  }
}

std::string EndCommand::input(int status, const std::string& error) const {
  Json object{{"exit_status", status}, {"run_folder", folder_.path()}, {"name", name_}};
  if (!error.empty()) object["error"] = error;
  const auto written = time_of(folder_.summary());
  if (written && written != earlier_) object.update(Json::parse(read_file(folder_.summary())));
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace phalanx
