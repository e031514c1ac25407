// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datasets/random_stream.h"
#include "framework/base/registry.h"

namespace phalanx {

/// Makes a new image from an image before normalization, for example cropped, rotated or recoloured. Images are uint8
/// [channels, height, width] with 1 or 3 channels and any strides. Any number of threads may use a transform at the
/// same time.
class Transform {
 public:
  virtual ~Transform() = default;

  /// Uses only `random` as the source of random numbers. Does not write to `image`; the result may share its memory.
  virtual at::Tensor apply(const at::Tensor& image, RandomStream& random) const = 0;

  /// Returns true if apply() draws random numbers.
  virtual bool draws() const { return true; }
};

/// Transforms by name.
using Transforms = Registry<std::unique_ptr<const Transform>()>;

/// One transform in a list of a config: {transform: flip}, {transform: {name: resize, size: 72}}.
struct TransformConfig {
  Transforms::Choice transform;

  template <class V>
  void visit(V& v) {
    v("transform", transform, "change of an image");
  }
};

/// Several transforms that are applied one after the other. The i-th one draws from its own stream,
/// RandomStream(mix(seed, i)), where `seed` is the seed of the sample. So adding a transform does not change the draws
/// of the others.
class TransformChain {
 public:
  TransformChain() = default;
  explicit TransformChain(const std::vector<TransformConfig>& transforms);

  at::Tensor apply(at::Tensor image, std::uint64_t seed) const;
  bool draws() const;

 private:
  std::vector<std::shared_ptr<const Transform>> transforms_;
};

}  // namespace phalanx
