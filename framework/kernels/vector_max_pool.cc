// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/vector_max_pool.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/vector_max_pool.cc"
#include "framework/kernels/vector_targets.h"
// These are included after the targets are known:
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace phalanx::vector::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;

constexpr float kLeast = -std::numeric_limits<float>::infinity();
constexpr std::int32_t kNowhere = std::numeric_limits<std::int32_t>::max();

// The largest elements so far, and their places.
struct Largest {
  hn::Vec<D> values;
  hn::Vec<DI> places;
};

HWY_INLINE Largest choose(hn::Mask<D> other, const Largest& one, const Largest& two) {
  return {hn::IfThenElse(other, two.values, one.values),
          hn::IfThenElse(hn::RebindMask(DI(), other), two.places, one.places)};
}

// Returns the larger of two, where the elements of `later` come after all elements of `sooner`.
HWY_INLINE Largest larger_in_order(const Largest& sooner, const Largest& later) {
  return choose(hn::Or(hn::Gt(later.values, sooner.values), hn::IsNaN(later.values)), sooner, later);
}

HWY_INLINE Largest larger(const Largest& one, const Largest& two) {
  const auto before = hn::RebindMask(D(), hn::Lt(two.places, one.places));
  const auto nan_two = hn::IsNaN(two.values), nan_one = hn::IsNaN(one.values);
  const auto tie = hn::And(hn::Eq(two.values, one.values), before);
  const auto last_nan = hn::AndNot(hn::And(nan_one, before), nan_two);
  return choose(hn::Or(hn::Or(hn::Gt(two.values, one.values), tie), last_nan), one, two);
}

// Returns a vector whose first `count` lanes are from memory and whose other lanes are 0.
HWY_INLINE hn::Vec<D> load(const float* from, std::int64_t count) {
  HWY_ALIGN float lane[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i];
  return hn::Load(D(), lane);
}

// Computes one row of windows in vectors along the width: first the largest element of each column in the rows of the
// windows, then the largest of each window's columns.
class RowOfWindows {
 public:
  explicit RowOfWindows(const Windows& windows)
      : windows_(windows),
        columns_(3 * lanes() + windows.width.input + 2 * windows.width.padding +
                 windows.width.kernel * windows.width.dilation),
        values_(columns_, kLeast),
        places_(columns_, kNowhere),
        best_(static_cast<std::size_t>(windows.width.output) + lanes()),
        at_(best_.size()) {}

  void compute(const float* plane, std::int64_t row, float* y, std::int64_t* places) {
    fold_rows(plane, row);
    const auto& width = windows_.width;
    if (width.stride == 1) {
      fold_columns<1>();
    } else if (width.stride == 2) {
      fold_columns<2>();
    } else {
      fold_strided_columns();
    }
    std::copy_n(best_.data(), width.output, y);
    std::copy_n(at_.data(), width.output, places);
  }

 private:
  static std::size_t lanes() { return hn::Lanes(D()); }

  // Folds the rows of the windows into columns, after the padding on the left. Vectors may write more columns than
  // there are, so the columns after them are reset.
  void fold_rows(const float* plane, std::int64_t row) {
    const D d;
    const DI di;
    const auto& height = windows_.height;
    const auto width = windows_.width.input, padding = windows_.width.padding;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    const WindowRange rows = inside(height, row);
    const std::int64_t top = row * height.stride - height.padding;
    float* const values = values_.data() + padding;
    std::int32_t* const places = places_.data() + padding;
    const auto fold = [&](std::int64_t column, std::int64_t count) {
      Largest largest{hn::Set(d, kLeast), hn::Set(di, kNowhere)};
      for (std::int64_t k = rows.begin; k < rows.end; ++k) {
        const std::int64_t first = (top + k * height.dilation) * width + column;
        const auto loaded = count == lanes ? hn::LoadU(d, plane + first) : load(plane + first, count);
        const Largest next{loaded, hn::Iota(di, static_cast<std::int32_t>(first))};
        largest = k == rows.begin ? next : larger_in_order(largest, next);
      }
      hn::StoreU(largest.values, d, values + column);
      hn::StoreU(largest.places, di, places + column);
    };
    std::int64_t column = 0;
    for (; column + lanes <= width; column += lanes) fold(column, lanes);
    if (column == width) return;
    fold(column, width - column);
    std::fill_n(values + width, lanes, kLeast);
    std::fill_n(places + width, lanes, kNowhere);
  }

  template <int stride>
  HWY_INLINE Largest columns_from(std::int64_t first) const {
    const float* const values = values_.data() + first;
    const std::int32_t* const places = places_.data() + first;
    if constexpr (stride == 1) return {hn::LoadU(D(), values), hn::LoadU(DI(), places)};
    Largest even, odd;
    hn::LoadInterleaved2(D(), values, even.values, odd.values);
    hn::LoadInterleaved2(DI(), places, even.places, odd.places);
    return even;
  }

  template <int stride>
  void fold_columns() {
    const auto& width = windows_.width;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    for (std::int64_t window = 0; window < width.output; window += lanes) {
      Largest largest = columns_from<stride>(window * stride);
      for (std::int64_t k = 1; k < width.kernel; ++k) {
        largest = larger(largest, columns_from<stride>(window * stride + k * width.dilation));
      }
      hn::StoreU(largest.values, D(), best_.data() + window);
      hn::StoreU(largest.places, DI(), at_.data() + window);
    }
  }

  void fold_strided_columns() {
    const auto& width = windows_.width;
    for (std::int64_t window = 0; window < width.output; ++window) {
      float best = values_[window * width.stride];
      std::int32_t at = places_[window * width.stride];
      for (std::int64_t k = 1; k < width.kernel; ++k) {
        const std::int64_t column = window * width.stride + k * width.dilation;
        const float value = values_[column];
        const std::int32_t place = places_[column];
        const bool last_nan = std::isnan(value) && !(std::isnan(best) && place < at);
        if (value > best || (value == best && place < at) || last_nan) {
          best = value;
          at = place;
        }
      }
      best_[window] = best;
      at_[window] = at;
    }
  }

  const Windows& windows_;
  std::size_t columns_;
  std::vector<float> values_;  // of each column, including padding: the largest element in the rows of the windows
  std::vector<std::int32_t> places_;  // places of values_
  std::vector<float> best_;           // largest element of each window
  std::vector<std::int32_t> at_;      // places of best_
};

}  // namespace

void max_pool_planes(const float* x, float* y, std::int64_t* places, std::int64_t planes, const Windows& windows) {
  RowOfWindows row_of_windows(windows);
  const auto &height = windows.height, &width = windows.width;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t row = 0; row < height.output; ++row) {
      row_of_windows.compute(x, row, y, places);
      y += width.output;
      places += width.output;
    }
    x += height.input * width.input;
  }
}

}  // namespace phalanx::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phalanx::vector {

HWY_EXPORT(max_pool_planes);

void max_pool_planes(const float* x, float* y, std::int64_t* places, std::int64_t planes, const Windows& windows) {
  HWY_DYNAMIC_DISPATCH(max_pool_planes)(x, y, places, planes, windows);
}

}  // namespace phalanx::vector
#endif
