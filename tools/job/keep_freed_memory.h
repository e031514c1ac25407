#pragma once

namespace phalanx {

/// Has malloc keep what is freed in the process. A training step frees and allocates the same large buffers again and
/// again: kept, they cost nothing; given back to the system, they cost up to a quarter of the time in page faults. For
/// programs that train, before their first step; glibc's malloc alone.
void keep_freed_memory();

/// What it sets, so that other programs can be started with the same by malloc's environment variables: no block is
/// mapped by itself, from its end the heap gives nothing back, and it grows by much at a time.
inline constexpr int kMallocMmapMax = 0;                    // MALLOC_MMAP_MAX_
inline constexpr int kMallocTrimThreshold = 2'000'000'000;  // MALLOC_TRIM_THRESHOLD_, bytes
inline constexpr int kMallocTopPad = 64 << 20;              // MALLOC_TOP_PAD_, bytes

}  // namespace phalanx
