// SPDX-License-Identifier: Apache-2.0
#include "datasets/transforms/operations.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "datasets/transforms/max_pixels.h"
#include "framework/base/error.h"

namespace phalanx::images {
namespace {

at::Tensor to_bytes(const at::Tensor& values) { return values.round().clamp_(0, 255).to(at::kByte); }

at::Tensor to_floats(const at::Tensor& image) { return image.to(at::kFloat); }

}  // namespace

at::Tensor resized(const at::Tensor& image, std::int64_t height, std::int64_t width) {
  if (image.size(1) == height && image.size(2) == width) return image;
  if (height > kMaxPixels / width) {
    throw DataError("resizing " + std::to_string(image.size(2)) + " x " + std::to_string(image.size(1)) +
                    " pixels to " + std::to_string(width) + " x " + std::to_string(height) + ", but at most " +
                    std::to_string(kMaxPixels) + " pixels are allowed; use a resize with square: true");
  }
  const at::Tensor batch = image.unsqueeze(0);
  return at::_upsample_bilinear2d_aa(batch, {height, width}, /*align_corners=*/false, std::nullopt, std::nullopt)
      .squeeze(0);
}

at::Tensor cut(const at::Tensor& image, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width) {
  const auto bottom = std::min(top + height, image.size(1)), right = std::min(left + width, image.size(2));
  const auto first_row = std::max<std::int64_t>(top, 0), first_column = std::max<std::int64_t>(left, 0);
  if (first_row == top && first_column == left && bottom == top + height && right == left + width) {
    return image.narrow(1, top, height).narrow(2, left, width);
  }
  at::Tensor result = at::zeros({height, width, image.size(0)}, image.options()).permute({2, 0, 1});
  if (bottom <= first_row || right <= first_column) return result;
  const auto rows = bottom - first_row, columns = right - first_column;
  result.narrow(1, first_row - top, rows)
      .narrow(2, first_column - left, columns)
      .copy_(image.narrow(1, first_row, rows).narrow(2, first_column, columns));
  return result;
}

// LibTorch's coordinates go from -1 to 1 along each side.
at::Tensor affine(const at::Tensor& image, const std::array<double, 6>& m) {
  const auto height = static_cast<double>(image.size(1)), width = static_cast<double>(image.size(2));
  const at::Tensor theta =
      at::tensor({m[0], m[1] * height / width, 2 * m[2] / width, m[3] * width / height, m[4], 2 * m[5] / height},
                 at::kFloat)
          .view({1, 2, 3});
  const at::Tensor floats = to_floats(image).unsqueeze(0);
  const at::Tensor grid = at::affine_grid_generator(theta, floats.sizes(), /*align_corners=*/false);
  return to_bytes(at::grid_sampler(floats, grid, /*bilinear*/ 0, /*zeros*/ 0, /*align_corners=*/false).squeeze(0));
}

at::Tensor rotated(const at::Tensor& image, double degrees) {
  const double angle = degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  return affine(image, {cosine, -sine, 0, sine, cosine, 0});
}

at::Tensor blended(const at::Tensor& image, const at::Tensor& other, double ratio) {
  return to_bytes(to_floats(image) * ratio + to_floats(other) * (1 - ratio));
}

at::Tensor luminance(const at::Tensor& image) {
  const at::Tensor floats = to_floats(image);
  if (image.size(0) == 1) return floats;
  return (floats[0] * 0.299 + floats[1] * 0.587 + floats[2] * 0.114).unsqueeze(0);
}

at::Tensor with_brightness(const at::Tensor& image, double factor) { return to_bytes(to_floats(image) * factor); }

at::Tensor with_contrast(const at::Tensor& image, double factor) {
  return blended(image, luminance(image).mean(), factor);
}

at::Tensor with_saturation(const at::Tensor& image, double factor) { return blended(image, luminance(image), factor); }

// Rotates the hue of each pixel, computed by hue, saturation and value (Smith 1978, Color Gamut Transform Pairs).
at::Tensor with_hue(const at::Tensor& image, double shift) {
  if (image.size(0) == 1 || shift == 0) return image;
  const at::Tensor floats = to_floats(image), red = floats[0], green = floats[1], blue = floats[2];
  const at::Tensor value = floats.amax(0), range = value - floats.amin(0), divisor = range.clamp_min(1e-6);
  at::Tensor hue = at::where(value == red, (green - blue) / divisor,
                             at::where(value == green, (blue - red) / divisor + 2, (red - green) / divisor + 4));
  hue = (hue + 6 * shift).remainder(6);
  // Channel n is value - range max(0, min(k, 4 - k, 1)), where k = (n + hue) mod 6 and n = 5, 3, 1.
  const auto channel = [&](double n) {
    const at::Tensor k = (hue + n).remainder(6);
    return value - range * k.minimum(4 - k).clamp(0, 1);
  };
  return to_bytes(at::stack({channel(5), channel(3), channel(1)}));
}

// Uses Pillow's smoothing kernel; pixels at the border are not changed.
at::Tensor with_sharpness(const at::Tensor& image, double factor) {
  if (image.size(1) < 3 || image.size(2) < 3) return image;
  at::Tensor kernel = at::ones({1, 1, 3, 3});
  kernel[0][0][1][1] = 5;
  at::Tensor smooth = to_floats(image).clone();
  const at::Tensor inside = at::conv2d(smooth.unsqueeze(1), kernel / 13).squeeze(1);
  smooth.narrow(1, 1, image.size(1) - 2).narrow(2, 1, image.size(2) - 2).copy_(inside);
  return blended(image, smooth, factor);
}

at::Tensor inverted_above(const at::Tensor& image, double threshold) {
  return at::where(image >= threshold, 255 - image, image);
}

at::Tensor with_bits(const at::Tensor& image, int bits) { return at::bitwise_and(image, 256 - (1 << (8 - bits))); }

at::Tensor with_full_contrast(const at::Tensor& image) {
  const at::Tensor floats = to_floats(image), low = floats.amin({1, 2}, true), high = floats.amax({1, 2}, true);
  return at::where(high > low, to_bytes((floats - low) * (255 / (high - low).clamp_min(1))), image);
}

// As in Pillow, the table maps a value to the number of pixels below it, divided by a constant step.
at::Tensor equalized(const at::Tensor& image) {
  at::Tensor result = at::empty_like(image);
  for (std::int64_t channel = 0; channel < image.size(0); ++channel) {
    const at::Tensor values = image[channel].to(at::kLong);
    const at::Tensor histogram = at::bincount(values.flatten(), {}, 256);
    const auto last = histogram.nonzero().max().item<std::int64_t>();
    const auto step = (values.numel() - histogram[last].item<std::int64_t>()) / 255;
    if (step == 0) {
      result[channel].copy_(image[channel]);
      continue;
    }
    const at::Tensor below = histogram.cumsum(0) - histogram;
    const at::Tensor table = (below + step / 2).floor_divide(step).clamp(0, 255).to(at::kByte);
    result[channel].copy_(table.take(values));
  }
  return result;
}

}  // namespace phalanx::images
