// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/plan/operation_log.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// Returns one rank of a mesh whose other ranks do not exist, so that it can compute a step alone. Its operations are
/// complete immediately, move no data, and are counted in `log`. A rank receives data of the size that it would receive
/// if all ranks had the same tensors as itself; the values are meaningless. `shares_memory` specifies if the real ranks
/// would share memory.
CommunicatorPtr make_fake_world(const MeshShape& shape, int rank, bool shares_memory,
                                std::shared_ptr<OperationLog> log);

}  // namespace phalanx
