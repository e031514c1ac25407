// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace phalanx::images {

// The building blocks of transforms. Images are uint8 [channels, height, width] with 1 or 3 channels and any strides.
// They are not modified. Results are rounded and clamped to 0 to 255.

/// Resizes bilinearly with antialiasing, as Pillow does.
at::Tensor resized(const at::Tensor& image, std::int64_t height, std::int64_t width);

/// Returns the part of this size that begins at (top, left). Pixels outside of the image are black.
at::Tensor cut(const at::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width);

/// Applies an affine transformation about the centre, bilinear, with black outside of the image. With coordinates
/// relative to the centre, pixel (x, y) of the result is pixel (a x + b y + c, d x + e y + f) of the image, where
/// `inverse` is {a, b, c, d, e, f}.
at::Tensor affine(const at::Tensor& image, const std::array<double, 6>& inverse);

/// Rotates by `degrees` counterclockwise about the centre, with black outside of the image.
at::Tensor rotated(const at::Tensor& image, double degrees);

/// Returns ratio x image + (1 - ratio) x other, computed in float.
at::Tensor blended(const at::Tensor& image, const at::Tensor& other, double ratio);

/// Returns the luminance (ITU-R 601-2) as one channel, float [1, height, width].
at::Tensor luminance(const at::Tensor& image);

at::Tensor with_brightness(const at::Tensor& image, double factor);    // 0: black, 1: unchanged
at::Tensor with_contrast(const at::Tensor& image, double factor);      // 0: mean luminance everywhere
at::Tensor with_saturation(const at::Tensor& image, double factor);    // 0: grey
at::Tensor with_hue(const at::Tensor& image, double shift);            // -0.5 to 0.5 of the circle of hues
at::Tensor with_sharpness(const at::Tensor& image, double factor);     // 0: smoothed, 1: unchanged
at::Tensor inverted_above(const at::Tensor& image, double threshold);  // solarize
at::Tensor with_bits(const at::Tensor& image, int bits);               // posterize: 1 to 8 bits are kept

/// Stretches each channel to the range 0 to 255.
at::Tensor with_full_contrast(const at::Tensor& image);

/// Equalizes the histogram of each channel.
at::Tensor equalized(const at::Tensor& image);

}  // namespace phalanx::images
