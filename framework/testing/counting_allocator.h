// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx::testing {

/// The bytes of the CPU's tensors, as an allocator counts them that takes the place of LibTorch's. Thread-safe.
class CpuBytes {
 public:
  /// Installs the allocator, for the rest of the process. Tensors that exist already are not counted.
  static void count();

  /// Returns the bytes that counted tensors occupy now.
  static std::int64_t live();

  /// Returns the most bytes that counted tensors have occupied at one time since begin_peak(), or since count().
  static std::int64_t peak();
  static void begin_peak();

  /// Add to the bytes, and subtract from them, for memory from elsewhere.
  static void add(std::int64_t bytes);
  static void subtract(std::int64_t bytes) { add(-bytes); }
};

}  // namespace phalanx::testing
