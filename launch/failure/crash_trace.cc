// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/crash_trace.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "framework/base/write_all.h"
#include "launch/failure/failure.h"

namespace phalanx {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr std::size_t kStackBytes = 128 * 1024;  // for unwinding and for reading symbols

// The paths of the process, which the handler reads. They are never freed.
const char* trace_path = nullptr;
const char* log_file_path = nullptr;
bool prints = false;

int trace_file = -1;
int log_file = -1;

const char* kept(const std::string& text) { return ::strdup(text.c_str()); }

// Called by the signal handler, for each line.
void write_trace(const char* data, std::size_t size) {
  if (trace_file < 0) trace_file = ::open(trace_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (log_file < 0) log_file = ::open(log_file_path, O_WRONLY | O_APPEND | O_CLOEXEC);
  const std::string_view text(data, size);
  if (trace_file >= 0) (void)write_all(trace_file, text);
  if (log_file >= 0) (void)write_all(log_file, text);
  if (prints) (void)write_all(STDERR_FILENO, text);
}

// Lets the handler run on a stack of its own, since there is no room for it after an overflow.
void use_own_stack(int signal) {
  struct sigaction action = {};
  ::sigaction(signal, nullptr, &action);
  action.sa_flags |= SA_ONSTACK;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void trace_crashes(const std::string& log_folder, int rank, const std::string& log, bool on_stderr) {
  if (kSanitized || trace_path != nullptr) return;
  const std::string path = std::filesystem::absolute(crash_path(log_folder, rank)).string();
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // of a run before
  trace_path = kept(path);
  log_file_path = kept(std::filesystem::absolute(log).string());
  prints = on_stderr;
  struct sigaction stop = {};
  ::sigaction(SIGTERM, nullptr, &stop);
  google::InstallFailureWriter(write_trace);
  google::InstallFailureSignalHandler();
  ::sigaction(SIGTERM, &stop, nullptr);  // glog takes it for a crash; here it stops a run
  static std::array<char, kStackBytes> own_stack;
  const stack_t stack{.ss_sp = own_stack.data(), .ss_flags = 0, .ss_size = own_stack.size()};
  if (::sigaltstack(&stack, nullptr) != 0) return;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) use_own_stack(signal);
}

}  // namespace phalanx
