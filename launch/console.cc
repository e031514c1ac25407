#include "launch/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "framework/base/no_sigpipe.h"

namespace phalanx {
namespace {

int console = STDERR_FILENO;

}  // namespace

void tell_console(std::string_view line) {
  const NoSigpipe guard;
  const std::string text = (::isatty(console) != 0 ? "\r\033[K" : "") + std::string(line) + "\n";
  // What does not fit into a pipe at once would mix with others' lines all the same.
  if (::write(console, text.data(), text.size()) < 0) return;  // there is nowhere to tell of it
}

void keep_console() {
  const int kept = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept >= 0) console = kept;
}

}  // namespace phalanx
