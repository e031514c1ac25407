#pragma once

#include <string>

#include "framework/comm/communicator.h"
#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx {

/// The registered name of the backend that connect() takes. Throws ConfigError for one that is not there.
std::string choose_backend(const std::string& wanted, const Place& place);

/// Connects this process to the others that its launcher started. `backend` is a registered name, or "auto": the
/// fastest that reaches all ranks (inproc for one, shm on one host, else mpi). Collective. Throws ConfigError for a
/// backend that is not there or cannot connect these ranks, CommError when peers do not come.
CommunicatorPtr connect(const std::string& backend, const LaunchEnvironment& launched, Seconds timeout);

}  // namespace phalanx
