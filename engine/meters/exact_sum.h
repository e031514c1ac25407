// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace phalanx {

/// A sum of doubles without rounding, so that it is the same in whatever order and by however many ranks they are
/// added: a fixed-point number wide enough for every double (Kulisch: Computer Arithmetic and Validity, 2008), in limbs
/// of 32 bits with room for carries. Adding costs some ten nanoseconds.
class ExactSum {
 public:
  void add(double value);

  /// The sum of a and b's exact product, as far as it neither overflows nor falls below 2^-1074.
  void add_product(double a, double b);

  /// The sum, rounded: exact where a double can hold it, otherwise off by less than the distance to the next double. A
  /// sum with a NaN, or with infinities of both signs, is NaN.
  double value() const;

  /// What adds up across ranks: cell i of the sum of several is the sum of their cells i, for up to 2^30 of them.
  std::span<std::int64_t> cells();

 private:
  static constexpr int kLimbs = 70, kBits = 32, kBias = 1126;  // limb i counts 2^(32 i - 1126)
  enum Special { kNan = kLimbs, kPositive, kNegative, kCells };

  void carry();

  std::array<std::int64_t, kCells> cells_{};  // limbs, then how many were NaN or infinite
  std::int64_t uncarried_ = 0;
};

}  // namespace phalanx
