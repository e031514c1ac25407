// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/vector_random.h"

#include <algorithm>
#include <cstdint>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/vector_random.cc"
#include "framework/kernels/vector_targets.h"
// These are included after the targets are known:
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace phalanx::vector::HWY_NAMESPACE {
namespace {

constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

#if HWY_TARGET == HWY_SCALAR

// Vectors of one element cannot be divided into halves.
void fill(float* factors, std::int64_t count, std::uint64_t stream, std::uint64_t dropped_below, float kept) {
  for (std::int64_t i = 0; i < count; i += 2) {
    std::uint64_t z = stream + (static_cast<std::uint64_t>(i) / 2 + 1) * kGamma;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    factors[i] = (z & 0xffffffff) < dropped_below ? 0 : kept;
    if (i + 1 < count) factors[i + 1] = z >> 32 < dropped_below ? 0 : kept;
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using D64 = hn::ScalableTag<std::uint64_t>;
using D32 = hn::Repartition<std::uint32_t, D64>;
using DF = hn::Repartition<float, D64>;

// Returns the lower 64 bits of the products with a constant. Few processors multiply 64-bit numbers in vectors.
HWY_INLINE hn::Vec<D64> times(hn::Vec<D64> x, std::uint64_t factor) {
  const D32 d32;
  const D64 d64;
  const auto low = hn::BitCast(d32, hn::Set(d64, factor & 0xffffffff));
  const auto high = hn::BitCast(d32, hn::Set(d64, factor >> 32));
  const auto halves = hn::BitCast(d32, x);
  const auto upper = hn::BitCast(d32, hn::ShiftRight<32>(x));
  const auto cross = hn::Add(hn::MulEven(halves, high), hn::MulEven(upper, low));
  return hn::Add(hn::MulEven(halves, low), hn::ShiftLeft<32>(cross));
}

HWY_INLINE hn::Vec<D64> finalized(hn::Vec<D64> z) {
  z = times(hn::Xor(z, hn::ShiftRight<30>(z)), 0xbf58476d1ce4e5b9);
  z = times(hn::Xor(z, hn::ShiftRight<27>(z)), 0x94d049bb133111eb);
  return hn::Xor(z, hn::ShiftRight<31>(z));
}

void fill(float* factors, std::int64_t count, std::uint64_t stream, std::uint64_t dropped_below, float kept) {
  const D64 d64;
  const D32 d32;
  const DF df;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  const auto limit = hn::Set(d32, static_cast<std::uint32_t>(dropped_below));
  const auto kept_factor = hn::Set(df, kept);
  auto counters = hn::Add(hn::Set(d64, stream), times(hn::Iota(d64, 1), kGamma));
  const auto step = hn::Set(d64, static_cast<std::uint64_t>(lanes / 2) * kGamma);
  for (std::int64_t i = 0; i < count; i += lanes) {
    const auto numbers = hn::BitCast(d32, finalized(counters));
    const auto result = hn::IfThenZeroElse(hn::RebindMask(df, hn::Lt(numbers, limit)), kept_factor);
    counters = hn::Add(counters, step);
    if (i + lanes <= count) {
      hn::StoreU(result, df, factors + i);
    } else {
      HWY_ALIGN float lane[HWY_MAX_BYTES / sizeof(float)];
      hn::Store(result, df, lane);
      std::copy_n(lane, count - i, factors + i);
    }
  }
}

#endif

}  // namespace

void dropout_factors(float* factors, std::int64_t first, std::int64_t count, std::uint64_t stream,
                     std::uint64_t dropped_below, float kept) {
  if (count <= 0) return;
  if (dropped_below > 0xffffffff) {
    std::fill_n(factors, count, 0.0F);
    return;
  }
  stream += static_cast<std::uint64_t>(first / 2) * kGamma;
  if (first % 2 != 0) {  // the upper half of a number
    float both[2];
    fill(both, 2, stream, dropped_below, kept);
    *factors++ = both[1];
    --count;
    stream += kGamma;
  }
  fill(factors, count, stream, dropped_below, kept);
}

}  // namespace phalanx::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phalanx::vector {

HWY_EXPORT(dropout_factors);

void dropout_factors(float* factors, std::int64_t first, std::int64_t count, std::uint64_t stream,
                     std::uint64_t dropped_below, float kept) {
  HWY_DYNAMIC_DISPATCH(dropout_factors)(factors, first, count, stream, dropped_below, kept);
}

}  // namespace phalanx::vector
#endif
