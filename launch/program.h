// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

// The work that main() does before and after the program proper.
namespace phalanx {

/// Ties this process to the launcher that started it, if any (end_with_launcher()), changes to the folder in which
/// `bazel run` was called, calls `program`, and returns its result as the exit status. An exception is printed to
/// standard error; the status is then kUsage (ConfigError) or kFailed. Must be called with one thread.
///
/// Programs that call it keep the signal dispositions with which they were started: ignored signals stay ignored, and
/// the others end the program from its start on, even if a library would handle SIGHUP itself (early_signals.cc).
///
///   int main(int argc, char** argv) {
///     return phalanx::run_main([&] { return phalanx::run(argc, argv); });
///   }
///
/// Before they are connected, ranks started by a launcher all fail in the same way. The first rank reports immediately,
/// and the others one second later; most launchers have ended them by then.
int run_main(const std::function<int()>& program);

/// Returns when this program was started, including the time to load its libraries. Accurate to 10 ms. In a program
/// started with `bazel run`, which turns into it in the same process, it is the time when the libraries had been
/// loaded.
std::chrono::steady_clock::time_point process_start();

/// Makes malloc keep freed memory in the process. A training step allocates and frees the same large buffers
/// repeatedly: keeping them costs nothing, while returning them to the system costs up to a quarter of the time in page
/// faults. For servers, and for programs that train, before their first step. Affects only glibc's malloc.
void keep_freed_memory();

/// The values that keep_freed_memory() sets, so that other programs can be started with the same ones through malloc's
/// environment variables: no block gets its own mapping, the end of the heap is never returned, and the heap grows in
/// large increments.
inline constexpr int kMallocMmapMax = 0;                    // MALLOC_MMAP_MAX_
inline constexpr int kMallocTrimThreshold = 2'000'000'000;  // MALLOC_TRIM_THRESHOLD_, bytes
inline constexpr int kMallocTopPad = 64 << 20;              // MALLOC_TOP_PAD_, bytes

}  // namespace phalanx
