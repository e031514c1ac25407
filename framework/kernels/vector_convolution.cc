// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/vector_convolution.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/vector_convolution.cc"
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
constexpr int kSums = kManyRegisters ? 24 : 12;
constexpr int kMaxChannels = kManyRegisters ? 8 : 4;

std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

std::vector<float> zeros(std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count)); }

// Convolves padded images.
class Kernel {
 public:
  Kernel(const float* weights, const float* bias, const Convolution& convolution, const ConvolutionLayout& layout)
      : weights_(weights),
        bias_(bias),
        convolution_(convolution),
        layout_(layout),
        stride_(layout.positions() + lanes()),
        packed_(zeros((convolution.outputs + kMaxChannels) * convolution.taps())),
        outputs_(zeros(stride_ * kMaxChannels)) {
    for_blocks([this]<int channels>(std::int64_t first) { pack<channels>(first); });
  }

  void compute(const float* padded, float* y) {
    for_blocks([&]<int channels>(std::int64_t first) {
      constexpr int kVectors = std::min(4, kSums / channels);
      const auto positions = layout_.positions();
      std::int64_t position = 0;
      for (; position + kVectors * lanes() <= positions; position += kVectors * lanes()) {
        compute_block<kVectors, channels>(padded, first, position);
      }
      for (; position < positions; position += lanes()) compute_block<1, channels>(padded, first, position);
      store(first, std::min<std::int64_t>(channels, convolution_.outputs - first), y);
    });
  }

 private:
  // Calls `body` for blocks of channels that cover all channels. The last block may extend beyond them.
  template <class Body>
  HWY_INLINE void for_blocks(const Body& body) {
    for (std::int64_t first = 0; first < convolution_.outputs;) {
      const auto left = convolution_.outputs - first;
      if (kManyRegisters && left >= 7) {
        body.template operator()<8>(first);
        first += 8;
      } else if (kManyRegisters && left >= 5) {
        body.template operator()<6>(first);
        first += 6;
      } else {
        body.template operator()<4>(first);
        first += 4;
      }
    }
  }

  template <int channels>
  void pack(std::int64_t first) {
    const auto taps = convolution_.taps();
    float* to = packed_.data() + first * taps;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (int k = 0; k < channels; ++k, ++to) {
        if (first + k < convolution_.outputs) *to = weights_[(first + k) * taps + tap];
      }
    }
  }

  template <int vectors, int channels>
  HWY_INLINE void compute_block(const float* padded, std::int64_t first, std::int64_t position) {
    const D d;
    V sums[channels][vectors];
#pragma GCC unroll 8
    for (int k = 0; k < channels; ++k) {
      const auto bias = hn::Set(d, bias_ && first + k < convolution_.outputs ? bias_[first + k] : 0);
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) sums[k][i] = bias;
    }
    const auto taps = convolution_.taps();
    const float* weights = packed_.data() + first * taps;
    const auto* const offsets = layout_.offsets().data();
    for (std::int64_t tap = 0; tap < taps; ++tap, weights += channels) {
      const float* const from = padded + offsets[tap] + position;
      V x[vectors];
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) x[i] = hn::LoadU(d, from + i * lanes());
#pragma GCC unroll 8
      for (int k = 0; k < channels; ++k) {
        const auto weight = hn::Set(d, weights[k]);
#pragma GCC unroll 4
        for (int i = 0; i < vectors; ++i) sums[k][i] = hn::MulAdd(x[i], weight, sums[k][i]);
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < channels; ++k) {
#pragma GCC unroll 4
      for (int i = 0; i < vectors; ++i) {
        hn::StoreU(sums[k][i], d, outputs_.data() + k * stride_ + position + i * lanes());
      }
    }
  }

  void store(std::int64_t first, std::int64_t channels, float* y) const {
    const auto &height = convolution_.windows.height, &width = convolution_.windows.width;
    for (std::int64_t k = 0; k < channels; ++k) {
      float* const plane = y + (first + k) * convolution_.output_plane();
      for (std::int64_t row = 0; row < height.output; ++row) {
        copy_row(outputs_.data() + k * stride_ + row * layout_.columns(), plane + row * width.output, width.output);
      }
    }
  }

  const float* weights_;
  const float* bias_;
  const Convolution& convolution_;
  const ConvolutionLayout& layout_;
  std::int64_t stride_;         // between channels of outputs_
  std::vector<float> packed_;   // the weights of each block of channels, tap by tap
  std::vector<float> outputs_;  // outputs of a block of channels, at each position
};

}  // namespace

void convolve(const float* x, const float* weights, const float* bias, float* y, std::int64_t images,
              const Convolution& convolution) {
  const ConvolutionLayout layout(convolution);
  Kernel kernel(weights, bias, convolution, layout);
  auto padded = zeros(layout.size() + lanes());  // vectors read beyond the last position
  for (std::int64_t image = 0; image < images; ++image) {
    layout.fill(x + image * convolution.input_size(), padded.data());
    kernel.compute(padded.data(), y + image * convolution.output_size());
  }
}

}  // namespace phalanx::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phalanx::vector {

HWY_EXPORT(convolve);

void convolve(const float* x, const float* weights, const float* bias, float* y, std::int64_t images,
              const Convolution& convolution) {
  HWY_DYNAMIC_DISPATCH(convolve)(x, weights, bias, y, images, convolution);
}

}  // namespace phalanx::vector
#endif
