// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"
#include "framework/comm/operation.h"

namespace phalanx {

/// Host memory of as many elements, from which a device copies fastest: pinned where the tensor is on a device.
at::Tensor host_memory_for(const at::Tensor& tensor);

/// Blocks the host until the current stream of the device has done what it was given.
void synchronize_stream(const at::Device& device);

/// Does a collective on tensors of a device by `host`, which takes those of the CPU: copies what is read to the host,
/// and what was written back. Blocking; in a body of host.run(). Broadcast, reduce and all_reduce go in chunks of
/// `chunk_bytes`, so that the copies of some run while others are on their way between ranks.
///
/// Bytes between ranks: those of the host's operation. Over the bus: what the rank gives once, what it gets once.
void do_staged(Communicator& host, const Operation& operation, std::int64_t chunk_bytes);

/// Does a collective by a `host` that reads and writes device memory itself, as an MPI that is aware of CUDA: once the
/// current stream has come that far. A mean is its sum, divided on the device. Blocking; in a body of host.run().
void do_direct(Communicator& host, Operation operation);

/// Messages of a device. A send copies before it returns; a recv copies when it is waited for.
Work send_staged(Communicator& host, Operation operation);
Work recv_staged(Communicator& host, Operation operation);

}  // namespace phalanx
