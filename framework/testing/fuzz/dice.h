// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "framework/base/random.h"

namespace phalanx::testing {

/// Random numbers that depend only on a seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t next() { return mix(seed_, ++thrown_); }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
  bool once_in(int times) { return below(times) == 0; }

  template <class T>
  const T& one_of(std::span<const T> all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }

 private:
  std::uint64_t seed_, thrown_ = 0;
};

}  // namespace phalanx::testing
