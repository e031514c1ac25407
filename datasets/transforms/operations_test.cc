// SPDX-License-Identifier: Apache-2.0
#include "datasets/transforms/operations.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace phalanx::images {
namespace {

at::Tensor numbered(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return at::arange(channels * height * width, at::kLong).remainder(251).to(at::kByte).view({channels, height, width});
}

at::Tensor pixel(int red, int green, int blue) { return at::tensor({red, green, blue}, at::kByte).view({3, 1, 1}); }

double largest_difference(const at::Tensor& one, const at::Tensor& other) {
  return (one.to(at::kFloat) - other.to(at::kFloat)).abs().max().item<double>();
}

TEST(Resized, KeepsConstantPixelsAndAveragesOthers) {
  const at::Tensor flat = at::full({3, 40, 30}, 77, at::kByte);
  EXPECT_TRUE(at::equal(resized(flat, 13, 64), at::full({3, 13, 64}, 77, at::kByte)));
  const at::Tensor ramp = at::arange(64, at::kLong).to(at::kByte).view({1, 1, 64}).expand({1, 8, 64});
  const at::Tensor half = resized(ramp, 4, 32);
  EXPECT_LE(largest_difference(half[0][1].narrow(0, 1, 30), at::arange(2.5, 62, 2, at::kFloat)), 0.51);
}

TEST(Cut, IsBlackOutside) {
  const at::Tensor image = numbered(3, 6, 5) + 1;
  EXPECT_TRUE(at::equal(cut(image, 1, 2, 3, 2), image.narrow(1, 1, 3).narrow(2, 2, 2)));
  const at::Tensor beyond = cut(image, -2, 3, 4, 4);
  EXPECT_EQ(beyond.narrow(1, 0, 2).max().item<int>(), 0);
  EXPECT_EQ(beyond.narrow(2, 2, 2).max().item<int>(), 0);
  EXPECT_TRUE(at::equal(beyond.narrow(1, 2, 2).narrow(2, 0, 2), image.narrow(1, 0, 2).narrow(2, 3, 2)));
  EXPECT_EQ(cut(image, 20, 0, 4, 4).max().item<int>(), 0);
}

TEST(Rotated, AQuarterTurnMovesPixels) {
  const at::Tensor image = numbered(3, 8, 8);
  EXPECT_LE(largest_difference(rotated(image, 90), image.rot90(1, {1, 2})), 1);
  EXPECT_LE(largest_difference(rotated(image, -90), image.rot90(-1, {1, 2})), 1);
  EXPECT_TRUE(at::equal(rotated(image, 0), image));
}

TEST(Affine, MovesByPixels) {
  const at::Tensor image = numbered(1, 6, 9);
  const at::Tensor moved = affine(image, {1, 0, 2, 0, 1, -1});  // (x, y) of the result is (x + 2, y - 1) of the image
  EXPECT_TRUE(at::equal(moved.narrow(1, 1, 5).narrow(2, 0, 7), image.narrow(1, 0, 5).narrow(2, 2, 7)));
  EXPECT_EQ(moved.narrow(1, 0, 1).max().item<int>(), 0);
}

TEST(Colors, ChangeToKnownValues) {
  const at::Tensor red = pixel(200, 40, 40);
  EXPECT_TRUE(at::equal(with_brightness(red, 0.5), pixel(100, 20, 20)));
  EXPECT_TRUE(at::equal(with_brightness(red, 2), pixel(255, 80, 80)));
  EXPECT_TRUE(at::equal(with_saturation(red, 0), pixel(88, 88, 88)));  // 0.299 200 + 0.701 40
  EXPECT_TRUE(at::equal(with_saturation(red, 1), red));
  EXPECT_TRUE(at::equal(with_hue(red, 1.0 / 3), pixel(40, 200, 40)));
  EXPECT_TRUE(at::equal(with_hue(red, -1.0 / 3), pixel(40, 40, 200)));
  EXPECT_TRUE(at::equal(with_hue(red, 0.5), pixel(40, 200, 200)));
  EXPECT_TRUE(at::equal(with_hue(pixel(9, 9, 9), 0.2), pixel(9, 9, 9)));
  EXPECT_TRUE(at::equal(inverted_above(red, 128), pixel(55, 40, 40)));
  EXPECT_TRUE(at::equal(with_bits(red, 4), pixel(192, 32, 32)));
  EXPECT_TRUE(at::equal(with_bits(red, 8), red));
}

TEST(Contrast, IsAboutTheMean) {
  const at::Tensor image = at::tensor({50, 150}, at::kByte).view({1, 1, 2});
  EXPECT_TRUE(at::equal(with_contrast(image, 0), at::full({1, 1, 2}, 100, at::kByte)));
  EXPECT_TRUE(at::equal(with_contrast(image, 0.5), at::tensor({75, 125}, at::kByte).view({1, 1, 2})));
  EXPECT_TRUE(at::equal(with_full_contrast(image), at::tensor({0, 255}, at::kByte).view({1, 1, 2})));
}

TEST(Sharpness, SmoothsByPillowsKernelAndKeepsTheBorder) {
  at::Tensor image = at::full({1, 3, 3}, 13, at::kByte);
  image[0][1][1] = 143;  // (8 x 13 + 5 x 143) / 13 = 63
  const at::Tensor smooth = with_sharpness(image, 0);
  EXPECT_EQ(smooth[0][1][1].item<int>(), 63);
  EXPECT_EQ(smooth[0][0][1].item<int>(), 13);
  EXPECT_TRUE(at::equal(with_sharpness(image, 1), image));
}

// 16 values with 256 pixels each; Pillow's step is (4096 - 256) / 255 = 15 pixels.
TEST(Equalized, SpreadsTheHistogram) {
  const at::Tensor image = at::arange(4096, at::kLong).remainder(16).to(at::kByte).view({1, 64, 64});
  const at::Tensor result = equalized(image);
  EXPECT_EQ(result.max().item<int>(), 255);
  EXPECT_EQ(result.min().item<int>(), 0);
  EXPECT_EQ(result[0][0][7].item<int>(), (7 * 256 + 7) / 15);
  EXPECT_EQ(result[0][0][8].item<int>(), (8 * 256 + 7) / 15);
  const at::Tensor flat = at::full({3, 4, 4}, 9, at::kByte);
  EXPECT_TRUE(at::equal(equalized(flat), flat));
}

}  // namespace
}  // namespace phalanx::images
