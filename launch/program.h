#pragma once

#include <chrono>
#include <functional>

// What main() of a program does around its work.
namespace phalanx {

/// Goes to the folder where `bazel run` was called, calls `program` and returns its result as the exit status. An
/// exception is told on standard error; the status is then kUsage (ConfigError) or kFailed.
///
///   int main(int argc, char** argv) {
///     return phalanx::run_main([&] { return phalanx::run(argc, argv); });
///   }
///
/// Ranks that a launcher started fail alike before they know each other. The first one tells at once, the others a
/// second later: most launchers end them before.
int run_main(const std::function<int()>& program);

/// When the system started this process, loading of its libraries included; exact to 10 ms.
std::chrono::steady_clock::time_point process_start();

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
