// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "framework/comm/operations/operation.h"

namespace phalanx::nccl {

/// The communicator and the stream of an operation. The stream is the current one.
struct LaunchContext {
  ncclComm_t comm;
  cudaStream_t stream;
  int rank, size;
};

/// Enqueue a send or receive of a tensor's bytes on the stream. Throw CommError.
void send_bytes(const LaunchContext& context, const at::Tensor& part, int peer);
void recv_bytes(const LaunchContext& context, const at::Tensor& part, int peer);

/// Enqueues one operation on the stream; has_native() must be true for it. Operations that NCCL lacks are built from
/// its sends and receives, or from its reductions and broadcasts of single parts, all in one launch. Throws CommError.
///
/// | | by | bytes that a rank sends; n: of the whole tensor, P: ranks |
/// |---|---|---|
/// | all_reduce, broadcast, reduce | NCCL's own | depends on its algorithm; ring all_reduce: 2 n (P - 1) / P |
/// | even reduce_scatter and all_gather | NCCL's own | depends on its algorithm |
/// | uneven reduce_scatter | a reduce for each part | n (P - 1) / P |
/// | uneven all_gather | a broadcast for each part | n (P - 1) / P |
/// | gather | sends | its own part |
/// | scatter | sends | root: all parts but its own |
/// | all_to_all | sends | all parts but its own |
void execute(const LaunchContext& context, const Operation& operation);

/// Enqueues what follows the calls of execute() on the stream: a mean is a sum that is divided. The caller must wait
/// until the communicator has accepted these calls, since NCCL enqueues those of non-blocking communicators from a
/// thread of its own.
void finish(const LaunchContext& context, const Operation& operation);

}  // namespace phalanx::nccl
