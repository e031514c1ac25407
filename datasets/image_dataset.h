// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"
#include "framework/base/batch.h"

namespace phalanx {

/// Images as bytes, with the class of each.
struct Images {
  std::vector<std::uint8_t> pixels;  // [n, channels, height, width], 0 to 255
  std::vector<std::int64_t> labels;  // [n], in [0, classes)
};

/// The mean and standard deviation of one channel's pixels, scaled to [0, 1].
struct ChannelStatistics {
  float mean = 0;
  float deviation = 1;  // > 0
};

/// Builds the statistics from a config's two lists, one number per channel. Throws c10::Error if their lengths differ.
std::vector<ChannelStatistics> channel_statistics(std::span<const double> mean, std::span<const double> deviation);

/// Images held in memory as bytes, which take a quarter of the memory of a float32 batch. gather() returns
///   inputs[0]   float32 [n, channels, height, width], (pixel / 255 - mean) / deviation
///   targets[0]  int64 [n]
/// If an augmentation is given, it changes the bytes first, with byte 0 as black.
class ImageDataset final : public Dataset {
 public:
  /// The only input of `spec` is {channels, height, width}; `statistics` has one element per channel. Throws c10::Error
  /// if the sizes of the parts disagree or a label is not a class.
  ImageDataset(Images images, SampleSpec spec, std::span<const ChannelStatistics> statistics,
               const Augmentation& augmentation = {});

  std::int64_t size() const override { return static_cast<std::int64_t>(images_->labels.size()); }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override;
  std::int64_t label(std::int64_t index) const override { return images_->labels.at(static_cast<std::size_t>(index)); }
  std::shared_ptr<const Dataset> unchanged() const override;
  std::shared_ptr<const BatchChanges> changes() const override;

 private:
  struct Affine {
    float scale, shift;
  };

  void normalize(const std::uint8_t* pixels, float* out) const;

  std::shared_ptr<const Images> images_;
  SampleSpec spec_;
  std::vector<std::int64_t> shape_;  // {channels, height, width}
  Augmentation augmentation_;
  std::int64_t plane_ = 0;         // pixels of one channel
  std::vector<Affine> normalize_;  // per channel: byte * scale + shift
};

}  // namespace phalanx
