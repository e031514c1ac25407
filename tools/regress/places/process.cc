// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/places/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "framework/base/argv.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/signals/signals.h"
#include "launch/temporary_folder.h"

namespace phalanx::regress {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{10};
constexpr int kNotStarted = 127, kTimedOut = 124;

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    const auto is_set = [&](const auto& variable) { return text.starts_with(variable.first + "="); };
    if (std::ranges::none_of(variables, is_set)) all.push_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

// Replaces a standard stream. Async-signal-safe.
bool redirect(const char* path, int flags, int stream) {
  const int file = ::open(path, flags, 0644);
  return file >= 0 && ::dup2(file, stream) == stream;
}

// Runs in the child. Async-signal-safe. Writes errno to `failure` if the program cannot be started.
[[noreturn]] void become(const ProcessOptions& options, char* const* arguments, char* const* environment, pid_t parent,
                         int failure) {
  ::setsid();
  die_with_parent(SIGKILL, parent);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  const bool ready = redirect(options.input.empty() ? "/dev/null" : options.input.c_str(), O_RDONLY, STDIN_FILENO) &&
                     (options.output.empty() || redirect(options.output.c_str(), kWrite, STDOUT_FILENO)) &&
                     (options.errors.empty() || redirect(options.errors.c_str(), kWrite, STDERR_FILENO)) &&
                     (options.folder.empty() || ::chdir(options.folder.c_str()) == 0);
  if (ready) ::execvpe(arguments[0], arguments, environment);
  const int reason = errno;
  [[maybe_unused]] const auto written = ::write(failure, &reason, sizeof(reason));
  ::_exit(kNotStarted);
}

// Returns the processes whose environment has this entry.
std::vector<pid_t> processes_with(const std::string& variable) {
  std::vector<pid_t> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), process);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size() || process == ::getpid()) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (('\0' + text).find('\0' + variable + '\0') != std::string::npos) found.push_back(process);
  }
  return found;
}

std::string without_line_end(std::string text) {
  text.erase(text.find_last_not_of("\r\n") + 1);
  return text;
}

}  // namespace

Process::Process(const ProcessOptions& options) : ends_group_(options.ends_group) {
  const auto variables = environment_with(options.variables);
  const auto arguments = argv_of(options.command), environment = argv_of(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + std::generic_category().message(errno));
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) throw Error("cannot start a process: " + std::generic_category().message(errno));
  if (process_ == 0) become(options, arguments.data(), environment.data(), parent, writer.get());
  writer.close();
  int reason = 0;
  ssize_t count = 0;
  while ((count = ::read(reader.get(), &reason, sizeof(reason))) < 0 && errno == EINTR) {
  }
  if (count != sizeof(reason)) return;  // the program has started, which closed the pipe
  wait(1);
  throw Error("cannot start " + options.command.at(0) + ": " + std::generic_category().message(reason));
}

Process::~Process() {
  if (status_) return;
  signal_group(SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  // The other processes of the group take a moment to end.
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  while (::kill(-process_, 0) == 0 && Clock::now() < deadline) std::this_thread::sleep_for(kPause);
}

std::optional<int> Process::poll() {
  int status = 0;
  if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) {
    by_signal_ = WIFSIGNALED(status);
    status_ = by_signal_ ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ends_group_) ::kill(-process_, SIGKILL);
  }
  return status_;
}

std::optional<int> Process::wait(double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (!poll() && Clock::now() < deadline) std::this_thread::sleep_for(kPause);
  return status_;
}

void Process::signal(int number) {
  if (status_) return;
  signaled_ = true;
  ::kill(process_, number);
}

void Process::signal_group(int number) {
  if (status_) return;
  signaled_ = true;
  ::kill(-process_, number);
}

Captured capture(const std::vector<std::string>& command, const std::string& folder, double seconds) {
  const TemporaryFolder temporary;
  const std::string output = temporary.path() + "/stdout", errors = temporary.path() + "/stderr";
  try {
    Process process({.command = command, .folder = folder, .output = output, .errors = errors});
    const auto status = process.wait(seconds);
    return {.status = status.value_or(kTimedOut),
            .output = without_line_end(read_file(output)),
            .errors = without_line_end(read_file(errors))};
  } catch (const Error& error) {
    return {.status = kNotStarted, .errors = error.what()};
  }
}

int kill_owned(const std::string& owner) {
  const std::string variable = std::string(kOwnerVariable) + "=" + owner;
  const auto first = processes_with(variable);
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  for (auto left = first; !left.empty() && Clock::now() < deadline; left = processes_with(variable)) {
    for (const pid_t process : left) ::kill(process, SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
  return static_cast<int>(first.size());
}

}  // namespace phalanx::regress
