// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"
#include "datasets/image_dataset.h"
#include "datasets/transforms/transform.h"

namespace phalanx {

/// What is done to images that are held in memory as bytes, before they are normalised.
struct MemoryImagesOptions {
  std::vector<ChannelStatistics> statistics;  // one for each channel
  Augmentation augmentation{};
  std::vector<TransformConfig> transforms{};  // instead of it; they leave the images' size as it is
};

/// An ImageDataset, or where there are transforms TransformedImages. Throws ConfigError where there is an augmentation
/// too, and c10::Error as ImageDataset does.
std::shared_ptr<const Dataset> images_in_memory(Images images, const SampleSpec& spec,
                                                const MemoryImagesOptions& options);

}  // namespace phalanx
