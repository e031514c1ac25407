// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/kernels/convolution_layout.h"

namespace phalanx::vector {

/// Convolves `images` images `x` to `y`. `weights` is [outputs, taps()], `bias` is [outputs] or null. All weights must
/// be finite, because they are also multiplied by the zeros of the padding. Scratch memory: one padded image, the
/// weights and eight planes of the output. Thread-safe.
///
/// This is direct convolution on ConvolutionLayout. The sums of a block of the output (some channels times some vectors
/// of consecutive outputs) stay in registers while all taps are added to them, in order.
void convolve(const float* x, const float* weights, const float* bias, float* y, std::int64_t images,
              const Convolution& convolution);

/// Computes the gradient of the weights, `of_weights` [outputs, taps()], from the gradient `of_y` of the output, as the
/// sum over `images` images. Elements of the padding count as zeros, so that infinite elements of `of_y` or `x` may
/// give NaN. Scratch memory: one padded image, its gradient, and a vector for each weight. Thread-safe.
///
/// The sums of a block of the weights stay in registers while the outputs of an image are added to them. A vector has
/// consecutive outputs, which are added up at the end. If the number of channels of the output is a multiple of the
/// number of lanes and the window is 3, 5 or 7 wide, it has channels of the output instead.
void convolution_gradient(const float* x, const float* of_y, float* of_weights, std::int64_t images,
                          const Convolution& convolution);

}  // namespace phalanx::vector
