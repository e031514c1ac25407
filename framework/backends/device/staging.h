// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation.h"

namespace phalanx {

/// Allocates host memory for the elements of `tensor`. It is pinned if the tensor is on a device, so that copies are
/// fast.
at::Tensor host_memory_for(const at::Tensor& tensor);

/// Blocks the host until the current stream of the device has finished its work.
void synchronize_stream(const at::Device& device);

/// Performs a collective on device tensors through `host`, which supports CPU tensors: copies the inputs to the host
/// and the results back. Blocks; must be called in a body of host.run(). Broadcast, reduce and all_reduce are cut into
/// chunks of `chunk_bytes`, so that some chunks are copied while others travel between ranks.
///
/// Bytes between ranks: the same as in the host's operation. Bytes over the bus: the rank's inputs once, its results
/// once.
void run_staged(Communicator& host, const Operation& operation, std::int64_t chunk_bytes);

/// Performs a collective through a `host` that reads and writes device memory itself, such as a CUDA-aware MPI, after
/// the current stream has finished its work. A mean is computed as a sum and divided on the device. Blocks; must be
/// called in a body of host.run().
void run_direct(Communicator& host, Operation operation);

/// Sends and receives device tensors. A send copies to the host before it returns; a receive copies to the device when
/// it is waited for.
Work send_staged(Communicator& host, Operation operation);
Work recv_staged(Communicator& host, Operation operation);

}  // namespace phalanx
