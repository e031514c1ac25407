#include "tools/launch/die_with_parent.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "tools/launch/exit_status.h"

namespace phalanx {

void die_with_parent(int signal, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (parent != 0 && ::getppid() != parent) ::_exit(kInterrupted);
}

}  // namespace phalanx
