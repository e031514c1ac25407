// SPDX-License-Identifier: Apache-2.0
#include "datasets/image_dataset.h"

#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <array>

namespace phalanx {
namespace {

constexpr std::array kTwoChannels{ChannelStatistics{.mean = 0.25f, .deviation = 0.5f},
                                  ChannelStatistics{.mean = 0.5f, .deviation = 0.25f}};

// Four images of 2 channels x 3 x 7 pixels. A plane is longer than one block of the loop, but not a multiple of it.
constexpr std::int64_t kPlane = 21, kImages = 4;

Images some_images() {
  Images images;
  for (int i = 0; i < kImages * 2 * kPlane; ++i) images.pixels.push_back(static_cast<std::uint8_t>(i * 37));
  images.labels = {2, 0, 1, 2};
  return images;
}

ImageDataset dataset() { return {some_images(), classification_samples({2, 3, 7}, 3), kTwoChannels}; }

TEST(ImageDataset, GathersRowsInTheOrderAsked) {
  Batch batch;
  dataset().gather(std::array<std::int64_t, 3>{3, 1, 1}, 0, batch);
  ASSERT_EQ(batch.inputs[0].sizes(), at::IntArrayRef({3, 2, 3, 7}));
  ASSERT_EQ(batch.targets[0].sizes(), at::IntArrayRef({3}));
  const auto* target = batch.targets[0].data_ptr<std::int64_t>();
  EXPECT_EQ((std::vector<std::int64_t>{target, target + 3}), (std::vector<std::int64_t>{2, 0, 0}));
  EXPECT_TRUE(at::equal(batch.inputs[0][1], batch.inputs[0][2]));
}

TEST(ImageDataset, NormalizesEveryPixelByItsChannel) {
  Batch batch;
  dataset().gather(std::array<std::int64_t, 2>{2, 0}, 0, batch);
  const auto images = some_images();
  const auto* got = batch.inputs[0].data_ptr<float>();
  for (const std::int64_t image : {2, 0}) {
    for (std::int64_t channel = 0; channel < 2; ++channel) {
      const auto [mean, deviation] = kTwoChannels[static_cast<std::size_t>(channel)];
      for (std::int64_t pixel = 0; pixel < kPlane; ++pixel, ++got) {
        const auto byte = images.pixels[static_cast<std::size_t>((image * 2 + channel) * kPlane + pixel)];
        EXPECT_NEAR(*got, (byte / 255.0 - mean) / deviation, 1e-6);
      }
    }
  }
}

TEST(ImageDataset, GivesTheSameValueWhereverAPixelLies) {
  Images gray{.pixels = std::vector<std::uint8_t>(37, 77), .labels = {0}};
  const ImageDataset dataset(gray, classification_samples({1, 1, 37}, 1), std::span(kTwoChannels).first(1));
  Batch batch;
  dataset.gather(std::array<std::int64_t, 1>{0}, 0, batch);
  const auto* pixels = batch.inputs[0].data_ptr<float>();
  for (int i = 1; i < 37; ++i) EXPECT_EQ(pixels[i], pixels[0]) << i;
}

ImageDataset augmented() { return {some_images(), classification_samples({2, 3, 7}, 3), kTwoChannels, {2, true}}; }

at::Tensor rows(const ImageDataset& images, const std::vector<std::int64_t>& indices, std::uint64_t seed) {
  Batch batch;
  images.gather(indices, seed, batch);
  return batch.inputs[0];
}

TEST(ImageDataset, ASamplesChangesDependOnSeedAndIndexAlone) {
  const auto images = augmented();
  const auto together = rows(images, {3, 0, 2, 1}, 5);
  EXPECT_TRUE(at::equal(rows(images, {2}, 5)[0], together[2])) << "another rank reads it, alone";
  EXPECT_TRUE(at::equal(rows(images, {1, 3}, 5)[1], together[0])) << "in another order";
  EXPECT_FALSE(at::equal(rows(images, {3, 0, 2, 1}, 6), together)) << "in another epoch";
}

TEST(ImageDataset, WithoutAnAugmentationTheSeedChangesNothing) {
  EXPECT_TRUE(at::equal(rows(dataset(), {0, 1, 2, 3}, 1), rows(dataset(), {0, 1, 2, 3}, 2)));
}

TEST(ImageDataset, PadsWithBlack) {
  Images white{.pixels = std::vector<std::uint8_t>(21, 255), .labels = {0}};
  const ImageDataset images(white, classification_samples({1, 3, 7}, 1), std::span(kTwoChannels).first(1), {2, false});
  bool moved = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto pixels = rows(images, {0}, seed);
    const auto lowest = pixels.min().item<float>();
    EXPECT_EQ(pixels.max().item<float>(), 1.5f);  // (1 - 0.25) / 0.5
    if (lowest == 1.5f) continue;
    EXPECT_EQ(lowest, -0.5f);
    moved = true;
  }
  EXPECT_TRUE(moved);
}

TEST(ImageDataset, ReusesTheBatchsMemory) {
  const auto images = dataset();
  Batch batch;
  images.gather(std::array<std::int64_t, 2>{0, 1}, 0, batch);
  const void *input = batch.inputs[0].data_ptr(), *target = batch.targets[0].data_ptr();
  images.gather(std::array<std::int64_t, 2>{2, 3}, 0, batch);
  EXPECT_EQ(batch.inputs[0].data_ptr(), input);
  EXPECT_EQ(batch.targets[0].data_ptr(), target);
}

TEST(ImageDataset, DoesNotChangeTheOtherFields) {
  Batch batch;
  batch.valid = 5;
  batch.global_rows = 7;
  dataset().gather(std::array<std::int64_t, 1>{0}, 0, batch);
  EXPECT_EQ(batch.valid, 5);
  EXPECT_EQ(batch.global_rows, 7);
}

TEST(ImageDataset, RefusesAnIndexOutOfRange) {
  Batch batch;
  EXPECT_THROW(dataset().gather(std::array<std::int64_t, 1>{kImages}, 0, batch), c10::IndexError);
  EXPECT_THROW(dataset().gather(std::array<std::int64_t, 1>{-1}, 0, batch), c10::IndexError);
}

TEST(ImageDataset, RefusesPartsThatDisagree) {
  const SampleSpec spec = classification_samples({2, 3, 7}, 3);
  auto images = some_images();
  images.pixels.pop_back();
  EXPECT_THROW(ImageDataset(images, spec, kTwoChannels), c10::Error);
  images = some_images();
  images.labels[1] = 3;
  EXPECT_THROW(ImageDataset(images, spec, kTwoChannels), c10::Error);
  EXPECT_THROW(ImageDataset(some_images(), spec, std::span(kTwoChannels).first(1)), c10::Error);
  EXPECT_THROW(ImageDataset({}, spec, kTwoChannels), c10::Error);
  EXPECT_THROW(ImageDataset(some_images(), spec, kTwoChannels, {.padding = -1}), c10::Error);
}

}  // namespace
}  // namespace phalanx
