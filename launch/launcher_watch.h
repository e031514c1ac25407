// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "framework/comm/launch_environment.h"

namespace phalanx {

/// From now on this process ends with SIGKILL when the launcher that started it ends, in whichever way. If mpirun, or a
/// launcher below the system's init, has ended already, it does so at once. The files that then stay behind are
/// removed: mpirun's session folder (PMIX_SERVER_TMPDIR, if it is one), and the file in which the ranks meet.
///
/// The launcher is the nearest ancestor that was started without the variable by which its ranks know it, so scripts in
/// between may come and go. Not for ranks of launch_local(), which has its own way, and not for those to which a script
/// gave RANK and WORLD_SIZE alone: it may end before them, as one that calls nohup does.
///
/// A process named phalanx-tidy is forked for it; call with one thread. run_main() calls it before anything else, since
/// loading a program takes time in which its launcher may end; further calls do nothing.
void end_with_launcher(const LaunchEnvironment& launched);

/// Says that `folder` is what Open MPI's process `launcher` made for its session, and so may be removed: a folder, not
/// a link, that belongs to this user, is closed to all others, and is called ompi or prte with that process's id
/// (/tmp/ompi.24296, /tmp/prte.node1.24296.1000).
bool is_session_folder(const std::string& folder, pid_t launcher);

}  // namespace phalanx
