// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/convolution_layout.h"

namespace phalanx::vector {

ConvolutionLayout::ConvolutionLayout(const Convolution& convolution)
    : convolution_(convolution),
      rows_(convolution.windows.height.input + 2 * convolution.windows.height.padding),
      columns_(convolution.windows.width.input + 2 * convolution.windows.width.padding) {
  const auto &height = convolution.windows.height, &width = convolution.windows.width;
  for (std::int64_t input = 0; input < convolution.inputs; ++input) {
    for (std::int64_t y = 0; y < height.kernel; ++y) {
      for (std::int64_t x = 0; x < width.kernel; ++x) {
        offsets_.push_back((input * rows_ + y * height.dilation) * columns_ + x * width.dilation);
      }
    }
  }
}

void ConvolutionLayout::fill(const float* x, float* to) const {
  const auto &height = convolution_.windows.height, &width = convolution_.windows.width;
  for (std::int64_t input = 0; input < convolution_.inputs; ++input, to += rows_ * columns_) {
    for (std::int64_t row = 0; row < height.input; ++row, x += width.input) {
      copy_row(x, to + (height.padding + row) * columns_ + width.padding, width.input);
    }
  }
}

}  // namespace phalanx::vector
