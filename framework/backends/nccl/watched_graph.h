// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "framework/backends/nccl/group.h"
#include "framework/comm/operations/call.h"

namespace phalanx::nccl {

/// Adds an operation of the group to the graph that is being recorded on the stream. Does nothing if that graph was not
/// made by make_watched(). Thread-safe.
void add_to_graph(cudaStream_t stream, std::shared_ptr<Group> group, const Call& call);

}  // namespace phalanx::nccl
