// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "framework/backends/shared_memory/bulk_copy.h"

namespace phalanx::shared_memory {

/// Copies pieces into shared memory, for other ranks to read. It uses non-temporal stores, or ordinary stores if those
/// are currently fast. Ordinary stores are faster if the cores are close to each other, and several times slower if
/// they are not. Virtual cores may move, so ordinary stores are tried from time to time, and less often the longer they
/// stay slow. Each rank decides for itself. Not thread-safe.
class PieceWriter {
 public:
  void write(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (bytes < kStreamed) {
      std::memcpy(to, from, bytes);
    } else if (ordinary_ || ++streamed_ >= between_tries_) {
      const auto start = std::chrono::steady_clock::now();
      std::memcpy(to, from, bytes);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      judge(static_cast<double>(bytes) > kFast * took.count());
    } else {
      stream_copy(to, from, bytes);
    }
  }

 private:
  static constexpr std::size_t kStreamed = 1 << 10;  // smaller copies are read sooner from this core's cache
  // Minimum speed of ordinary stores in bytes per second. Measured: 26e9 to lines that a near core has read, 5e9 to
  // those of a far one.
  static constexpr double kFast = 8e9;
  static constexpr int kFewest = 256, kMost = 4096;  // pieces between tries

  void judge(bool fast) {
    if (fast) {
      between_tries_ = kFewest;
    } else if (!ordinary_) {
      between_tries_ = std::min(2 * between_tries_, kMost);
    }
    ordinary_ = fast;
    streamed_ = 0;
  }

  bool ordinary_ = false;
  int streamed_ = 0, between_tries_ = kFewest;
};

}  // namespace phalanx::shared_memory
