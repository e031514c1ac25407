// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/vector_average_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/vector_average_pool.cc"
#include "framework/kernels/vector_targets.h"
// These are included after the targets are known:
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace phalanx::vector::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

// Writes the vectors `function(i)` of the elements i, i + 1, ... from 0 to `count`. The last vector overlaps the one
// before it. If `count` is less than a vector, `each(i)` computes the elements.
template <class Function, class Each>
HWY_INLINE void write(std::int64_t count, float* to, const Function& function, const Each& each) {
  const D d;
  if (count < lanes()) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = each(i);
    return;
  }
  for (std::int64_t i = 0; i + lanes() < count; i += lanes()) hn::StoreU(function(i), d, to + i);
  hn::StoreU(function(count - lanes()), d, to + count - lanes());
}

// Returns every `stride`th of the elements that begin at `from`.
template <int stride>
HWY_INLINE hn::Vec<D> load(const float* from) {
  const D d;
  if constexpr (stride == 1) return hn::LoadU(d, from);
  hn::Vec<D> even, odd;
  hn::LoadInterleaved2(d, from, even, odd);
  return even;
}

// Computes one row of windows at a time: first the sum of each column, then the sum of each window's columns. The
// gradient takes the same steps in reverse.
class RowOfWindows {
 public:
  explicit RowOfWindows(const AveragePool& pool)
      : pool_(pool),
        columns_(static_cast<std::size_t>(width().input + 2 * width().padding + width().kernel + 2 * lanes())),
        windows_(static_cast<std::size_t>(width().output + lanes())),
        divisors_(windows_.size(), 1) {}

  void forward(const float* plane, std::int64_t row, float* y) {
    begin(row);
    const D d;
    const float* const first = plane + (top_ + rows_.begin) * width().input;
    const auto rows = rows_.end - rows_.begin;
    write(
        width().input, columns_.data() + width().padding,
        [&](std::int64_t i) {
          auto sum = hn::Zero(d);
          for (std::int64_t k = 0; k < rows; ++k) sum = hn::Add(sum, hn::LoadU(d, first + k * width().input + i));
          return sum;
        },
        [&](std::int64_t i) {
          float sum = 0;
          for (std::int64_t k = 0; k < rows; ++k) sum += first[k * width().input + i];
          return sum;
        });
    if (width().stride == 1) return sum_windows<1>(y);
    if (width().stride == 2) return sum_windows<2>(y);
    for (std::int64_t i = 0; i < width().output; ++i) y[i] = sum_of(i);
  }

  void backward(const float* of_y, std::int64_t row, float* plane) {
    begin(row);
    const D d;
    const auto* const divisors = divisors_.data();
    write(
        width().output, windows_.data(),
        [&](std::int64_t i) { return hn::Div(hn::LoadU(d, of_y + i), hn::LoadU(d, divisors + i)); },
        [&](std::int64_t i) { return of_y[i] / divisors[i]; });
    spread();
    const float* const from = columns_.data() + width().padding;
    const bool alone = pool_.windows.height.stride >= pool_.windows.height.kernel;
    for (auto k = rows_.begin; k < rows_.end; ++k) {
      float* const to = plane + (top_ + k) * width().input;
      if (alone) {
        std::copy_n(from, width().input, to);
      } else {
        for (std::int64_t i = 0; i < width().input; ++i) to[i] += from[i];
      }
    }
  }

 private:
  const Windows::Axis& width() const { return pool_.windows.width; }

  void begin(std::int64_t row) {
    const auto& height = pool_.windows.height;
    rows_ = inside(height, row);
    top_ = row * height.stride - height.padding;
    const auto rows = pool_.count(height, row);
    if (rows == rows_counted_) return;
    rows_counted_ = rows;
    for (std::int64_t i = 0; i < width().output; ++i) {
      const auto elements = std::max<std::int64_t>(1, rows * pool_.count(width(), i));
      divisors_[static_cast<std::size_t>(i)] = static_cast<float>(pool_.divisor != 0 ? pool_.divisor : elements);
    }
  }

  template <int stride>
  void sum_windows(float* y) const {
    write(
        width().output, y,
        [&](std::int64_t i) {
          auto sum = hn::Zero(D());
          for (std::int64_t k = 0; k < width().kernel; ++k) {
            sum = hn::Add(sum, load<stride>(columns_.data() + i * stride + k));
          }
          return hn::Div(sum, hn::LoadU(D(), divisors_.data() + i));
        },
        [&](std::int64_t i) { return sum_of(i); });
  }

  float sum_of(std::int64_t i) const {
    const float* const first = columns_.data() + i * width().stride;
    float sum = 0;
    for (std::int64_t k = 0; k < width().kernel; ++k) sum += first[k];
    return sum / divisors_[static_cast<std::size_t>(i)];
  }

  // Adds the gradient of each window to its columns.
  void spread() {
    float* const columns = columns_.data();
    std::int64_t i = 0;
    if (width().stride == 2 && width().kernel == 2) {
      for (; i < width().output; i += lanes()) {
        const auto gradient = hn::LoadU(D(), windows_.data() + i);
        hn::StoreInterleaved2(gradient, gradient, D(), columns + 2 * i);
      }
      return;
    }
    std::fill(columns_.begin(), columns_.end(), 0.0F);
    for (; i < width().output; ++i) {
      float* const first = columns + i * width().stride;
      for (std::int64_t k = 0; k < width().kernel; ++k) first[k] += windows_[static_cast<std::size_t>(i)];
    }
  }

  const AveragePool& pool_;
  std::vector<float> columns_;      // of the image and its padding, which stays zero in the forward pass
  std::vector<float> windows_;      // gradients; zero after the last window
  std::vector<float> divisors_;     // divisors of the windows, for rows_counted_ rows
  std::int64_t rows_counted_ = -1;  // -1: not computed yet
  WindowRange rows_{};              // rows of the image in this row of windows
  std::int64_t top_ = 0;            // the first row, which may be padding
};

}  // namespace

void average_pool_planes(const float* x, float* y, std::int64_t planes, const AveragePool& pool) {
  RowOfWindows windows(pool);
  const auto &height = pool.windows.height, &width = pool.windows.width;
  for (std::int64_t plane = 0; plane < planes; ++plane, x += height.input * width.input) {
    for (std::int64_t row = 0; row < height.output; ++row, y += width.output) windows.forward(x, row, y);
  }
}

void average_pool_gradient_planes(const float* of_y, float* of_x, std::int64_t planes, const AveragePool& pool) {
  RowOfWindows windows(pool);
  const auto &height = pool.windows.height, &width = pool.windows.width;
  const auto pixels = height.input * width.input;
  for (std::int64_t plane = 0; plane < planes; ++plane, of_x += pixels) {
    std::fill_n(of_x, pixels, 0.0F);
    for (std::int64_t row = 0; row < height.output; ++row, of_y += width.output) windows.backward(of_y, row, of_x);
  }
}

}  // namespace phalanx::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phalanx::vector {

HWY_EXPORT(average_pool_planes);
HWY_EXPORT(average_pool_gradient_planes);

void average_pool_planes(const float* x, float* y, std::int64_t planes, const AveragePool& pool) {
  HWY_DYNAMIC_DISPATCH(average_pool_planes)(x, y, planes, pool);
}

void average_pool_gradient_planes(const float* of_y, float* of_x, std::int64_t planes, const AveragePool& pool) {
  HWY_DYNAMIC_DISPATCH(average_pool_gradient_planes)(of_y, of_x, planes, pool);
}

}  // namespace phalanx::vector
#endif
