// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "framework/comm/launch/launch_environment.h"

namespace phalanx {

/// From now on, this process ends with SIGKILL when the launcher that started it ends, in whatever way. If mpirun, or a
/// launcher below the system's init, has already ended, this happens at once. Files left behind are removed: mpirun's
/// session folder (PMIX_SERVER_TMPDIR, if it is one), and the file through which the ranks meet.
///
/// The launcher is the nearest ancestor that was started without the variable by which its ranks recognize it, so
/// scripts in between may come and go. Does not apply to ranks of launch_local(), which uses its own mechanism, nor to
/// ranks to which a script gave only RANK and WORLD_SIZE: such a script may end before them, e.g. if it uses nohup.
///
/// Forks a process named phalanx-tidy, so it must be called with one thread. run_main() calls it first, since the
/// launcher may end while a program is being loaded. Further calls do nothing.
void end_with_launcher(const LaunchEnvironment& launched);

/// Returns true if `folder` is the session folder of Open MPI's process `launcher` and may therefore be removed: a
/// folder, not a link, that belongs to this user, is closed to all others, and is named ompi or prte with that
/// process's id (/tmp/ompi.24296, /tmp/prte.node1.24296.1000).
bool is_session_folder(const std::string& folder, pid_t launcher);

}  // namespace phalanx
