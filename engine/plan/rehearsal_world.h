// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/plan/operation_log.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// What a rehearsal takes place in: one rank of a mesh whose other ranks do not exist. Its operations are complete at
/// once, move nothing, and are counted in `log`. A rank gets what it would get if all ranks had what it has itself, as
/// far as sizes go; values mean nothing. `shares_memory`: whether the real ranks would.
CommunicatorPtr make_rehearsal_world(const MeshShape& shape, int rank, bool shares_memory,
                                     std::shared_ptr<OperationLog> log);

}  // namespace phalanx
