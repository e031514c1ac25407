// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace phalanx::testing {

/// Returns the allocator of the fake devices' memory. As with a GPU, its addresses belong to the process but
/// cannot be read or written: code that mistakes a device tensor for a CPU tensor ends with SIGSEGV. The kernels of the
/// fake device work on a mirror of the memory. In new memory all bits are set, so floating-point numbers that were
/// never written are NaN. Thread-safe.
///
/// As LibTorch's allocator for CUDA, it gives a freed block only to its own stream again, at once: work of another
/// stream on the block is a race (MissingWait) unless recordStream() was called. It returns cached blocks to the device
/// if memory is short, but not while a graph is recorded, whose memory comes from a pool of its own and counts like any
/// other. Blocks with recordStream() that are freed while a graph is recorded are not used again before it ends.
c10::DeviceAllocator& fake_memory();

/// Returns the address at which the kernels find the contents of `device_address`, or null for null.
void* mirror_of(const void* device_address);

/// Returns true for an address of the mirror.
bool is_in_mirror(const void* address);

/// Returns true for an address in the memory of a fake device.
bool is_device_address(const void* address);

/// Returns a number that no other allocation has, for an address in memory that is in use; 0 for one in free memory.
std::uint64_t allocation_at(const void* address);

/// Memory that belongs to no stream, as from cudaMalloc. Throws c10::OutOfMemoryError. free_plain() waits for the
/// device and returns false if the address is not such memory.
void* allocate_plain(std::size_t bytes, c10::DeviceIndex device);
bool free_plain(void* address);

/// Save and restore the contents of all fake devices. Memory allocated in between keeps its contents.
std::vector<std::byte> save_fake_memory();
void restore_fake_memory(const std::vector<std::byte>& saved);

/// Makes allocations fail, as on a GPU, if they would raise the total, cached blocks included, above `bytes`. 0 removes
/// the limit, except for the size of the address space.
void limit_fake_memory(std::size_t bytes);

/// Until end_pool(), memory comes from a new pool, whose number is returned. free_pool() returns the pool's blocks to
/// the device once they are free.
std::int64_t begin_pool();
void end_pool();
void free_pool(std::int64_t pool);

}  // namespace phalanx::testing
