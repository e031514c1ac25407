// SPDX-License-Identifier: Apache-2.0
#include "launch/local/print_to_console.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "framework/base/console.h"
#include "framework/base/printable.h"

namespace phalanx {
namespace {

int console_file = STDERR_FILENO;
int output_file = -1;              // the standard output that was saved; -1: none
Console* saved_console = nullptr;  // null: standard error is the console

}  // namespace

void print_to_console(std::string_view line) {
  (saved_console ? *saved_console : standard_error())
      .write((::isatty(console_file) != 0 ? "\r\033[K" : "") + printable(line) + "\n");
}

void save_console() {
  const int saved = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (saved < 0) return;
  console_file = saved;
  output_file = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  saved_console = new Console(saved);  // never destroyed: threads may write until the process ends
}

void take_over_console() {
  if (saved_console == nullptr) return;
  standard_output().flush();
  ::dup2(console_file, STDERR_FILENO);
  if (output_file >= 0) ::dup2(output_file, STDOUT_FILENO);
}

}  // namespace phalanx
