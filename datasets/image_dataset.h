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

/// Mean and standard deviation of a channel's pixels, which are taken as 0 to 1.
struct ChannelStatistics {
  float mean = 0;
  float deviation = 1;  // > 0
};

/// Those of a config's two lists, which have a number for each channel. Throws c10::Error for lists of other lengths.
std::vector<ChannelStatistics> channel_statistics(std::span<const double> mean, std::span<const double> deviation);

/// Images held in memory as bytes, a quarter of what a batch takes. gather() gives
///   inputs[0]   float32 [n, channels, height, width], (pixel / 255 - mean) / deviation
///   targets[0]  int64 [n]
/// changed at random before that, if an augmentation is given; black is then the byte 0.
class ImageDataset final : public Dataset {
 public:
  /// spec's one input is {channels, height, width}, with one ChannelStatistics per channel. Throws c10::Error when the
  /// sizes of the parts disagree or a label is not a class.
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
  std::vector<std::int64_t> shape_;  // of an image
  Augmentation augmentation_;
  std::int64_t plane_ = 0;         // pixels of one channel
  std::vector<Affine> normalize_;  // per channel: byte * scale + shift
};

}  // namespace phalanx
