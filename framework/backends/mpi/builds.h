// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/comm/backend.h"
#include "framework/comm/launch/launch_environment.h"

namespace phalanx::mpi {

/// The kinds of MPI for which the backend is compiled (api.h). A process uses only one of them.
enum class Kind {
  kOpenMpi,     // with which the program, or the plug-in of libphalanx.so, is linked
  kStandardAbi  // any MPI with the standard ABI of MPI 5.0, such as MPICH and Intel MPI; opened at run time
};

/// The functions of backend mpi, for one kind of MPI.
struct Build {
  CommunicatorPtr (*connect)(ConnectOptions options) = nullptr;
  decltype(BackendTraits::broadcast) broadcast = nullptr;
  decltype(BackendTraits::library_version) library_version = nullptr;  // of an MPI that may not run
};

/// Adds a build to this program. Each calls it in a static initializer. Returns true.
bool add_build(Kind kind, const Build& build);

/// Returns the kind of MPI whose launcher set these variables: Open MPI for mpirun and for PMIx, the standard ABI for
/// Hydra (mpiexec of MPICH and Intel MPI). For other launchers with PMI, such as srun --mpi=pmi2, it is the standard
/// ABI if `has_abi_library()`, which is called only then. Without a launcher it is Open MPI if `has_open_mpi`.
Kind kind_of_launcher(const Variables& variables, bool has_open_mpi, const std::function<bool()>& has_abi_library);

/// Returns the build for this kind of MPI. Loads the plug-in with the one for Open MPI if the program does not contain
/// it, so it must not be called while other threads use the registry of backends. Throws ConfigError if there is none.
const Build& build_of(Kind kind);

/// Returns the build for the MPI that started this process. As build_of().
const Build& build_of_launcher();

/// Returns the name and version of the MPI that runs in this process, or an empty string if none does.
std::string running_version();

}  // namespace phalanx::mpi
