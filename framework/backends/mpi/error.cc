#include "framework/backends/mpi/error.h"

#include <mpi.h>
// After mpi.h, whose words it uses.
#include <mpi-ext.h>

#include <array>

#include "framework/base/error.h"

namespace phalanx::mpi {
namespace {

bool process_failed([[maybe_unused]] int code) {
#ifdef MPIX_ERR_PROC_FAILED  // an MPI with user-level failure mitigation
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  return kind == MPIX_ERR_PROC_FAILED || kind == MPIX_ERR_REVOKED;
#else
  return false;
#endif
}

}  // namespace

void check(int code, const std::string& where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  const auto kind = process_failed(code) ? CommError::Kind::kPeerLost : CommError::Kind::kSystem;
  throw CommError(kind, where + ": " + std::string(text.data(), length));
}

}  // namespace phalanx::mpi
