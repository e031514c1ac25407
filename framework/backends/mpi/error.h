// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/backends/mpi/api.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// Throws CommError unless `code`, the result of an MPI function, is MPI_SUCCESS: kPeerLost if MPI reports that a
/// process has failed, kMismatch if a rank received more than it asked for, otherwise kSystem. The message is "<where>:
/// <MPI_Error_string>".
void check(int code, const std::string& where);

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
