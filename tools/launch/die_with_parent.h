#pragma once

#include <sys/types.h>

namespace phalanx {

/// From now on the kernel sends `signal` to this process when the thread that forked it ends, in whichever way. Holds
/// over exec(), not over fork(). Async-signal-safe.
///
/// Where `parent` is given and has ended already, this process ends at once with kInterrupted.
void die_with_parent(int signal, pid_t parent = 0);

}  // namespace phalanx
