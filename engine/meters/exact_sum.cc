// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/exact_sum.h"

#include <cmath>
#include <limits>

namespace phalanx {
namespace {

constexpr std::uint64_t kMask = 0xffffffff;
constexpr std::int64_t kMaxUncarried = std::int64_t{1} << 20;  // each value adds less than 2^33 to a limb

}  // namespace

void ExactSum::add(double value) {
  if (!std::isfinite(value)) {
    ++cells_[std::isnan(value) ? kNan : value > 0 ? kPositive : kNegative];
    return;
  }
  int exponent = 0;
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::abs(value), &exponent), 53));
  if (mantissa == 0) return;
  const auto position = static_cast<unsigned>(exponent - 53 + kBias);
  const auto shift = position % kBits;
  const std::uint64_t low = (mantissa & kMask) << shift, high = (mantissa >> kBits) << shift;
  const std::int64_t sign = value < 0 ? -1 : 1;
  auto* limb = &cells_[position / kBits];
  limb[0] += sign * static_cast<std::int64_t>(low & kMask);
  limb[1] += sign * static_cast<std::int64_t>((low >> kBits) + (high & kMask));
  limb[2] += sign * static_cast<std::int64_t>(high >> kBits);
  if (++uncarried_ >= kMaxUncarried) carry();
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  add(product);
  add(std::fma(a, b, -product));
}

// Brings all limbs except the last, which has the sign, into [0, 2^32). This representation is unique.
void ExactSum::carry() {
  for (int i = 0; i + 1 < kLimbs; ++i) {
    const std::int64_t carried = cells_[i] >> kBits;
    cells_[i] -= carried * (std::int64_t{1} << kBits);
    cells_[i + 1] += carried;
  }
  uncarried_ = 0;
}

std::span<std::int64_t> ExactSum::cells() {
  carry();
  return cells_;
}

double ExactSum::value() const {
  const bool up = cells_[kPositive] > 0, down = cells_[kNegative] > 0;
  if (cells_[kNan] > 0 || (up && down)) return std::numeric_limits<double>::quiet_NaN();
  if (up || down) return up ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  ExactSum sum = *this;
  sum.carry();
  const double sign = sum.cells_[kLimbs - 1] < 0 ? -1 : 1;
  if (sign < 0) {
    for (auto& cell : sum.cells_) cell = -cell;
    sum.carry();
  }
  // Summed from the top, partial sums are exact while a double can hold them, and the first one that it cannot hold is
  // the last that matters.
  double value = 0;
  for (int i = kLimbs - 1; i >= 0; --i) value += std::ldexp(static_cast<double>(sum.cells_[i]), kBits * i - kBias);
  return sign * value;
}

}  // namespace phalanx
