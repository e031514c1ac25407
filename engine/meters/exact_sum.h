// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace phalanx {

/// A sum of doubles without rounding, which does not depend on the order of the values or on the ranks that add them.
/// It is a fixed-point number wide enough for every double (Kulisch: Computer Arithmetic and Validity, 2008), in limbs
/// of 32 bits with room for carries. Adding a value takes about ten nanoseconds.
class ExactSum {
 public:
  void add(double value);

  /// Adds the exact product of a and b, provided that it neither overflows nor falls below 2^-1074.
  void add_product(double a, double b);

  /// Returns the rounded sum: exact if a double can represent it, otherwise with an error below the distance to the
  /// next double. A sum that contains NaN, or infinities of both signs, is NaN.
  double value() const;

  /// Returns the cells, which can be added across ranks: cell i of a total is the sum of cells i, for up to 2^30 sums.
  std::span<std::int64_t> cells();

 private:
  static constexpr int kLimbs = 70, kBits = 32, kBias = 1126;  // limb i counts 2^(32 i - 1126)
  enum Special { kNan = kLimbs, kPositive, kNegative, kCells };

  void carry();

  std::array<std::int64_t, kCells> cells_{};  // limbs, followed by the numbers of NaNs and infinities
  std::int64_t uncarried_ = 0;
};

}  // namespace phalanx
