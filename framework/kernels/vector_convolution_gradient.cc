// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/kernels/vector_convolution.h"

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/vector_convolution_gradient.cc"
#include "framework/kernels/vector_targets.h"
// These are included after the targets are known:
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace phalanx::vector::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The sums of a block stay in registers. There are 32 vector registers with AVX-512 and on Arm, and 16 otherwise.
constexpr bool kManyRegisters = HWY_MAX_BYTES == 64 || HWY_ARCH_ARM;

std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

std::vector<float> zeros(std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count)); }

// Computes the gradient of the weights with consecutive outputs in the lanes of a vector.
class ByOutputs {
 public:
  ByOutputs(const Convolution& convolution, const ConvolutionLayout& layout)
      : convolution_(convolution),
        layout_(layout),
        stride_((layout.positions() + lanes()) / lanes() * lanes()),
        gradients_(zeros((convolution.outputs + kChannels) * stride_)),
        sums_(zeros((convolution.outputs + kChannels) * convolution.taps() * lanes())) {}

  // Adds the gradient from one image.
  void add(const float* padded, const float* of_y) {
    const auto &height = convolution_.windows.height, &width = convolution_.windows.width;
    for (std::int64_t k = 0; k < convolution_.outputs; ++k) {
      float* to = gradients_.data() + k * stride_;
      for (std::int64_t row = 0; row < height.output; ++row, of_y += width.output, to += layout_.columns()) {
        copy_row(of_y, to, width.output);  // columns that are not outputs stay zero
      }
    }
    const auto taps = convolution_.taps();
    for (std::int64_t first = 0; first < convolution_.outputs; first += kChannels) {
      std::int64_t tap = 0;
      for (; tap + kTaps <= taps; tap += kTaps) add_block<kTaps>(padded, first, tap);
      for (; tap < taps; ++tap) add_block<1>(padded, first, tap);
    }
  }

  void store(float* of_weights) const {
    const D d;
    const auto taps = convolution_.taps();
    for (std::int64_t k = 0; k < convolution_.outputs; ++k) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        *of_weights++ = hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, sums_.data() + (k * taps + tap) * lanes())));
      }
    }
  }

 private:
  static constexpr int kChannels = kManyRegisters ? 6 : 3;
  static constexpr int kTaps = 3;

  template <int taps>
  HWY_INLINE void add_block(const float* padded, std::int64_t first, std::int64_t tap) {
    const D d;
    float* const memory = sums_.data() + (first * convolution_.taps() + tap) * lanes();
    const auto between = convolution_.taps() * lanes();
    V sums[kChannels][taps];
#pragma GCC unroll 6
    for (int k = 0; k < kChannels; ++k) {
#pragma GCC unroll 3
      for (int t = 0; t < taps; ++t) sums[k][t] = hn::LoadU(d, memory + k * between + t * lanes());
    }
    const float* from[taps];
#pragma GCC unroll 3
    for (int t = 0; t < taps; ++t) from[t] = padded + layout_.offsets()[static_cast<std::size_t>(tap + t)];
    const float* const gradients = gradients_.data() + first * stride_;
    const auto positions = layout_.positions();
    for (std::int64_t position = 0; position < positions; position += lanes()) {
      V x[taps];
#pragma GCC unroll 3
      for (int t = 0; t < taps; ++t) x[t] = hn::LoadU(d, from[t] + position);
#pragma GCC unroll 6
      for (int k = 0; k < kChannels; ++k) {
        const auto gradient = hn::LoadU(d, gradients + k * stride_ + position);
#pragma GCC unroll 3
        for (int t = 0; t < taps; ++t) sums[k][t] = hn::MulAdd(x[t], gradient, sums[k][t]);
      }
    }
#pragma GCC unroll 6
    for (int k = 0; k < kChannels; ++k) {
#pragma GCC unroll 3
      for (int t = 0; t < taps; ++t) hn::StoreU(sums[k][t], d, memory + k * between + t * lanes());
    }
  }

  const Convolution& convolution_;
  const ConvolutionLayout& layout_;
  std::int64_t stride_;           // between channels of gradients_
  std::vector<float> gradients_;  // of the output of an image, at each position; zero at positions that are not outputs
  std::vector<float> sums_;       // a vector for each weight
};

// Writes `lanes()` rows of `count` elements as `count` rows of `lanes()` elements, in blocks of four by four.
void transpose(const float* from, std::int64_t count, float* to) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has no InterleaveLower
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  for (; hn::Lanes(d) == 4 && i + 4 <= count; i += 4) {
    for (std::int64_t k = 0; k < lanes(); k += 4) {
      const float* const row = from + k * count + i;
      const auto a = hn::LoadU(d, row), b = hn::LoadU(d, row + count), c = hn::LoadU(d, row + 2 * count),
                 e = hn::LoadU(d, row + 3 * count);
      const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
                 ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
      const auto ab2 = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
                 ce2 = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      float* const column = to + i * lanes() + k;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)), d, column);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)), d, column + lanes());
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab2, ce2)), d, column + 2 * lanes());
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab2, ce2)), d, column + 3 * lanes());
    }
  }
#endif
  for (; i < count; ++i) {
    for (std::int64_t k = 0; k < lanes(); ++k) to[i * lanes() + k] = from[k * count + i];
  }
}

// Computes the gradient of the weights with channels of the output in the lanes of a vector.
class ByChannels {
 public:
  ByChannels(const Convolution& convolution, const ConvolutionLayout& layout)
      : convolution_(convolution),
        layout_(layout),
        gradients_(zeros(convolution.output_size())),
        sums_(zeros(convolution.outputs * convolution.taps())) {}

  static bool takes(const Convolution& convolution) {
    const auto& width = convolution.windows.width;
    const bool has_code = width.kernel == 3 || width.kernel == 5 || width.kernel == 7;
    return convolution.outputs % lanes() == 0 && has_code && width.dilation == 1;
  }

  void add(const float* padded, const float* of_y) {
    const auto plane = convolution_.output_plane();
    for (std::int64_t first = 0; first < convolution_.outputs; first += lanes()) {
      transpose(of_y + first * plane, plane, gradients_.data() + first * plane);
      switch (convolution_.windows.width.kernel) {
        case 3:
          add_channels<3>(padded, first);
          break;
        case 5:
          add_channels<5>(padded, first);
          break;
        default:
          add_channels<7>(padded, first);
      }
    }
  }

  void store(float* of_weights) const {
    const auto taps = convolution_.taps();
    const float* from = sums_.data();
    for (std::int64_t first = 0; first < convolution_.outputs; first += lanes()) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        for (std::int64_t k = 0; k < lanes(); ++k) of_weights[(first + k) * taps + tap] = *from++;
      }
    }
  }

 private:
  template <int width>
  HWY_INLINE void add_channels(const float* padded, std::int64_t first) {
    constexpr int kRows = width == 3 ? 3 : kManyRegisters ? (width == 5 ? 5 : 3) : 10 / width;
    const auto rows = convolution_.inputs * convolution_.windows.height.kernel;  // rows of taps
    std::int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) add_block<kRows, width>(padded, first, row);
    for (; row < rows; ++row) add_block<1, width>(padded, first, row);
  }

  template <int rows, int width>
  HWY_INLINE void add_block(const float* padded, std::int64_t first, std::int64_t row) {
    const D d;
    float* const memory = sums_.data() + first * convolution_.taps() + row * width * lanes();
    V sums[rows][width];
    const float* from[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      from[r] = padded + layout_.offsets()[static_cast<std::size_t>((row + r) * width)];
#pragma GCC unroll 7
      for (int t = 0; t < width; ++t) sums[r][t] = hn::LoadU(d, memory + (r * width + t) * lanes());
    }
    const auto outputs = convolution_.windows.width.output;
    const float* gradients = gradients_.data() + first * convolution_.output_plane();
    for (std::int64_t y = 0; y < convolution_.windows.height.output; ++y) {
      for (std::int64_t x = 0; x < outputs; ++x, gradients += lanes()) {
        const auto gradient = hn::LoadU(d, gradients);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 7
          for (int t = 0; t < width; ++t) {
            sums[r][t] = hn::MulAdd(hn::Set(d, from[r][x + t]), gradient, sums[r][t]);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) from[r] += layout_.columns();
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 7
      for (int t = 0; t < width; ++t) hn::StoreU(sums[r][t], d, memory + (r * width + t) * lanes());
    }
  }

  const Convolution& convolution_;
  const ConvolutionLayout& layout_;
  std::vector<float> gradients_;  // of the output of an image, [vectors of channels, rows, columns, channels]
  std::vector<float> sums_;       // [vectors of channels, taps, channels]
};

template <class Kernel>
void gradient_with(const float* x, const float* of_y, float* of_weights, std::int64_t images,
                   const Convolution& convolution) {
  const ConvolutionLayout layout(convolution);
  Kernel kernel(convolution, layout);
  auto padded = zeros(layout.size() + lanes());  // vectors read beyond the last position
  for (std::int64_t image = 0; image < images; ++image) {
    layout.fill(x + image * convolution.input_size(), padded.data());
    kernel.add(padded.data(), of_y + image * convolution.output_size());
  }
  kernel.store(of_weights);
}

}  // namespace

void convolution_gradient(const float* x, const float* of_y, float* of_weights, std::int64_t images,
                          const Convolution& convolution) {
  if (ByChannels::takes(convolution)) {
    gradient_with<ByChannels>(x, of_y, of_weights, images, convolution);
  } else {
    gradient_with<ByOutputs>(x, of_y, of_weights, images, convolution);
  }
}

}  // namespace phalanx::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phalanx::vector {

HWY_EXPORT(convolution_gradient);

void convolution_gradient(const float* x, const float* of_y, float* of_weights, std::int64_t images,
                          const Convolution& convolution) {
  HWY_DYNAMIC_DISPATCH(convolution_gradient)(x, of_y, of_weights, images, convolution);
}

}  // namespace phalanx::vector
#endif
