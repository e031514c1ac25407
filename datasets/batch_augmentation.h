// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"

namespace phalanx {

/// An Augmentation of inputs[0], [n, channels, height, width], wherever it is: what is drawn for each sample is drawn
/// on the CPU, and the pixels are moved by one gather on the device.
class BatchAugmentation final : public BatchChanges {
 public:
  /// `black`: of each channel, what a black pixel is in a batch.
  BatchAugmentation(const Augmentation& augmentation, std::vector<float> black)
      : augmentation_(augmentation), black_(std::move(black)) {}

  void apply(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override;

 private:
  Augmentation augmentation_;
  std::vector<float> black_;
};

}  // namespace phalanx
