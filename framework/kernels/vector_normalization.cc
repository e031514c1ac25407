// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/vector_normalization.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/vector_normalization.cc"
#include "framework/kernels/vector_targets.h"
// These are included after the targets are known:
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace phalanx::vector::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Floats has as many float32 numbers as a vector of Doubles has float64 numbers.
using Doubles = hn::ScalableTag<double>;
using Floats = hn::Rebind<float, Doubles>;

// Sums of differences and of their squares, in several vectors so that additions do not wait for each other.
class Sums {
 public:
  explicit Sums(double shift) : shift_(hn::Set(Doubles(), shift)) {
    for (int i = 0; i < kVectors; ++i) sums_[i] = squares_[i] = hn::Zero(Doubles());
  }

  void add_row(const float* x, std::int64_t length) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Doubles()));
    std::int64_t i = 0;
    for (; i + kVectors * lanes <= length; i += kVectors * lanes) {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) add(hn::LoadU(Floats(), x + i + k * lanes), k);
    }
    for (; i + lanes <= length; i += lanes) add(hn::LoadU(Floats(), x + i), 0);
    for (; i < length; ++i) {
      const double difference = x[i] - hn::GetLane(shift_);
      rest_ += difference;
      rest_squares_ += difference * difference;
    }
  }

  double sum() const { return rest_ + total(sums_); }
  double squares() const { return rest_squares_ + total(squares_); }

 private:
  static constexpr int kVectors = 4;
  using Vector = hn::Vec<Doubles>;

  HWY_INLINE void add(hn::Vec<Floats> x, int k) {
    const Vector difference = hn::Sub(hn::PromoteTo(Doubles(), x), shift_);
    sums_[k] = hn::Add(sums_[k], difference);
    squares_[k] = hn::MulAdd(difference, difference, squares_[k]);
  }

  static double total(const Vector (&vectors)[kVectors]) {
    const Vector sum = hn::Add(hn::Add(vectors[0], vectors[1]), hn::Add(vectors[2], vectors[3]));
    return hn::GetLane(hn::SumOfLanes(Doubles(), sum));
  }

  Vector shift_;
  Vector sums_[kVectors];
  Vector squares_[kVectors];
  double rest_ = 0;
  double rest_squares_ = 0;
};

}  // namespace

Moments moments(const float* x, const Rows& rows) {
  const double shift = std::isfinite(x[0]) ? x[0] : 0;
  Sums sums(shift);
  for (std::int64_t row = 0; row < rows.count; ++row) sums.add_row(x + row * rows.stride, rows.length);
  const auto count = static_cast<double>(rows.count * rows.length);
  const double mean = sums.sum() / count;
  const double variance = sums.squares() / count - mean * mean;
  return {.mean = shift + mean, .variance = variance < 0 ? 0 : variance};
}

void transform(const float* x, float* y, const Rows& rows, const Line& line) {
  const hn::ScalableTag<float> d;
  const auto center = hn::Set(d, line.center), factor = hn::Set(d, line.factor), offset = hn::Set(d, line.offset);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* const from = x + row * rows.stride;
    float* const to = y + row * rows.stride;
    std::int64_t i = 0;
    for (; i + lanes <= rows.length; i += lanes) {
      hn::StoreU(hn::MulAdd(hn::Sub(hn::LoadU(d, from + i), center), factor, offset), d, to + i);
    }
    for (; i < rows.length; ++i) to[i] = std::fma(from[i] - line.center, line.factor, line.offset);
  }
}

}  // namespace phalanx::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phalanx::vector {

HWY_EXPORT(moments);
HWY_EXPORT(transform);

Moments moments(const float* x, const Rows& rows) { return HWY_DYNAMIC_DISPATCH(moments)(x, rows); }

void transform(const float* x, float* y, const Rows& rows, const Line& line) {
  HWY_DYNAMIC_DISPATCH(transform)(x, y, rows, line);
}

}  // namespace phalanx::vector
#endif
