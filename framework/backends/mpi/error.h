// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::mpi {

/// Throws CommError unless `code`, which an MPI function returned, is MPI_SUCCESS: kPeerLost where MPI says that a
/// process failed, kMismatch where a rank got more than it asked for, else kSystem. The message is "<where>:
/// <MPI_Error_string>".
void check(int code, const std::string& where);

}  // namespace phalanx::mpi
