// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

// What main() of a program does around its work.
namespace phalanx {

/// Ties this process to the launcher that started it, if one did (end_with_launcher()), changes to the folder in which
/// `bazel run` was called, calls `program`, and returns its result as the exit status. An exception is printed to
/// standard error; the status is then kUsage (ConfigError) or kFailed. Call with one thread.
///
/// Programs that call it keep the signals that were ignored when they were started, and end by the others from their
/// start on: no library that they load takes SIGHUP for itself (early_signals.cc).
///
///   int main(int argc, char** argv) {
///     return phalanx::run_main([&] { return phalanx::run(argc, argv); });
///   }
///
/// Ranks started by a launcher all fail in the same way before they are connected. The first rank reports immediately,
/// and the others a second later, before which most launchers have ended them.
int run_main(const std::function<int()>& program);

/// When this program was started, which includes the time to load its libraries. Accurate to 10 ms. `bazel run` becomes
/// the program that it has built, in the same process: then it is when the libraries had been loaded.
std::chrono::steady_clock::time_point process_start();

/// Makes malloc keep freed memory in the process. A training step allocates and frees the same large buffers over and
/// over: keeping them costs nothing, while returning them to the system costs up to a quarter of the time in page
/// faults. For programs that train, before their first step, and servers; affects only glibc's malloc.
void keep_freed_memory();

/// The values it sets, so that other programs can be started with the same ones through malloc's environment variables:
/// no block gets a mapping of its own, the end of the heap is never returned, and the heap grows in large increments.
inline constexpr int kMallocMmapMax = 0;                    // MALLOC_MMAP_MAX_
inline constexpr int kMallocTrimThreshold = 2'000'000'000;  // MALLOC_TRIM_THRESHOLD_, bytes
inline constexpr int kMallocTopPad = 64 << 20;              // MALLOC_TOP_PAD_, bytes

}  // namespace phalanx
