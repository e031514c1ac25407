// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <vector>

namespace phalanx::testing {

/// Memory of pretended devices. Its addresses belong to the process but cannot be read or written, as those of a GPU
/// cannot: whoever takes a tensor of a device for one of the CPU ends by SIGSEGV. The kernels of the pretended device
/// work on a mirror of it. New memory has all bits set, so floating-point numbers that nobody wrote are NaN.
/// Thread-safe.
c10::DeviceAllocator& pretended_memory();

/// Where the kernels find what lies at `device_address`; null of null.
void* mirror_of(const void* device_address);

/// All that pretended devices hold, and the way back to it. What was allocated meanwhile keeps what it has.
std::vector<std::byte> save_pretended_memory();
void restore_pretended_memory(const std::vector<std::byte>& saved);

/// From now on, allocations that would take more than so many bytes in all fail as on a GPU; 0: as many as there are.
void limit_pretended_memory(std::size_t bytes);

}  // namespace phalanx::testing
