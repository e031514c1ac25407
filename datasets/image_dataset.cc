// SPDX-License-Identifier: Apache-2.0
#include "datasets/image_dataset.h"

#include <c10/util/Exception.h>

#include <array>
#include <utility>

#include "datasets/batch_augmentation.h"
#include "datasets/batch_memory.h"
#include "datasets/random_stream.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

// The loop runs over whole blocks of constant length. Compilers vectorize such a loop even at -O2 and for the baseline
// instruction set; they do not vectorize a loop of unknown length.
constexpr std::int64_t kBlock = 16;

void transform(const std::uint8_t* __restrict in, float* __restrict out, std::int64_t count, float scale, float shift) {
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (std::int64_t j = 0; j < kBlock; ++j) out[i + j] = static_cast<float>(in[i + j]) * scale + shift;
  }
  for (; i < count; ++i) out[i] = static_cast<float>(in[i]) * scale + shift;
}

}  // namespace

std::vector<ChannelStatistics> channel_statistics(std::span<const double> mean, std::span<const double> deviation) {
  TORCH_CHECK(mean.size() == deviation.size(), mean.size(), " means and ", deviation.size(), " deviations");
  std::vector<ChannelStatistics> statistics;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    statistics.push_back({.mean = static_cast<float>(mean[i]), .deviation = static_cast<float>(deviation[i])});
  }
  return statistics;
}

ImageDataset::ImageDataset(Images images, SampleSpec spec, std::span<const ChannelStatistics> statistics,
                           const Augmentation& augmentation)
    : images_(std::make_shared<const Images>(std::move(images))),
      spec_(std::move(spec)),
      shape_(spec_.inputs.at(0).shape),
      augmentation_(augmentation) {
  TORCH_CHECK(shape_.size() == 3, "an image has three dimensions, not ", shape_.size());
  const std::int64_t channels = shape_[0];
  plane_ = shape_[1] * shape_[2];
  TORCH_CHECK(augmentation_.padding >= 0, "a padding must be >= 0, got ", augmentation_.padding);
  TORCH_CHECK(size() > 0, "a dataset needs at least one image");
  TORCH_CHECK(static_cast<std::int64_t>(images_->pixels.size()) == size() * channels * plane_, images_->pixels.size(),
              " bytes of pixels are not ", size(), " images of ", channels, " x ", plane_, " pixels");
  TORCH_CHECK(static_cast<std::int64_t>(statistics.size()) == channels, "statistics of ", statistics.size(),
              " channels for images of ", channels);
  const auto classes = spec_.targets.at(0).classes;
  for (const auto label : images_->labels) {
    TORCH_CHECK(label >= 0 && label < classes, "label ", label, " of ", classes, " classes");
  }
  for (const auto [mean, deviation] : statistics) {
    TORCH_CHECK(deviation > 0, "a channel's standard deviation must be > 0, got ", deviation);
    normalize_.push_back({1 / (255 * deviation), -mean / deviation});
  }
}

void ImageDataset::gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const {
  const auto rows = static_cast<std::int64_t>(indices.size());
  const std::array shape{shape_[0], shape_[1], shape_[2]};
  const std::int64_t pixels = shape[0] * plane_;
  auto* input = ensure(batch.inputs, 0, std::array{rows, shape[0], shape[1], shape[2]}, at::kFloat).data_ptr<float>();
  auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
  std::vector<std::uint8_t> changed(augmentation_.any() ? static_cast<std::size_t>(pixels) : 0);
  for (const auto index : indices) {
    TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
    const auto* image = images_->pixels.data() + index * pixels;
    if (augmentation_.any()) {
      RandomStream random(mix(seed, static_cast<std::uint64_t>(index)));
      apply_change(draw_change(augmentation_, random), shape, image, changed.data());
      image = changed.data();
    }
    normalize(image, input);
    input += pixels;
    *target++ = images_->labels[static_cast<std::size_t>(index)];
  }
}

std::shared_ptr<const Dataset> ImageDataset::unchanged() const {
  if (!augmentation_.any()) return nullptr;
  auto same = std::make_shared<ImageDataset>(*this);
  same->augmentation_ = {};
  return same;
}

std::shared_ptr<const BatchChanges> ImageDataset::changes() const {
  if (!augmentation_.any()) return nullptr;
  std::vector<float> black;
  for (const auto [scale, shift] : normalize_) black.push_back(shift);
  return std::make_shared<BatchAugmentation>(augmentation_, std::move(black));
}

void ImageDataset::normalize(const std::uint8_t* pixels, float* out) const {
  for (const auto [scale, shift] : normalize_) {
    transform(pixels, out, plane_, scale, shift);
    pixels += plane_;
    out += plane_;
  }
}

}  // namespace phalanx
