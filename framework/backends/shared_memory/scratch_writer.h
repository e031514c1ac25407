// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>

#include "framework/backends/shared_memory/bulk_copy.h"

namespace phalanx::shared_memory {

/// Copies data into this rank's scratch memory for other ranks to read. It uses non-temporal stores, or ordinary stores
/// if those are currently fast. Ordinary stores are faster if the cores are close to each other, and several times
/// slower if they are not. Virtual cores may move, so ordinary stores are tried from time to time. Each rank decides
/// for itself. Not thread-safe.
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
  static constexpr std::size_t kStreamed = 4 << 10;  // smaller copies are read sooner from this core's cache
  static constexpr double kFast = 5e9;               // minimum speed of ordinary stores in bytes per second
  static constexpr int kBetweenTries = 256;

  bool ordinary_ = false;
  int streamed_ = 0;
};

}  // namespace phalanx::shared_memory
