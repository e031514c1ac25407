// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace phalanx::testing {

/// Returns the number of a stream in Streams. Null is the default stream of the current device.
int stream_number(cudaStream_t stream);

/// Returns the id by which Streams knows a stream that cudaStreamCreateWithPriority() has made.
std::int64_t stream_id(cudaStream_t stream);

/// From now on, every call of the CUDA runtime returns the error, as after a kernel that failed. cudaSuccess ends that.
void break_cuda(cudaError_t error);

/// Makes devices 0 to 7 appear as this many physical ones: device i is i % count. 0: each is a device of its own.
void share_devices(int count);

/// With true, memory cannot be opened in other processes, as on GPUs without access to each other.
void refuse_ipc(bool refuse);

}  // namespace phalanx::testing
