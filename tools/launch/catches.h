#pragma once

#include <sys/types.h>

namespace phalanx {

/// Whether a process has a handler for this signal now, as /proc tells. False where there is no such process.
bool catches(pid_t process, int signal);

}  // namespace phalanx
