// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace phalanx {

/// As long as an object of this class exists, Ctrl-Z does not stop this process. It would stop the launcher of several
/// hosts only, and while that gives no answers, the leases of all hosts end. Children inherit this.
class NotStoppedByTerminal {
 public:
  NotStoppedByTerminal() : before_(::signal(SIGTSTP, SIG_IGN)) {}
  ~NotStoppedByTerminal() { ::signal(SIGTSTP, before_); }
  NotStoppedByTerminal(const NotStoppedByTerminal&) = delete;
  NotStoppedByTerminal& operator=(const NotStoppedByTerminal&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace phalanx
