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

/// Makes another image of one, before it is normalised: cut, turned, coloured. Images are uint8
/// [channels, height, width] with 1 or 3 channels and any strides. Any number of threads may call one at once.
class Transform {
 public:
  virtual ~Transform() = default;

  /// What is drawn at random is drawn from `random` alone. Nobody writes to `image`; the result may share its memory.
  virtual at::Tensor apply(const at::Tensor& image, RandomStream& random) const = 0;

  /// Whether it draws anything.
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

/// Several transforms, one after the other. Each draws from a stream of its own: the i-th from
/// RandomStream(mix(seed, i)), where the seed is the sample's, so that one that is added changes nothing of the others.
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
