// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>

#include "framework/backends/shared_memory/bulk_copy.h"

namespace phalanx::shared_memory {

/// Copies into this rank's scratch, for others to read: past the caches, or with ordinary stores where those are fast
/// now. They are where the cores are near to each other, and several times slower than the others where they are not;
/// and virtual cores move. So they are tried now and then. Each rank decides for itself. Not thread-safe.
class ScratchWriter {
 public:
  void write(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (bytes < kStreamed) {
      std::memcpy(to, from, bytes);
    } else if (ordinary_ || ++streamed_ >= kBetweenTries) {
      const auto start = std::chrono::steady_clock::now();
      std::memcpy(to, from, bytes);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      ordinary_ = static_cast<double>(bytes) > kFast * took.count();
      streamed_ = 0;
    } else {
      stream_copy(to, from, bytes);
    }
  }

 private:
  static constexpr std::size_t kStreamed = 4 << 10;  // what is smaller is read out of this core's cache sooner
  static constexpr double kFast = 5e9;               // bytes a second of ordinary stores that are worth it
  static constexpr int kBetweenTries = 256;

  bool ordinary_ = false;
  int streamed_ = 0;
};

}  // namespace phalanx::shared_memory
