// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/error.h"

#include <array>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/vendor.h"
#include "framework/base/error.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

CommError::Kind kind_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  if (error_class == MPI_ERR_TRUNCATE) return CommError::Kind::kMismatch;
  return process_failed(error_class) ? CommError::Kind::kPeerLost : CommError::Kind::kSystem;
}

}  // namespace

void check(int code, const std::string& where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CommError(kind_of(code), where + ": " + std::string(text.data(), length));
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
