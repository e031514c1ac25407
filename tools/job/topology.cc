#include "tools/job/topology.h"

#include <mpi.h>

#include <array>

namespace phalanx {
namespace {

// Whether the hybrid backend does depends on the launcher.
bool uses_mpi(const std::string& backend) {
  int running = 0;
  return (backend == "mpi" || backend == "hybrid") && MPI_Initialized(&running) == MPI_SUCCESS && running != 0;
}

// "Open MPI v5.0.6" of "Open MPI v5.0.6, package: ..., ident: ...".
std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string whole(text.data(), static_cast<std::size_t>(length));
  return whole.substr(0, whole.find(','));
}

}  // namespace

Topology world_topology(Communicator& world, const std::string& backend) {
  return detect_topology(world, backend, uses_mpi(backend) ? mpi_version() : "");
}

}  // namespace phalanx
