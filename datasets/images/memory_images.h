// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"
#include "datasets/image_dataset.h"
#include "datasets/transforms/transform.h"

namespace phalanx {

/// The processing of images that are held in memory as bytes, before normalization.
struct MemoryImagesOptions {
  std::vector<ChannelStatistics> statistics;  // one for each channel
  Augmentation augmentation{};
  std::vector<TransformConfig> transforms{};  // instead of `augmentation`; they must keep the size of the images
};

/// Returns an ImageDataset, or TransformedImages if there are transforms. Throws ConfigError if there is an
/// augmentation as well, and c10::Error in the same cases as ImageDataset.
std::shared_ptr<const Dataset> images_in_memory(Images images, const SampleSpec& spec,
                                                const MemoryImagesOptions& options);

}  // namespace phalanx
