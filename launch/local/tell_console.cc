// SPDX-License-Identifier: Apache-2.0
#include "launch/local/tell_console.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "framework/base/console.h"
#include "framework/base/printable.h"

namespace phalanx {
namespace {

int console_file = STDERR_FILENO;
Console* kept_console = nullptr;  // null: standard error is the console

}  // namespace

void tell_console(std::string_view line) {
  (kept_console ? *kept_console : standard_error())
      .write((::isatty(console_file) != 0 ? "\r\033[K" : "") + printable(line) + "\n");
}

void keep_console() {
  const int kept = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept < 0) return;
  console_file = kept;
  kept_console = new Console(kept);  // never destroyed, like those of the standard streams
}

}  // namespace phalanx
