// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "framework/backends/mpi/builds.h"

namespace phalanx {
namespace {

struct MpiConfig {
  template <class V>
  void visit(V&) {}
};

std::string broadcast(const RankInfo& rank_info, const std::string& text, Seconds timeout) {
  return mpi::build_of_launcher().broadcast(rank_info, text, timeout);
}

CommunicatorPtr connect(const ConnectOptions& options) {
  if (options.mpi_communicator == nullptr) return mpi::build_of_launcher().connect(options);
  return mpi::build_of(options.mpi_standard_abi ? mpi::Kind::kStandardAbi : mpi::Kind::kOpenMpi).connect(options);
}

const bool mpi_registered = Backends::global().add<MpiConfig>(
    "mpi",
    "ranks are processes on any hosts, started by Open MPI's mpirun, the mpiexec of MPICH or Intel MPI, or srun with "
    "PMIx or PMI",
    BackendTraits{.mpi = true, .shrinks = true, .broadcast = &broadcast, .library_version = &mpi::running_version},
    [](const MpiConfig&, const ConnectOptions& options) { return connect(options); });

}  // namespace
}  // namespace phalanx
