// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

#include "framework/base/random.h"
#include "framework/ps/protocol/table_spec.h"

namespace phalanx::ps {

/// Initial values of rows. They are a pure function of the seed, the key and the column, so they depend neither on the
/// order in which rows are created nor on the number of servers.
class SparseInitial {
 public:
  explicit SparseInitial(const SparseSpec& spec)
      : kind_(spec.initial == "normal"    ? Kind::kNormal
              : spec.initial == "uniform" ? Kind::kUniform
                                          : Kind::kZeros),
        scale_(spec.scale),
        seed_(static_cast<std::uint64_t>(spec.seed)) {}

  void fill(std::int64_t key, std::span<float> row) const {
    const std::uint64_t of_row = kind_ == Kind::kZeros ? 0 : mix(seed_, static_cast<std::uint64_t>(key));
    for (std::size_t column = 0; column < row.size(); ++column) row[column] = value(of_row, column);
  }

 private:
  enum class Kind { kZeros, kNormal, kUniform };

  float value(std::uint64_t of_row, std::size_t column) const {
    if (kind_ == Kind::kZeros) return 0;
    const std::uint64_t bits = mix(of_row, column);
    if (kind_ == Kind::kUniform) return static_cast<float>(scale_ * (std::ldexp(double(bits >> 11), -52) - 1));
    // Box and Muller 1958. The argument of the logarithm is never 0.
    const double first = std::ldexp(double((bits >> 32) + 1), -32), second = std::ldexp(double(bits & 0xffffffff), -32);
    return static_cast<float>(scale_ * std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second));
  }

  Kind kind_;
  double scale_;
  std::uint64_t seed_;
};

}  // namespace phalanx::ps
