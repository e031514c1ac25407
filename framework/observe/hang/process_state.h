// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/observe/hang/picture.h"

namespace phalanx {

/// Returns whether a process of this host runs, is stopped or is gone, as /proc/PID/stat says. A process whose threads
/// have ended but whose parent has not noticed it (a zombie) is gone.
RankPicture::Process process_state(pid_t process);

/// Returns the start of a process in clock ticks since the host was booted. Together with the id it identifies a
/// process, because the system uses ids again. 0: there is no such process.
std::int64_t process_start_ticks(pid_t process);

/// Returns the system call in which a thread of a process sleeps, such as "read of /data/a.bin", "write to
/// pipe:[4711]", "open of /data/a.bin" or "a lock or another thread (futex)". Returns "" if the thread runs, and if the
/// system does not say: a debugger's rights are needed for the threads of other processes.
std::string blocked_in(pid_t process, pid_t thread);

/// Returns the calls in which the threads of a process wait for a file: all of blocked_in() that name a path.
std::vector<std::string> blocked_on_files(pid_t process);

/// Returns a process and all that descend from it, parents first.
std::vector<pid_t> process_tree(pid_t root);

}  // namespace phalanx
