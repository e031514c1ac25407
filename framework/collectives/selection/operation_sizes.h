// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "framework/comm/operations/call.h"

namespace phalanx {

/// Records which operations a group has had, by size. Sizes are divided into classes: class c has the sizes whose ratio
/// to 2^c bytes is below the square root of two. Thread-safe.
class OperationSizes {
 public:
  static constexpr int kClasses = 48;

  /// Returns the class of a size. Sizes below one byte and above the last class belong to the first and last one.
  static int class_of(std::int64_t bytes);

  /// Returns the size in the middle of a class.
  static std::int64_t bytes_of(int size_class) { return std::int64_t{1} << size_class; }

  void add(Op op, std::int64_t bytes) {
    used_[static_cast<std::size_t>(op)][static_cast<std::size_t>(class_of(bytes))].store(true,
                                                                                         std::memory_order_relaxed);
  }

  bool has(Op op, int size_class) const {
    return used_[static_cast<std::size_t>(op)][static_cast<std::size_t>(size_class)].load(std::memory_order_relaxed);
  }

  void clear() {
    for (auto& classes : used_) {
      for (auto& one : classes) one.store(false, std::memory_order_relaxed);
    }
  }

 private:
  std::array<std::array<std::atomic<bool>, kClasses>, static_cast<std::size_t>(Op::kCustom) + 1> used_{};
};

}  // namespace phalanx
