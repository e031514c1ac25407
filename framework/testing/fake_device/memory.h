// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <vector>

namespace phalanx::testing {

/// Returns the allocator of the fake devices' memory. As with a GPU, its addresses belong to the process but
/// cannot be read or written: code that mistakes a device tensor for a CPU tensor ends with SIGSEGV. The kernels of the
/// fake device work on a mirror of the memory. In new memory all bits are set, so floating-point numbers that were
/// never written are NaN. Thread-safe.
c10::DeviceAllocator& fake_memory();

/// Returns the address at which the kernels find the contents of `device_address`, or null for null.
void* mirror_of(const void* device_address);

/// Save and restore the contents of all fake devices. Memory allocated in between keeps its contents.
std::vector<std::byte> save_fake_memory();
void restore_fake_memory(const std::vector<std::byte>& saved);

/// Makes allocations fail, as on a GPU, if they would raise the total above `bytes`. 0 removes the limit, except for
/// the size of the address space.
void limit_fake_memory(std::size_t bytes);

}  // namespace phalanx::testing
