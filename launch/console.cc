#include "launch/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "framework/base/console.h"

namespace phalanx {
namespace {

int console_file = STDERR_FILENO;

// Of the file as it was when somebody first told something.
Console& console() {
  static Console& console = console_file == STDERR_FILENO ? standard_error() : *new Console(console_file);
  return console;
}

}  // namespace

void tell_console(std::string_view line) {
  console().write((::isatty(console_file) != 0 ? "\r\033[K" : "") + std::string(line) + "\n");
}

void keep_console() {
  const int kept = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept >= 0) console_file = kept;
}

}  // namespace phalanx
