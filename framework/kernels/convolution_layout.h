// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "framework/kernels/windows.h"

namespace phalanx::vector {

/// A two-dimensional convolution with stride 1 of images [inputs, height, width] to [outputs, out height, out width].
struct Convolution {
  std::int64_t inputs = 0;   // channels
  std::int64_t outputs = 0;  // channels
  Windows windows;

  std::int64_t taps() const { return inputs * windows.height.kernel * windows.width.kernel; }  // weights of one output
  std::int64_t input_size() const { return inputs * windows.height.input * windows.width.input; }
  std::int64_t output_plane() const { return windows.height.output * windows.width.output; }
  std::int64_t output_size() const { return outputs * output_plane(); }
};

/// Copies a row of a few floats, for which a call of memcpy would take longer. The ranges must not overlap.
inline void copy_row(const float* from, float* to, std::int64_t count) {
  constexpr std::int64_t kFloats = 4;  // 16 bytes, one move on all processors; the last move overlaps the one before it
  if (count < kFloats) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t i = 0; i + kFloats <= count; i += kFloats) std::memcpy(to + i, from + i, kFloats * sizeof(float));
  std::memcpy(to + count - kFloats, from + count - kFloats, kFloats * sizeof(float));
}

/// The layout of padded images in scratch memory: [inputs, rows, columns]. The output at (row, column) has the position
/// row * columns() + column and reads element offsets()[tap] + position for a tap, so consecutive outputs of a row read
/// consecutive elements. Taps are in the order of the weights: input, row, column.
class ConvolutionLayout {
 public:
  explicit ConvolutionLayout(const Convolution& convolution);

  std::int64_t columns() const { return columns_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }

  /// Returns the position after the last output. Positions in padded columns are not outputs.
  std::int64_t positions() const {
    return (convolution_.windows.height.output - 1) * columns_ + convolution_.windows.width.output;
  }

  std::int64_t size() const { return convolution_.inputs * rows_ * columns_; }

  /// Copies an image to scratch memory, which must be zero where the padding is.
  void fill(const float* x, float* to) const;

 private:
  const Convolution& convolution_;
  std::int64_t rows_, columns_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace phalanx::vector
