// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace phalanx::images {

// What transforms are made of. Images are uint8 [channels, height, width] with 1 or 3 channels and any strides; they
// are not written to. Values beyond 0 to 255 are clamped, others rounded.

/// Bilinear with antialiasing, as Pillow's.
at::Tensor resized(const at::Tensor& image, std::int64_t height, std::int64_t width);

/// The part that begins at (top, left). What lies outside of the image is black.
at::Tensor cut(const at::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width);

/// Of an affine change about the centre: the pixel at (x, y), counted from there, is the image's at
/// (a x + b y + c, d x + e y + f), for {a, b, c, d, e, f}; bilinear, black outside.
at::Tensor affine(const at::Tensor& image, const std::array<double, 6>& inverse);

/// `degrees` counter-clockwise about the centre; black outside.
at::Tensor rotated(const at::Tensor& image, double degrees);

/// ratio x image + (1 - ratio) x other, in float.
at::Tensor blended(const at::Tensor& image, const at::Tensor& other, double ratio);

/// Luminance (ITU-R 601-2) as one channel, float [1, height, width].
at::Tensor luminance(const at::Tensor& image);

at::Tensor with_brightness(const at::Tensor& image, double factor);    // 0: black, 1: the same
at::Tensor with_contrast(const at::Tensor& image, double factor);      // 0: its mean luminance everywhere
at::Tensor with_saturation(const at::Tensor& image, double factor);    // 0: grey
at::Tensor with_hue(const at::Tensor& image, double shift);            // -0.5 to 0.5 of the circle of hues
at::Tensor with_sharpness(const at::Tensor& image, double factor);     // 0: smoothed, 1: the same
at::Tensor inverted_above(const at::Tensor& image, double threshold);  // solarize
at::Tensor with_bits(const at::Tensor& image, int bits);               // posterize: 1 to 8 bits are kept

/// Each channel stretched to 0 to 255.
at::Tensor with_full_contrast(const at::Tensor& image);

/// Each channel with a flat histogram.
at::Tensor equalized(const at::Tensor& image);

}  // namespace phalanx::images
