// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace phalanx {

/// Returns the most bytes that the tensors of this process have occupied at one time on a device. Returns 0 for the
/// CPU, whose allocator does not count.
std::int64_t peak_bytes(const c10::Device& device);

/// Returns the memory that LibTorch's allocator has cached, but that no tensor uses, to the device. Waits for the
/// device. Must not be called while a graph is recorded. Does nothing on the CPU.
void release_cached_memory(const c10::Device& device);

}  // namespace phalanx
