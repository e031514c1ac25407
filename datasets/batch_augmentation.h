// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"

namespace phalanx {

/// Applies an Augmentation to inputs[0], [n, channels, height, width], on any device. The changes of each sample are
/// drawn on the CPU; one gather on the device moves the pixels.
class BatchAugmentation final : public BatchChanges {
 public:
  /// `black` has, for each channel, the value of a black pixel in a batch.
  BatchAugmentation(const Augmentation& augmentation, std::vector<float> black)
      : augmentation_(augmentation), black_(std::move(black)) {}

  void apply(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override;

 private:
  Augmentation augmentation_;
  std::vector<float> black_;
};

}  // namespace phalanx
